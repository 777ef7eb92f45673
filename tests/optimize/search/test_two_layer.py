"""The two-layer framework: its four answers, and its agreement with the exhaustive search."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.optimize.conftest import brute_force

from plait.optimize.budget import Budget
from plait.optimize.outcome import floor
from plait.optimize.search.candidate import Joins, kind
from plait.optimize.search.pareto import pareto_finder
from plait.optimize.search.two_layer import two_layer
from plait.plan.jtree import check_plan
from plait.testing.models import long_chain_model
from plait_lab.experiments.qualified.settings import draw


@pytest.mark.slow
@pytest.mark.parametrize("streams", [3, 4, 5, 6])
def test_wherever_a_plan_exists_one_is_found(streams: int) -> None:
    answers: Counter[str] = Counter()
    for number in range(25):
        setting = draw(streams, number)
        joins, budget = setting.joins(), setting.budget
        outcome = two_layer(joins, budget)
        exists = bool(pareto_finder(joins, budget).plans)
        answers[outcome.answer] += 1
        assert (outcome.answer != "none") == exists
        if outcome.answer == "none":
            assert not budget.holds(outcome.plan.cost)
        else:
            assert budget.holds(outcome.plan.cost)
            assert outcome.answer == kind(outcome.plan)
            check_plan(joins.model.query, joins.plan(outcome.plan))
    assert set(answers) >= {"mjoin", "binary tree", "none"}
    assert streams == 3 or answers["jtree"]


def test_every_algorithm_has_its_say_in_order() -> None:
    joins = Joins(long_chain_model())
    outcome = two_layer(joins, Budget(cpu=0.1339, memory=1500, unit="tuples"))
    names = [attempt.algorithm for attempt in outcome.attempts]
    assert names[:4] == ["greedy mjoin", "binary tree", "state-selection", "state-removal"]
    assert names[-1] == "local search"
    assert outcome.answer == "none" and not outcome.proven


def test_what_every_plan_needs_is_a_lower_bound(joins: Joins) -> None:
    least = floor(joins)
    for cost in brute_force(joins.model):
        assert least.cpu <= cost.cpu * (1 + 1e-9)
        assert least.tuples <= cost.tuples * (1 + 1e-9)
        assert least.bytes <= cost.bytes * (1 + 1e-9)


@pytest.mark.parametrize("budget", [Budget(cpu=1e-9), Budget(memory=1.0, unit="tuples")])
def test_impossible_budgets_are_proven_at_once(budget: Budget) -> None:
    outcome = two_layer(Joins(long_chain_model()), budget)
    assert outcome.answer == "none" and outcome.proven
    assert len(outcome.attempts) == 1


@pytest.mark.slow
def test_twenty_streams_have_a_legal_plan_that_is_what_the_answer_says() -> None:
    for number in range(5):
        setting = draw(20, number)
        joins, budget = setting.joins(), setting.budget
        outcome = two_layer(joins, budget)
        check_plan(joins.model.query, joins.plan(outcome.plan))
        assert (outcome.answer != "none") == budget.holds(outcome.plan.cost)
        assert outcome.answer in ("none", kind(outcome.plan))
