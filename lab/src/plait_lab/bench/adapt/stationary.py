"""Nothing but noise: Poisson arrivals and skewed keys, ten million rows, and no reason to move.

The run that could re-plan itself and the same plan without the loop take each batch in turn, now
one first and now the other, so that whatever else the machine does hits both. The overhead of the
loop is the ratio of their processor times.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from plait.local.host import LocalRun
from plait_lab.bench.adapt.harness import OURS, adaptive
from plait_lab.bench.adapt.static import planned
from plait_lab.bench.contest import Contest, Course, Maker
from plait_lab.reporting.report import Note, Report, Series, at_most, equal, ratio_spread
from plait_lab.workloads.changing import Key, Regime, make_batches
from plait_lab.workloads.keyed import keyed_query

KEYS = (("k1",), ("k1", "k2"), ("k2",))
WITHOUT = "without the loop"
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
    course = Course(query, batches, (0,) * len(batches))
    systems: dict[str, Maker] = {
        OURS: partial(adaptive, query, plan),
        WITHOUT: partial(LocalRun, query, plan),
    }
    contest = Contest(course, systems, note)
    contest.warm_up(systems, _WARM_UP)
    for repeat in range(options.repeats):
        contest.in_turn(systems, f"run {repeat + 1} of {options.repeats}")
    ratio = ratio_spread(contest.totals(OURS), contest.totals(WITHOUT))
    moves = [len(outcome.moves) for outcome in contest.runs[OURS]]
    results = [outcome.results for runs in contest.runs.values() for outcome in runs]
    for name in systems:
        report.systems[name] = contest.figures(name) | {"rows": course.rows, "plan": str(plan)}
    report.systems[OURS]["migrations"] = moves
    report.ratios[f"{OURS} / {WITHOUT}"] = ratio
    last = (np.array(contest.runs[name][-1].seconds) for name in systems)
    report.series.append(per_batch_ratio(*last))
    report.claims = [
        at_most("no-migration", f"noise over {course.rows} rows triggers no migration: those of "
                "a run", float(max(moves)), 0.0),
        at_most("overhead", "the loop costs at most 3 % of the processor time",
                ratio["median"], _OVERHEAD),
        equal("results", "all find as many results", results),
    ]  # fmt: skip
    return report


def per_batch_ratio(mine: np.ndarray, its: np.ndarray) -> Series:
    """The ratio of two runs over some batches at a time, as a line."""
    width = max(1, len(mine) // 30)
    ends = range(width, len(mine) + 1, width)
    ratios = [float(mine[e - width : e].sum() / its[e - width : e].sum()) for e in ends]
    return Series("adaptive / without the loop", list(ends), ratios, "ratio", "batch")
