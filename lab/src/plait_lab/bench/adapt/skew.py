"""Partitions that differ: a plan per partition against one plan for all.

The rows of a chain of four streams come in partitions, as a hash of a key would split them, each
joined by a run of its own. In some partitions one end of the chain matches often, in others the
other end, and nothing changes with time. Every partition's adaptive run begins with the plan that
is best for all of them together; the phases of the table are the partitions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from plait.query.query import Query
from plait_lab.bench.adapt.flips import CHAIN, selectivities_flip
from plait_lab.bench.adapt.harness import HINDSIGHT, Effort, describe, play, same_results
from plait_lab.bench.adapt.static import static_plans
from plait_lab.bench.contest import Contest, Course
from plait_lab.reporting.report import Note, Report, at_least, at_most
from plait_lab.workloads.changing import Batches, Regime, between, make_batches
from plait_lab.workloads.keyed import keyed_query

_SECOND = 1_000_000
_NEAR = 1.15


@dataclass(frozen=True, slots=True)
class Options(Effort):
    """What can be varied."""

    batches: int = 50
    """Of every partition."""
    window_seconds: int = 4
    scale: float = 0.8
    """Factor to all rates and numbers of keys."""


def partitions(options: Options) -> list[Regime]:
    """What is true in each partition: three at the ends of a scale, and one in the middle."""
    one, other = selectivities_flip(options.scale).regimes
    return [one, other, between(one, other, 0.5), other]


def skew_course(query: Query, options: Options) -> Course:
    """All partitions one after the other, each for runs of its own."""
    regimes = partitions(options)
    batches: Batches = []
    phases, starts = list[int](), list[int]()
    for p, regime in enumerate(regimes):
        starts.append(len(batches))
        batches += make_batches(query, [regime] * options.batches, 1.0, 100 * options.seed + p)
        phases += [p] * options.batches
    return Course(query, batches, tuple(phases), starts=tuple(starts))


def skew(options: Options, note: Note) -> Report:
    """Partitions with different statistics: a plan for each against the best plan for all."""
    report = Report("adapt-skew", asdict(options))
    query = keyed_query(CHAIN, options.window_seconds * _SECOND)
    course = skew_course(query, options)
    truths = {
        f"partition {p + 1}": regime.statistics(query, course.seconds)
        for p, regime in enumerate(partitions(options))
    }

    def best_for_all(contest: Contest) -> str:
        return min(contest.runs, key=contest.total)

    played = play(course, static_plans(query, truths), options, note, best_for_all)
    describe(report, played)
    single = played.contest.total(played.always)
    hindsight = report.systems[HINDSIGHT]["seconds"]
    report.claims = [
        at_least("differ", "the best plans of the partitions differ, so one plan for all takes "
                 "longer than the best of each by the factor", single / hindsight, _NEAR),
        at_most("single", f"faster than the best single plan for all, {played.always}",
                played.over(played.always)["median"], 1.0),
        same_results([played]),
    ]  # fmt: skip
    return report
