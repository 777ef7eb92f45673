"""Selectivities that flip during the run: Teddies against every static plan.

Three streams share one key. In each phase two of them use few keys, so that they match each other
often, and the third mostly uses keys of its own: whoever visits it first is done soon. Which
stream that is changes with the phase, so no static plan is good in all of them. Between phases the
streams are silent for as long as the window, so that the phases do not mix. Every legal plan runs
the whole input, each mjoin with every probe order; the processor time of each phase is taken apart.
The plans that come into question as the best of a phase then run again, in turn with Teddies
(`plait_lab.bench.contest`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from plait.kernels.jit import Ints
from plait.local.host import LocalRun
from plait.plan.labels import plan_label
from plait.plan.routed import POLICIES, Plan, Teddies
from plait.query.query import Query, Stream
from plait_lab.bench.contest import Contest, Course, Maker
from plait_lab.exhaustive.plans import all_plans
from plait_lab.reporting.report import Note, Report, Series, at_most, equal, ratio_spread, spread
from plait_lab.workloads.drawing import MICROS, VALUES, drawn_tables
from plait_lab.workloads.keyed import RATE, keyed_query

_HINDSIGHT, _WORST = 1.3, 2.0
_OWN_KEYS = 1 << 40
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
    systems: dict[str, Maker] = {
        name: partial(LocalRun, query, plan) for name, plan in (static | routers).items()
    }
    contest = Contest(_course(query, tables, phases, options), systems, note)
    contest.warm_up([next(iter(static)), *routers], len(contest.course.batches))
    for repeat in range(options.repeats):
        contest.round(systems, f"run {repeat + 1} of {options.repeats}")
    worst = max(static, key=contest.total)
    first = {name: contest.totals(name) for name in systems}
    finalists = contest.finalists(static)
    contest.forget([*finalists, *routers])
    for final in range(options.finals):
        contest.round([*finalists, *routers], f"final {final + 1} of {options.finals}")
    best, hindsight = contest.hindsight(finalists)
    _describe(report, contest)
    report.systems["hindsight"] = {"seconds": spread(hindsight)["median"], "plans": best}
    always = min(finalists, key=contest.total)
    for name in routers:
        mine = contest.totals(name)
        report.ratios[name] = {
            "hindsight / ours": ratio_spread(hindsight, mine),
            "best static plan / ours": ratio_spread(contest.totals(always), mine),
            "worst static plan / ours": ratio_spread(first[worst], first[name]),
        }
    ours = report.ratios[_OURS]
    report.claims = [
        at_most("worst", f"at least {_WORST:g} times faster than the worst static plan, {worst}: "
                "our time / its time", 1 / ours["worst static plan / ours"]["median"], 1 / _WORST),
        at_most("hindsight", f"within {_HINDSIGHT} times of the best plan of each phase, known "
                "afterwards", 1 / ours["hindsight / ours"]["median"], _HINDSIGHT),
        equal("results", "all find as many results",
              [runs[-1].results for runs in contest.runs.values()]),
    ]  # fmt: skip
    return report


def _describe(report: Report, contest: Contest) -> None:
    for name, runs in contest.runs.items():
        seconds = contest.by_phase(name).tolist()
        x = list(range(1, len(seconds) + 1))
        report.series.append(Series(name, x, seconds, "CPU seconds", "phase", y_scale="log"))
        total = spread(contest.totals(name))
        report.systems[name] = {
            "seconds": total["median"],
            "spread": total,
            "results": runs[-1].results,
        }


def drifting_tables(query: Query, options: Options) -> dict[str, pa.Table]:
    """Rows in order of time; in phase p, stream p mod 3 mostly has keys of its own."""
    streams = len(query.names)
    phases = streams * options.rounds

    def draw(i: int, _: Stream, rng: np.random.Generator) -> dict[str, Ints]:
        n = phases * options.rows
        keys = rng.integers(0, options.keys, n)
        own = np.arange(n) // options.rows % streams == streams - 1 - i
        alone = own & (rng.random(n) >= options.share)
        keys[alone] = _OWN_KEYS + rng.integers(0, _OWN_KEYS, int(alone.sum()))
        spacing = MICROS // RATE
        silence = np.arange(n) // options.rows * (query.bounds.widest + 1)
        times = silence + np.arange(n) * spacing + rng.integers(0, spacing, n)
        return {"k": keys, "ts": times, "v": rng.integers(0, VALUES, n)}

    return drawn_tables(query, [options.seed], draw)


def _course(query: Query, tables: dict[str, pa.Table], phases: int, options: Options) -> Course:
    """Every phase in batches of the same size."""
    edges = [
        phase * options.rows + options.rows * batch // options.batches
        for phase in range(phases)
        for batch in range(options.batches)
    ]
    batches = [
        {name: table.slice(start, stop - start) for name, table in tables.items()}
        for start, stop in pairwise([*edges, phases * options.rows])
    ]
    return Course(query, batches, tuple(b // options.batches for b in range(len(batches))))
