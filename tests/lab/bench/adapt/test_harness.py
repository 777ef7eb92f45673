"""The harness: an adaptive run beside all static plans, what is claimed of it, its reaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest

from plait.local.host import LocalRun, Rows
from plait.optimize.budget import Budget
from plait.plan.jtree import Node
from plait.query.query import Query
from plait_lab.bench.adapt import harness
from plait_lab.bench.adapt.burst import within_budget
from plait_lab.bench.adapt.flips import Options, flip_claims, selectivities_flip
from plait_lab.bench.adapt.harness import (
    HINDSIGHT,
    OURS,
    Played,
    describe,
    play,
    reaction,
    same_results,
)
from plait_lab.bench.adapt.static import planned, static_plans
from plait_lab.bench.contest import Contest, ContestMove, ContestOutcome, Course
from plait_lab.exhaustive.plans import all_shapes
from plait_lab.reporting.report import Report


def outcome(*phases: float, results: int = 1, moves: tuple[int, ...] = ()) -> ContestOutcome:
    made = tuple(ContestMove(batch, "p", "moving-state", 0.0) for batch in moves)
    return ContestOutcome(phases, phases, results, (1,), "p", made)


def played(ours: list[ContestOutcome]) -> Played:
    runs = {"old": [outcome(1, 12)] * 2, "new": [outcome(8, 2)] * 2, OURS: ours}
    contest = Contest(Course(selectivities_flip().query(Options()), [], ()), {}, runs=runs)
    return Played(contest, ("old", "new"), "old", ("old", "new"), "new", (3.0, 3.0))


@pytest.mark.parametrize(
    ("ours", "holds"),
    [
        ([outcome(1, 2.3), outcome(1, 2.4)], [True, True, True]),
        ([outcome(1, 3), outcome(1, 3)], [True, False, True]),
        ([outcome(1, 4), outcome(1, 4)], [True, False, False]),
    ],
)
def test_flip_claims_follow_from_the_times(ours: list[ContestOutcome], holds: list[bool]) -> None:
    claims = flip_claims(played(ours))
    assert [c.id for c in claims] == ["flip", "hindsight", "stay"]
    assert [c.holds for c in claims] == holds
    assert claims[0].value == pytest.approx(12 / 2)
    assert claims[2].value == pytest.approx(13 / ours[0].total, rel=0.05)


def test_ratios_are_of_the_same_final() -> None:
    found = played([outcome(1, 2), outcome(2, 4)])
    assert found.over(HINDSIGHT) == {"median": 1.5, "min": 1.0, "max": 2.0, "runs": 2}
    assert found.over_phase("new", 1)["median"] == pytest.approx(1.5)


def test_other_results_are_noticed() -> None:
    assert same_results([played([outcome(1, 2), outcome(1, 2)])]).holds
    wrong = same_results([played([outcome(1, 2), outcome(1, 2, results=2)])])
    assert not wrong.holds and wrong.measured == "(1, 2)"


def test_a_reaction_is_counted_from_the_flip() -> None:
    found = reaction(outcome(1, moves=(3, 12, 15)), flip=10, end=20)
    assert (found.first, found.settled) == (2, 5)
    assert found.figures(0.5)["first new plan after seconds of event time"] == 1.0
    assert reaction(outcome(1, moves=(3,)), flip=10, end=20).figures(1.0) == {
        "new plan after": "never"
    }


def test_a_budget_counts_only_while_a_plan_keeps_to_it() -> None:
    held = ContestOutcome((1, 1, 1), (3,), 0, (50, 120, 400), "p")
    found = within_budget(held, [40, 90, 200], 100.0)
    assert found["most over the budget while a plan keeps to it"] == pytest.approx(1.2)
    assert found["batches in which no plan keeps to it"] == 1
    assert found["batches over the budget"] == 2


def test_static_plans_are_all_shapes_with_the_best_orders_of_each_truth() -> None:
    flip, options = selectivities_flip(), Options()
    query = flip.query(options)
    truths = {f"phase {p}": r.statistics(query, 1.0) for p, r in enumerate(flip.regimes)}
    plans = static_plans(query, truths)
    assert {str(p) for p in plans.values()} == {str(p) for p in all_shapes(query)}
    assert len(set(plans.values())) == len(plans) > len({str(p) for p in plans.values()})
    for truth in truths.values():
        assert planned(query, truth) in plans.values()
    assert planned(query, truths["phase 0"]) != planned(query, truths["phase 1"])


@pytest.mark.slow
def test_the_adaptive_run_is_one_more_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a loop that knows when and where to go, everything claimed of a flip is there."""
    options = Options(before=8, after=12, scale=0.05, finals=2, stop=1000.0)
    flip = selectivities_flip(options.scale)
    course = flip.course(options)
    query = course.query
    goal = planned(query, flip.regimes[1].statistics(query, 1.0))

    class Knowing(LocalRun):
        def stream(self, batch: Mapping[str, Rows]) -> Iterator[pa.RecordBatch]:
            if self.counts.batches == options.before + 2:
                self.migrate(goal)
            yield from super().stream(batch)

    def knowing(query: Query, plan: Node, budget: Budget | None = None) -> LocalRun:
        return Knowing(query, plan)

    monkeypatch.setattr(harness, "adaptive", knowing)
    static = static_plans(query, {"phase 1": flip.regimes[0].statistics(query, 1.0)})
    start = str(planned(query, flip.regimes[0].statistics(query, 1.0)))
    notes: list[str] = []
    found = play(course, static, options, notes.append, start)
    assert found.initial == start and found.ours[0].plan == str(goal)
    assert all(reaction(o, options.before, len(course.batches)).first == 2 for o in found.ours)
    assert same_results([found]).holds and found.ours[0].results > 0
    assert len(found.hindsight) == len(found.ours) == 2
    assert notes[0].startswith("warming up") and any("final 2 of 2" in n for n in notes)
    report = Report("test", {})
    describe(report, found)
    assert set(report.systems) == {*static, HINDSIGHT, OURS}
    assert "initial" in report.systems[start]["role"]
    assert report.systems[OURS]["plan at the end"] == str(goal)
    assert [m.label for m in report.marks] == ["phase 2"]
