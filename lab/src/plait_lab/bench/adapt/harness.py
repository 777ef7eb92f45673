"""All static plans and the adaptive run over the same batches, and what a report says about them.

The adaptive run is one more system of the contest. It begins with one of the static plans, which
also runs to the end without the loop: that is what staying costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from plait.local.host import LocalRun
from plait.optimize.budget import Budget
from plait.plan.jtree import Node
from plait.query.query import Query
from plait_lab.bench.contest import Contest, ContestOutcome, Course
from plait_lab.reporting.report import (
    Claim,
    Note,
    PlotMark,
    Report,
    Series,
    equal,
    ratio_spread,
    spread,
)

OURS = "adaptive"
HINDSIGHT = "hindsight"
_FEW_PHASES = 3
"""More are not marked in figures."""


def adaptive(query: Query, plan: Node, budget: Budget | None = None) -> LocalRun:
    """The system that is looked at."""
    return LocalRun(query, plan, adapt=True, budget=budget)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is measured; every benchmark of this kind has these options."""

    finals: int = 3
    """Further runs of the adaptive system and of the plans that come into question."""
    stop: float = 5.0
    """A static plan is stopped when it has taken so many times the time of the best one."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Played:
    """A contest after its finals."""

    contest: Contest
    static: tuple[str, ...]
    initial: str
    """The plan that the adaptive run began with."""
    best: tuple[str, ...]
    """The best static plan of each phase."""
    always: str
    """The best static plan over all phases."""
    hindsight: tuple[float, ...]
    """Seconds of the best plan of each phase, together, for each final."""

    @property
    def ours(self) -> list[ContestOutcome]:
        """The adaptive runs."""
        return self.contest.runs[OURS]

    def over(self, name: str) -> Mapping[str, float]:
        """Our time over that of a static plan, or of the hindsight."""
        its = self.hindsight if name == HINDSIGHT else self.contest.totals(name)
        return ratio_spread(self.contest.totals(OURS), its)

    def over_phase(self, name: str, phase: int) -> Mapping[str, float]:
        """Our time over that of a static plan in one phase."""
        mine, its = (self.contest.runs[n] for n in (OURS, name))
        return ratio_spread([o.phases[phase] for o in mine], [o.phases[phase] for o in its])


Initial = Callable[[Contest], str]


def best_of_first_phase(contest: Contest) -> str:
    """The plan that was best before anything changed."""
    return min(contest.runs, key=lambda name: float(contest.by_phase(name)[0]))


def play(
    course: Course,
    static: Mapping[str, Node],
    effort: Effort,
    note: Note,
    initial: Initial | str = best_of_first_phase,
    budget: Budget | None = None,
) -> Played:
    """Heats of all static plans, then finals of the adaptive run and those in question.

    The plan that the adaptive run begins with is given, or found from the heats.
    """
    systems: dict[str, Callable[[], LocalRun]] = {
        name: partial(LocalRun, course.query, plan) for name, plan in static.items()
    }
    contest = Contest(course, systems, note)
    contest.warm_up(list(static)[:1])
    contest.round(static, "heat", effort.stop)
    start = initial if isinstance(initial, str) else initial(contest)
    finalists = list(dict.fromkeys([*contest.finalists(static), start]))
    contest.systems[OURS] = partial(adaptive, course.query, static[start], budget)
    contest.warm_up([OURS])
    contest.forget([*finalists, OURS])
    for final in range(effort.finals):
        contest.in_turn([*finalists, OURS], f"final {final + 1} of {effort.finals}")
    best, hindsight = contest.hindsight(finalists)
    always = min(finalists, key=contest.total)
    return Played(contest, tuple(static), start, tuple(best), always, tuple(hindsight))


def describe(report: Report, played: Played, prefix: str = "") -> None:
    """One table of all static plans, the hindsight and the adaptive run; times per batch."""
    contest = played.contest
    for name in sorted(played.static, key=contest.total):
        roles = ["initial"] * (name == played.initial)
        roles += [f"best of phase {p + 1}" for p, b in enumerate(played.best) if b == name]
        if len(played.best) > 1:
            roles += ["best of all"] * (name == played.always)
        figures = contest.figures(name)
        report.systems[prefix + name] = figures | ({"role": ", ".join(roles)} if roles else {})
    report.systems[prefix + HINDSIGHT] = {
        "seconds": spread(played.hindsight)["median"],
        "spread": spread(played.hindsight),
        "plans": list(played.best),
    }
    last = played.ours[-1]
    report.systems[prefix + OURS] = contest.figures(OURS) | {
        "migrations": spread([len(o.moves) for o in played.ours]),
        "plan at the end": last.plan,
    }
    report.ratios[f"{prefix}adaptive / hindsight"] = played.over(HINDSIGHT)
    report.ratios[f"{prefix}adaptive / best static plan"] = played.over(played.always)
    report.ratios[f"{prefix}adaptive / initial plan"] = played.over(played.initial)
    report.ratios[f"{prefix}moves"] = [
        f"batch {m.batch}: {m.strategy} to {m.plan}, pause {m.pause * 1000:.3g} ms"
        for m in last.moves
    ]
    for name in dict.fromkeys([played.initial, *played.best, OURS]):
        outcome = contest.runs[name][-1]
        report.series.append(per_batch(prefix + name, outcome))
    phases = contest.course.phases
    if not prefix:
        report.marks += [
            PlotMark(f"phase {b + 1}", n + 1)
            for n, (a, b) in enumerate(pairwise(phases))
            if a != b and max(phases) < _FEW_PHASES
        ]


def per_batch(label: str, outcome: ContestOutcome) -> Series:
    """A run as a line: milliseconds by batch."""
    milliseconds = [1000 * s for s in outcome.seconds]
    return Series(label, range(len(milliseconds)), milliseconds, "CPU ms", "batch", y_scale="log")


def same_results(played: Sequence[Played]) -> Claim:
    """That all runs that came to their end found as many results."""
    found = [
        tuple({o.results for runs in p.contest.runs.values() for o in runs if not o.stopped})
        for p in played
    ]
    agreed = [counts[0] if len(counts) == 1 else counts for counts in found]
    same = equal("results", "all find as many results", [len(counts) for counts in found])
    holds = all(len(counts) == 1 for counts in found)
    return Claim(same.id, same.claim, ", ".join(map(str, agreed)), float(holds), "equal", holds)


@dataclass(frozen=True, slots=True)
class PlanReaction:
    """How a run answered a change at a batch: None if it did not."""

    first: int | None
    """Batches of the new phase before the first migration."""
    settled: int | None
    """Batches of the new phase before the last migration."""

    def figures(self, seconds: float) -> dict[str, Any]:
        """For a report; a batch covers so many seconds of event time."""
        if self.first is None or self.settled is None:
            return {"new plan after": "never"}
        return {
            "first new plan after batches": self.first,
            "first new plan after seconds of event time": self.first * seconds,
            "last new plan after batches": self.settled,
            "last new plan after seconds of event time": self.settled * seconds,
        }


def reaction(outcome: ContestOutcome, flip: int, end: int) -> PlanReaction:
    """How a run answered a change that came with batch `flip` and lasted until batch `end`."""
    moves = [m.batch - flip for m in outcome.moves if flip < m.batch < end]
    return PlanReaction(min(moves, default=None), max(moves, default=None))
