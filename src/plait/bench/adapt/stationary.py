"""Nothing but noise: Poisson arrivals and skewed keys, ten million rows, and no reason to move.

The run that could re-plan itself and the same plan without the loop take each batch in turn, now
one first and now the other, so that whatever else the machine does hits both. The overhead of the
loop is the ratio of their processor times.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from plait.bench.adapt.harness import adaptive
from plait.bench.adapt.static import planned
from plait.bench.adapt.workloads import Key, Regime, make_batches
from plait.bench.contest import Batches
from plait.bench.report import Note, Report, Series, at_most, equal, spread
from plait.bench.workloads import keyed_query
from plait.runtime.local import LocalRun

KEYS = (("k1",), ("k1", "k2"), ("k2",))
_SECOND = 1_000_000
_OVERHEAD = 1.03
_WARM_UP = 20
"""Batches after which all code is compiled."""
_SKEW = 1.5
"""The most frequent of 40,000 keys has 34 times the rows of an average one."""


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    tuples: int = 10_000_000
    """Rows of all streams together."""
    rate: float = 10_000.0
    """Rows per second of each stream."""
    window_seconds: int = 4
    keys: int = 40_000
    repeats: int = 3
    seed: int = 1


def noise(options: Options) -> Regime:
    """The one regime."""
    keys = {
        "k1": Key(options.keys, power=_SKEW),
        "k2": Key(10 * options.keys, power=_SKEW),
    }
    return Regime((options.rate, options.rate, options.rate), keys)


def stationary(options: Options, note: Note) -> Report:
    """Noise alone: that it triggers no migration, and what the loop costs."""
    report = Report("adapt-stationary", asdict(options))
    query = keyed_query(KEYS, options.window_seconds * _SECOND)
    regime = noise(options)
    seconds = math.ceil(options.tuples / (options.rate * len(KEYS)))
    note("drawing rows")
    batches = make_batches(query, [regime] * seconds, 1.0, options.seed)
    plan = planned(query, regime.statistics(query, 1.0))
    rows = sum(table.num_rows for batch in batches for table in batch.values())
    ratios, moves, results = list[float](), list[int](), list[int]()
    totals: dict[str, list[float]] = {"adaptive": [], "without the loop": []}
    note("warming up")
    twins((adaptive(query, plan), LocalRun(query, plan)), batches[:_WARM_UP])
    for repeat in range(options.repeats):
        note(f"run {repeat + 1} of {options.repeats}")
        runs = (adaptive(query, plan), LocalRun(query, plan))
        mine, its = twins(runs, batches)
        ratios.append(float(mine.sum() / its.sum()))
        totals["adaptive"].append(float(mine.sum()))
        totals["without the loop"].append(float(its.sum()))
        moves.append(len(runs[0].migrations))
        results += [run.counts.results for run in runs]
    for name, taken in totals.items():
        report.systems[name] = {
            "seconds": spread(taken)["median"],
            "spread": spread(taken),
            "rows": rows,
            "results": results[0],
            "plan": str(plan),
        }
    report.systems["adaptive"]["migrations"] = moves
    report.ratios["adaptive / without the loop"] = spread(ratios)
    report.series.append(per_batch_ratio(mine, its))
    report.claims = [
        at_most("no-migration", f"noise over {rows} rows triggers no migration: migrations of a "
                "run", float(max(moves)), 0.0),
        at_most("overhead", "the loop costs at most 3 % of the processor time",
                spread(ratios)["median"], _OVERHEAD),
        equal("results", "all find as many results", results),
    ]  # fmt: skip
    return report


def twins(runs: tuple[LocalRun, LocalRun], batches: Batches) -> tuple[np.ndarray, np.ndarray]:
    """The processor seconds of two runs for every batch, which they take in turn."""
    pa.set_cpu_count(1)
    seconds = np.zeros((2, len(batches)))
    for b, batch in enumerate(batches):
        for r in (b % 2, 1 - b % 2):
            began = time.process_time()
            for _ in runs[r].stream(batch):
                pass
            seconds[r, b] = time.process_time() - began
    return seconds[0], seconds[1]


def per_batch_ratio(mine: np.ndarray, its: np.ndarray) -> Series:
    """The ratio of two runs over some batches at a time, as a line."""
    width = max(1, len(mine) // 30)
    ends = range(width, len(mine) + 1, width)
    ratios = [float(mine[e - width : e].sum() / its[e - width : e].sum()) for e in ends]
    return Series("adaptive / without the loop", list(ends), ratios, "ratio", "batch")
