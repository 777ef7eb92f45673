"""The Pareto frontier against all plans, and against the paper's search."""

from __future__ import annotations

from random import Random

import pytest

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import Joins
from plait.optimize.search.pareto import pareto_finder
from plait_lab.exhaustive.jtree_finder import jtree_finder
from plait_lab.experiments.qualified.settings import draw


def _frontier(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other one beats."""
    return sorted(
        {p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    )


@pytest.mark.parametrize("unit", ["tuples", "bytes"])
def test_the_frontier_is_that_of_all_plans(joins: Joins, unit: str) -> None:
    budget = Budget(unit="tuples") if unit == "tuples" else Budget()
    every = jtree_finder(joins, budget).plans
    wanted = _frontier([(p.cost.cpu, budget.memory_of(p.cost)) for p in every])
    found = [(p.cost.cpu, budget.memory_of(p.cost)) for p in pareto_finder(joins, budget).plans]
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a == pytest.approx(b)


@pytest.mark.slow
@pytest.mark.parametrize("streams", [3, 4, 5, 6])
def test_the_verdict_is_that_of_the_paper(streams: int) -> None:
    verdicts = []
    for number in range(12):
        setting = draw(streams, number)
        paper = jtree_finder(setting.joins(), setting.budget)
        pareto = pareto_finder(setting.joins(), setting.budget)
        assert bool(paper.plans) == bool(pareto.plans)
        verdicts.append(bool(pareto.plans))
        if paper.plans:
            cheapest = min(p.cost.cpu for p in paper.plans)
            smallest = min(p.cost.tuples for p in paper.plans)
            assert pareto.plans[0].cost.cpu == pytest.approx(cheapest)
            assert pareto.plans[-1].cost.tuples == pytest.approx(smallest)
    assert {True, False} == set(verdicts)


@pytest.mark.slow
def test_wider_budgets_never_lose_a_plan() -> None:
    random = Random(1)
    for number in range(6):
        setting = draw(5, number)
        found = []
        for factor in sorted(random.uniform(0.5, 2) for _ in range(4)):
            budget = Budget(factor, setting.memory * factor, "tuples")
            found.append(bool(pareto_finder(setting.joins(), budget).plans))
        assert found == sorted(found)


def test_it_gives_up_when_its_time_is_over() -> None:
    found = pareto_finder(draw(8, 0).joins(), Budget(unit="tuples"), seconds=0.0)
    assert found.gave_up and found.plans == ()
