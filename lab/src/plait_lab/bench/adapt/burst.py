"""One stream bursts and calms down again: time, and memory under a budget.

In a chain of three streams, s2 becomes twenty times faster for a while. Before and after, s1⋈s2 is
small and good to keep; during the burst it is the largest state of all. A window is ten batches
long, so that it takes the burst some time to fill it: what a state will hold can be known before
it does.

*Time* is compared without a budget. *Memory*: the same streams with a budget that only some plans
keep to during the burst; whether any does is measured on the static runs, batch by batch. And with
a budget that none keeps to: then the events must say so and name the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from plait.optimize.budget import Budget
from plait.plan.jtree import Node
from plait_lab.bench.adapt.harness import (
    Effort,
    Played,
    adaptive,
    describe,
    play,
    same_results,
)
from plait_lab.bench.adapt.static import static_plans
from plait_lab.bench.contest import ContestOutcome, Course, measure
from plait_lab.reporting.report import Note, Report, Series, at_least, at_most
from plait_lab.workloads.changing import Key, Regime, make_batches
from plait_lab.workloads.keyed import keyed_query

KEYS = (("k1",), ("k1", "k2"), ("k2",))
_SECOND = 1_000_000
_NEAR, _EXCEED = 1.15, 1.05


@dataclass(frozen=True, slots=True)
class Options(Effort):
    """What can be varied."""

    before: int = 40
    during: int = 50
    after: int = 50
    factor: float = 20.0
    """How much faster the stream becomes."""
    window_seconds: int = 10
    scale: float = 1.0
    """Factor to all rates and numbers of keys."""
    budget: float = 1.2
    """Memory, as a multiple of what the most modest static plan holds at most."""
    too_little: float = 0.7
    """The same, for a budget that no plan keeps to."""


def calm_and_burst(options: Options) -> tuple[Regime, Regime]:
    """What is true in calm times, and during the burst."""
    scale, seconds = options.scale, 2 * options.window_seconds
    s0, s1, s2 = 6_000.0 * scale, 6_000.0 * scale, 150.0 * scale
    # A row of s1 has twelve partners in s0, and one row in eight has one in s2 while it is calm.
    keys = {"k1": Key(max(1, round(seconds * s0 / 12))), "k2": Key(max(1, round(8 * seconds * s2)))}
    return Regime((s0, s1, s2), keys), Regime((s0, s1, s2 * options.factor), keys)


def burst_course(options: Options) -> Course:
    """Calm, burst, calm."""
    query = keyed_query(KEYS, options.window_seconds * _SECOND)
    calm, fast = calm_and_burst(options)
    lengths = ((calm, options.before), (fast, options.during), (calm, options.after))
    regimes = [regime for regime, batches in lengths for _ in range(batches)]
    phases = tuple(p for p, (_, batches) in enumerate(lengths) for _ in range(batches))
    return Course(query, make_batches(query, regimes, 1.0, options.seed), phases)


def burst(options: Options, note: Note) -> Report:
    """One stream becomes twenty times faster for a while: time, and memory under a budget."""
    report = Report("adapt-burst", asdict(options))
    course = burst_course(options)
    calm, fast = calm_and_burst(options)
    truths = {
        "calm": calm.statistics(course.query, course.seconds),
        "burst": fast.statistics(course.query, course.seconds),
    }
    static = static_plans(course.query, truths)
    played = play(course, static, options, note)
    describe(report, played)
    report.claims = [
        at_most("best", f"within {_NEAR} times of the best static plan, {played.always}",
                played.over(played.always)["median"], _NEAR),
        same_results([played]),
    ]  # fmt: skip
    _memory(report, played, static[played.initial], options, note)
    return report


def _memory(report: Report, played: Played, plan: Node, options: Options, note: Note) -> None:
    """Run again with two budgets; add what the states held, and the claims about it."""
    contest = played.contest
    course = contest.course
    held = [np.array(runs[-1].bytes) for n, runs in contest.runs.items() if n in played.static]
    least = np.min([bytes_ for bytes_ in held if len(bytes_) == len(course.batches)], axis=0)
    modest = min(int(bytes_.max()) for bytes_ in held if len(bytes_) == len(course.batches))
    for title, factor in (("budget", options.budget), ("too little", options.too_little)):
        limit = factor * modest
        note(f"memory, {title}")
        outcome = measure(course, partial(adaptive, course.query, plan, Budget(memory=limit)))
        figures = within_budget(outcome, least, limit)
        said = [event for event in outcome.events if names_memory(event)]
        report.systems[f"adaptive, {title}"] = {
            "seconds": outcome.total,
            "results": outcome.results,
            "peak_MB": max(outcome.bytes) / 1e6,
            "budget_MB": limit / 1e6,
            "plan at the end": outcome.plan,
            "migrations": len(outcome.moves),
            **figures,
            "events that name the memory": len(said),
        }
        megabytes = [b / 1e6 for b in outcome.bytes]
        report.series.append(
            Series(f"held, {title}", range(len(megabytes)), megabytes, "MB", "batch")
        )
        report.claims.append(
            at_most(f"memory-{title.replace(' ', '-')}",
                    f"states never hold more than {_EXCEED} times the budget while a plan exists "
                    "that keeps to it: the most they hold over the budget",
                    figures["most over the budget while a plan keeps to it"], _EXCEED)
        )  # fmt: skip
        if title == "too little":
            report.claims.append(
                at_least("no-plan", "when no plan keeps to the budget an event says so and names "
                         "the memory: such events", float(len(said)), 1.0)
            )  # fmt: skip


def within_budget(
    outcome: ContestOutcome, least: Sequence[float] | np.ndarray, limit: float
) -> dict[str, Any]:
    """How a run kept to its budget in the batches in which some static plan does."""
    possible = np.asarray(least)[: len(outcome.bytes)] <= limit
    held = np.array(outcome.bytes) / limit
    return {
        "batches in which no plan keeps to it": int((~possible).sum()),
        "most over the budget while a plan keeps to it": float(held[possible].max(initial=0.0)),
        "batches over the budget": int((held > 1).sum()),
    }


def names_memory(event: dict[str, Any]) -> bool:
    """Whether an event says that no plan fits, for lack of memory.

    >>> names_memory({"event": "unqualified", "resource": "memory"})
    True
    """
    return (event["event"], event.get("resource")) == ("unqualified", "memory")
