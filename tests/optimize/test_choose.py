"""The choice: the best of all plans for few streams, something sensible for many."""

from __future__ import annotations

import pytest
from tests.optimize.conftest import brute_force

from plait.optimize.budget import Budget
from plait.optimize.choose import choose
from plait.optimize.search.candidate import Joins
from plait.optimize.search.pareto import pareto_finder
from plait_lab.experiments.qualified.settings import draw


@pytest.mark.slow
def test_without_limits_the_plan_has_the_least_cpu(joins: Joins) -> None:
    outcome = choose(joins, Budget())
    assert outcome.answer != "none"
    assert outcome.plan.cost.cpu == pytest.approx(min(c.cpu for c in brute_force(joins.model)))


@pytest.mark.slow
def test_with_limits_the_qualified_plan_with_the_least_cpu() -> None:
    for number in range(15):
        setting = draw(5, number)
        joins = setting.joins()
        outcome = choose(joins, setting.budget)
        plans = pareto_finder(joins, setting.budget).plans
        assert (outcome.answer == "none") == (not plans)
        assert outcome.proven
        if plans:
            assert outcome.plan.cost.cpu == pytest.approx(plans[0].cost.cpu)


def test_many_streams_without_limits() -> None:
    joins = draw(12, 1).joins()
    outcome = choose(joins, Budget())
    cpus = [attempt.plan.cost.cpu for attempt in outcome.attempts]
    assert outcome.plan.cost.cpu == min(cpus)


def test_when_there_is_none_the_nearest_of_all_plans_is_named(joins: Joins) -> None:
    every = pareto_finder(joins, Budget()).plans
    for limits in ((0.5, None), (None, 0.5), (0.5, 0.5)):
        cpu, memory = limits
        budget = Budget(
            None if cpu is None else cpu * min(p.cost.cpu for p in every),
            None if memory is None else memory * min(p.cost.bytes for p in every),
        )
        outcome = choose(joins, budget)
        assert outcome.answer == "none" and outcome.proven
        nearest = min(budget.excess(p.cost) for p in every)
        assert budget.excess(outcome.plan.cost) == pytest.approx(nearest)
