"""JTree-Finder as in the paper against all plans."""

from __future__ import annotations

import pytest
from tests.optimize.conftest import brute_force

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import Joins
from plait_lab.exhaustive.jtree_finder import jtree_finder
from plait_lab.exhaustive.plans import all_shapes


def test_without_limits_it_finds_every_shape_once(joins: Joins) -> None:
    found = jtree_finder(joins, Budget())
    shapes = [str(joins.plan(plan)) for plan in found.plans]
    assert sorted(shapes) == sorted(map(str, all_shapes(joins.model.query)))


def test_with_limits_it_finds_what_is_within_them(joins: Joins) -> None:
    free = jtree_finder(joins, Budget()).plans
    cpu = sorted(p.cost.cpu for p in free)[len(free) // 2]
    tuples = sorted(p.cost.tuples for p in free)[len(free) // 2]
    budget = Budget(cpu, tuples, "tuples")
    found = {str(joins.plan(p)) for p in jtree_finder(joins, budget).plans}
    assert found == {str(joins.plan(p)) for p in free if budget.holds(p.cost)}


def test_the_best_plan_is_the_best_of_all_plans_and_orders(joins: Joins) -> None:
    best = min(p.cost.cpu for p in jtree_finder(joins, Budget()).plans)
    assert best == pytest.approx(min(c.cpu for c in brute_force(joins.model)))


def test_it_ends_early_and_gives_up(joins: Joins) -> None:
    nothing = jtree_finder(joins, Budget(cpu=1e-12))
    assert nothing.plans == () and not nothing.gave_up and nothing.kept == 0
    assert jtree_finder(joins, Budget(), limit=2).gave_up
