"""What a migration costs: the pause of moving state, and both plans at work in a parallel track.

A chain of three streams goes from ((s0 s1) s2) to (s0 (s1 s2)).

*Moving state* must compute s1⋈s2 while nothing is joined. Its measure is the time in which the new
plan takes in the same tuples in the ordinary way, from the first batch on: windows as long as the
input, so nothing expires, and few results, which only the ordinary way would have to make.

*Parallel track* runs both plans until the last old tuple is gone. Its measure is the time that the
two plans take for the same batches, each alone and with full windows. Results are few, because
each plan alone makes all of them and the two together make them once.

Ratios are of processor time: one thread does all of it, and other processes do not count. Pauses
are what a clock shows. On Spark, which takes part if there is a Java for it, the pause is what the
batch in which the migration happens takes longer than the median batch.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from plait.local.host import LocalRun
from plait.plan.jtree import Node
from plait.plan.migration import Migration, ResultOrder
from plait.plan.text import read_tree
from plait.query.query import Query
from plait.testing.oracle.checksum import checksum
from plait_lab.bench.spark.pauses import pauses_on_spark
from plait_lab.reporting.report import Note, Report, Series, at_most, equal, ratio_spread, spread
from plait_lab.workloads.keyed import RATE, keyed_query, keyed_tables

_KEYS = [["k1"], ["k1", "k2"], ["k2"]]
_OLD, _NEW = "((s0 s1) s2)", "(s0 (s1 s2))"
_SECOND = 1_000_000
_HALF = 0.5
_BOTH = 1.2


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    rows: int = 334_000
    """Rows per stream in the windows when the state is moved."""
    partners: int = 3
    """Combined tuples to recompute per row of a stream."""
    batches: int = 20
    window_rows: int = 100_000
    """Rows per stream in a window when both plans run."""
    window_batches: int = 10
    """Batches in which a window passes."""
    repeats: int = 5
    runtimes: str = "local,spark"
    """Where it is measured: here, or also on Spark."""
    seed: int = 1


Batches = list[dict[str, pa.Table]]


def migrate_pause(options: Options, note: Note) -> Report:
    """The pause of moving state, and the cost of running both plans in a parallel track."""
    pa.set_cpu_count(1)
    report = Report("migrate-pause", asdict(options))
    _moving_state(report, options, note)
    _parallel_track(report, options, note)
    if "spark" in options.runtimes.split(","):
        pauses_on_spark(report, note)
    return report


def _moving_state(report: Report, options: Options, note: Note) -> None:
    window = (options.rows // RATE + 1) * _SECOND
    query = keyed_query(_KEYS, window)
    domains = {"k1": 100 * options.rows, "k2": max(1, options.rows // options.partners)}
    tables = keyed_tables(query, options.rows, domains, options.seed)
    batches = _cut(tables, options.batches)
    old, new = read_tree(query, _OLD), read_tree(query, _NEW)
    pauses, moves, ordinary = list[float](), list[float](), list[float]()
    states, done = list[object](), Migration("moving-state", old, new)
    for repeat in range(options.repeats + 1):
        note("moving state: " + (f"run {repeat} of {options.repeats}" if repeat else "warming up"))
        there = LocalRun(query, new)
        seconds = sum(_timed(there, batches))
        run = LocalRun(query, old)
        _timed(run, batches)
        gc.collect()
        began = time.process_time()
        done = run.migrate(new)
        moving = time.process_time() - began
        if repeat:
            ordinary.append(seconds)
            moves.append(moving)
            pauses.append(done.pause)
            states += [_rows(there), _rows(run)]
    ratio = ratio_spread(moves, ordinary)
    report.ratios["moving state / ordinary way"] = ratio
    report.systems["moving state"] = {
        "base tuples": options.rows * len(_KEYS),
        "recomputed": done.recomputed,
        "pause": spread(pauses),
        "processor seconds": spread(moves),
        "processor seconds of the ordinary way": spread(ordinary),
        "probes": done.probes,
    }
    report.series.append(
        Series("pause of moving state", range(1, len(pauses) + 1), pauses, "s", "run")
    )
    report.claims += [
        at_most(
            "moving-state-half",
            f"recomputing {done.recomputed} combined tuples over {options.rows * len(_KEYS)} base "
            "tuples takes less than half the time of processing these tuples in the ordinary way",
            ratio["median"],
            _HALF,
        ),
        equal("moving-state-states", "the states are those of the ordinary way", states),
    ]


def _parallel_track(report: Report, options: Options, note: Note) -> None:
    window = options.window_rows * _SECOND // RATE
    query = keyed_query(_KEYS, window)
    domains = {"k1": 5 * options.window_rows, "k2": max(1, options.window_rows // 2)}
    tables = keyed_tables(query, 4 * options.window_rows, domains, options.seed)
    batches = _cut(tables, 4 * options.window_batches)
    start = 2 * options.window_batches
    old, new = read_tree(query, _OLD), read_tree(query, _NEW)
    orders: tuple[ResultOrder, ...] = ("any", "timestamp")
    costs: dict[str, list[float]] = {order: [] for order in orders}
    pauses: dict[str, list[float]] = {order: [] for order in orders}
    medians, moved, sums, line = [], [], set(), []
    for repeat in range(options.repeats + 1):
        note("both plans: " + (f"run {repeat} of {options.repeats}" if repeat else "warming up"))
        alone = [_alone(query, plan, batches) for plan in (old, new)]
        sums |= {found for _, found in alone}
        for order in orders:
            seconds, done, found = _with_track(query, old, new, batches, start, order)
            assert done.end is not None
            sums.add(found)
            stage = slice(start, done.end)
            own = sum(sum(times[stage]) for times, _ in alone)
            if repeat:
                costs[order].append(sum(seconds[stage]) / own)
                pauses[order].append(done.pause)
            if order == "any":
                line = seconds
        if repeat:
            medians.append(spread([t for times, _ in alone for t in times[start:]])["median"])
            moved.append(_moved_pause(query, old, new, batches[:start]))
    report.series.append(Series("parallel track", range(len(line)), line, "s", "batch"))
    report.systems["parallel track"] = {
        "stage in batches": done.end - start if done.end else 0,
        "old results": done.old_results,
        "new results": done.new_results,
        "median batch of one plan": spread(medians),
        "pause": {order: spread(pauses[order]) for order in orders},
        "pause of moving state instead": spread(moved),
    }
    for order in orders:
        ratio = spread(costs[order])
        report.ratios[f"both plans in parallel / each alone, order {order}"] = ratio
        report.claims.append(
            at_most(
                f"parallel-track-{order}",
                "a parallel track takes less than 1.2 times the time that its two plans take "
                f"alone (results in order: {order})",
                ratio["median"],
                _BOTH,
            )
        )
    report.claims.append(
        equal("parallel-track-results", "every run finds the same results", sorted(sums))
    )


def _with_track(
    query: Query, old: Node, new: Node, batches: Batches, start: int, order: ResultOrder
) -> tuple[list[float], Migration, tuple[int, int]]:
    run = LocalRun(query, old)
    outputs: list[pa.Table] = []
    seconds = _timed(run, batches[:start], outputs)
    run.migrate(new, "parallel-track", order=order)
    seconds += _timed(run, batches[start:], outputs)
    return seconds, run.migrations[-1], _sum(outputs)


def _alone(query: Query, plan: Node, batches: Batches) -> tuple[list[float], tuple[int, int]]:
    outputs: list[pa.Table] = []
    return _timed(LocalRun(query, plan), batches, outputs), _sum(outputs)


def _moved_pause(query: Query, old: Node, new: Node, batches: Batches) -> float:
    run = LocalRun(query, old)
    _timed(run, batches)
    return run.migrate(new).pause


def _timed(
    run: LocalRun, batches: Sequence[dict[str, pa.Table]], outputs: list[pa.Table] | None = None
) -> list[float]:
    """The processor seconds of every batch."""
    seconds = []
    for batch in batches:
        began = time.process_time()
        found = run.push(batch)
        seconds.append(time.process_time() - began)
        if outputs is not None:
            outputs.append(found)
    return seconds


def _sum(outputs: list[pa.Table]) -> tuple[int, int]:
    found = pa.concat_tables(outputs)
    return found.num_rows, checksum(found)


def _rows(run: LocalRun) -> tuple[tuple[tuple[str, ...], int], ...]:
    return tuple(sorted((size.streams, size.rows) for size in run.engine.sizes()))


def _cut(tables: dict[str, pa.Table], batches: int) -> Batches:
    found = []
    for b in range(batches):
        batch = {}
        for name, table in tables.items():
            start, stop = (len(table) * x // batches for x in (b, b + 1))
            batch[name] = table.slice(start, stop - start)
        found.append(batch)
    return found
