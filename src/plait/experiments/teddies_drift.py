"""Selectivities that flip during the run: Teddies against every static plan.

Three streams share one key. In each phase two of them use few keys, so that they match each other
often, and the third mostly uses keys of its own: whoever visits it first is done soon. Which
stream that is changes with the phase, so no static plan is good in all of them. Between phases the
streams are silent for as long as the window, so that the phases do not mix. Every legal plan runs
the whole input, each mjoin with every probe order; the processor time of each phase is taken apart.
The hindsight is the sum, over the phases, of the time of the plan that was best in that phase.

The plans that come into question as the best of a phase then run again, in turn with Teddies: a
*final*. Others use the machine too, so a ratio is that of runs of the same final, and the median of
all finals counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from plait.bench.report import Note, Report, Series, at_most, equal, ratio_spread, spread
from plait.bench.workloads import RATE, keyed_query
from plait.plan.enumerate import all_plans
from plait.plan.jtree import Join, Node
from plait.plan.routed import POLICIES, Plan, Teddies
from plait.query.query import Query
from plait.runtime.local import LocalRun

_HINDSIGHT, _WORST = 1.3, 2.0
_OWN_KEYS = 1 << 40
_FINALISTS = 2
"""Plans that may turn out as the best of a phase."""
_OURS = "teddies, ordered"


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    rows: int = 60_000
    """Rows per stream and phase."""
    window_seconds: int = 5
    keys: int = 200
    """Keys of the streams that match often."""
    share: float = 0.02
    """How many rows of the other stream have one of those keys."""
    rounds: int = 1
    """How often all phases are gone through."""
    batches: int = 4
    """Batches per phase."""
    repeats: int = 2
    """Runs of every plan."""
    finals: int = 9
    """Further runs of Teddies and of the plans that come into question."""
    seed: int = 1


def drift(options: Options, note: Note) -> Report:
    """Teddies and every static plan when another stream becomes the selective one."""
    report = Report("teddies/drift", asdict(options), seed="004")
    query = keyed_query([["k"]] * 3, options.window_seconds * 1_000_000)
    phases = len(query.names) * options.rounds
    tables = drifting_tables(query, options)
    static: dict[str, Plan] = {plan_label(p): p for p in all_plans(query, orders="all")}
    routers: dict[str, Plan] = {f"teddies, {p}": Teddies(policy=p) for p in POLICIES}
    systems = static | routers
    times: dict[str, list[list[float]]] = {name: [] for name in systems}
    results: dict[str, int] = {}

    def run(names: Iterable[str], title: str, keep: bool = True) -> None:
        for name in names:
            note(f"{title}: {name}")
            seconds, results[name] = _measure(query, systems[name], tables, phases, options)
            if keep:
                times[name].append(seconds)

    run([next(iter(static)), *routers], "warming up", keep=False)
    for repeat in range(options.repeats):
        run(systems, f"run {repeat + 1} of {options.repeats}")
    medians = {name: np.median(np.array(runs), axis=0) for name, runs in times.items()}
    worst = max(static, key=lambda n: float(medians[n].sum()))
    finalists = {
        name: None
        for phase in range(phases)
        for name in sorted(static, key=lambda n: float(medians[n][phase]))[:_FINALISTS]
    }
    first = {name: list(runs) for name, runs in times.items()}
    for name in (*finalists, *routers):
        times[name].clear()
    for final in range(options.finals):
        run([*finalists, *routers], f"final {final + 1} of {options.finals}")
    by_phase = {name: np.median(np.array(runs), axis=0) for name, runs in times.items()}
    best = [min(finalists, key=lambda n: float(by_phase[n][p])) for p in range(phases)]
    hindsight = [
        sum(times[name][final][phase] for phase, name in enumerate(best))
        for final in range(options.finals)
    ]
    _describe(report, times, by_phase, results)
    report.systems["hindsight"] = {"seconds": spread(hindsight)["median"], "plans": best}
    always = min(finalists, key=lambda n: float(by_phase[n].sum()))
    for name in routers:
        mine = [sum(run) for run in times[name]]
        report.ratios[name] = {
            "hindsight / ours": ratio_spread(hindsight, mine),
            "best static plan / ours": ratio_spread([sum(r) for r in times[always]], mine),
            "worst static plan / ours": ratio_spread(
                [sum(run) for run in first[worst]], [sum(run) for run in first[name]]
            ),
        }
    ours = report.ratios[_OURS]
    report.claims = [
        at_most("worst", f"at least {_WORST:g} times faster than the worst static plan, {worst}: "
                "our time / its time", 1 / ours["worst static plan / ours"]["median"], 1 / _WORST),
        at_most("hindsight", f"within {_HINDSIGHT} times of the best plan of each phase, known "
                "afterwards", 1 / ours["hindsight / ours"]["median"], _HINDSIGHT),
        equal("results", "all find as many results", list(results.values())),
    ]  # fmt: skip
    return report


def _describe(
    report: Report,
    times: Mapping[str, list[list[float]]],
    by_phase: Mapping[str, np.ndarray],
    results: Mapping[str, int],
) -> None:
    for name, seconds in by_phase.items():
        x = list(range(1, len(seconds) + 1))
        report.series.append(
            Series(name, x, seconds.tolist(), "CPU seconds", "phase", y_scale="log")
        )
        total = spread([sum(run) for run in times[name]])
        report.systems[name] = {
            "seconds": total["median"],
            "spread": total,
            "results": results[name],
        }


def plan_label(plan: Node) -> str:
    """A plan's shape and, where it is an mjoin, its probe orders."""
    if isinstance(plan, Join) and len(plan.children) > 2:
        names = [str(child) for child in plan.children]
        orders = ("".join(names[k][-1] for k in order) for order in plan.orders)
        return f"{plan} {' '.join(orders)}"
    return str(plan)


def drifting_tables(query: Query, options: Options) -> dict[str, pa.Table]:
    """Rows in order of time; in phase p, stream p mod 3 mostly has keys of its own."""
    streams = len(query.names)
    phases = streams * options.rounds
    tables = {}
    for i, stream in enumerate(query.streams):
        rng = np.random.default_rng([options.seed, i])
        n = phases * options.rows
        keys = rng.integers(0, options.keys, n)
        own = np.arange(n) // options.rows % streams == streams - 1 - i
        alone = own & (rng.random(n) >= options.share)
        keys[alone] = _OWN_KEYS + rng.integers(0, _OWN_KEYS, int(alone.sum()))
        spacing = 1_000_000 // RATE
        silence = np.arange(n) // options.rows * (query.bounds.widest + 1)
        times = silence + np.arange(n) * spacing + rng.integers(0, spacing, n)
        tables[stream.name] = pa.table({
            "k": keys,
            "ts": pa.array(times).cast(pa.timestamp("us")),
            "v": rng.integers(0, 1 << 40, n),
        })  # fmt: skip
    return tables


def _measure(
    query: Query, plan: Plan, tables: dict[str, pa.Table], phases: int, options: Options
) -> tuple[list[float], int]:
    """The processor seconds of each phase, and the results."""
    pa.set_cpu_count(1)
    run = LocalRun(query, plan)
    seconds = []
    for phase in range(phases):
        began = time.process_time()
        for batch in range(options.batches):
            start, stop = (
                phase * options.rows + options.rows * b // options.batches
                for b in (batch, batch + 1)
            )
            for _ in run.stream({n: t.slice(start, stop - start) for n, t in tables.items()}):
                pass
        seconds.append(time.process_time() - began)
    return seconds, run.counts.results
