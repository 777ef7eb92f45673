"""State-selection: which edges, which merges, and what it never does."""

from __future__ import annotations

import pytest

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import Joins, inner
from plait.optimize.search.state_selection import edges, merge, state_selection
from plait.plan.jtree import check_plan
from plait.testing.models import long_chain_model
from plait_lab.experiments.qualified.settings import draw


def test_edges_are_counted_in_the_probe_orders() -> None:
    joins = Joins(long_chain_model())
    groups = tuple(joins.leaves())
    found = edges(joins, groups)
    # Each of the four orders of a chain of four uses three edges.
    assert sum(e.frequency for e in found) == 4 * 3
    assert all(e.weight == joins.model.stored(0b11 << e.left) for e in found)
    assert [e.worth for e in found] == sorted((e.worth for e in found), reverse=True)


def test_a_merge_flattens_only_where_both_resources_gain() -> None:
    joins = Joins(long_chain_model())
    a, b, c, _ = joins.leaves()
    below = joins.combine((a, b))
    budget = Budget(unit="tuples")
    merged = merge(joins, below, c, budget)
    flat = joins.combine((a, b, c))
    deep = joins.combine((below, c))
    gains = flat.cost.cpu < deep.cost.cpu and flat.cost.tuples < deep.cost.tuples
    assert merged == (flat if gains else deep)


@pytest.mark.slow
def test_it_starts_at_the_mjoin_and_saves_cpu_within_the_memory() -> None:
    for number in range(25):
        setting = draw(7, number)
        joins, budget = setting.joins(), setting.budget
        plan = state_selection(joins, budget)
        mjoin = joins.mjoin()
        check_plan(joins.model.query, joins.plan(plan))
        assert plan.cost.cpu <= mjoin.cost.cpu
        assert plan.cost.tuples >= mjoin.cost.tuples or not list(inner(plan))
        assert budget.holds_memory(plan.cost) or plan == mjoin


def test_to_the_letter_it_never_finds_more() -> None:
    for number in range(25):
        setting = draw(6, number)
        joins, budget = setting.joins(), setting.budget
        if budget.holds(state_selection(joins, budget, literal=True).cost):
            assert budget.holds(state_selection(joins, budget).cost)
