"""Probe orders against all legal ones."""

from __future__ import annotations

import pytest
from tests.optimize.conftest import random_model

from plait.optimize.search.candidate import Joins
from plait.optimize.search.orders import exact_order, greedy_order, probe_order
from plait.plan.jtree import Join, mjoin
from plait.query.query import Query
from plait.testing.examples import chain, clique, star
from plait_lab.exhaustive.plans import all_orders


def test_exact_orders_are_the_best_of_all(joins: Joins) -> None:
    model = joins.model
    leaves = tuple(1 << i for i in range(model.size))
    best = joins.mjoin().cost.cpu
    every = [model.cost(plan).cpu for plan in all_orders(model.query, mjoin(model.query))]
    assert best == pytest.approx(min(every))
    for c in range(model.size):
        assert probe_order(model, leaves, c) == exact_order(model, leaves, c)


@pytest.mark.parametrize("query", [chain(6), star(6), clique(6)], ids=["chain", "star", "clique"])
@pytest.mark.parametrize("seed", range(5))
def test_greedy_orders_are_legal_and_near_the_best(query: Query, seed: int) -> None:
    model = random_model(query, seed)
    leaves = tuple(1 << i for i in range(model.size))
    orders = [greedy_order(model, leaves, c) for c in range(model.size)]
    plan = Join(mjoin(query).children, tuple(order.probes for order in orders))
    from plait.plan.jtree import check_plan

    check_plan(query, plan)
    exact = sum(exact_order(model, leaves, c).cpu for c in range(model.size))
    greedy = sum(order.cpu for order in orders)
    assert exact <= greedy * (1 + 1e-9)
    assert greedy <= 2 * exact


def test_children_that_do_not_hang_together() -> None:
    model = random_model(chain(3), 1)
    for order in (greedy_order, exact_order):
        with pytest.raises(ValueError, match="not connected"):
            order(model, (0b001, 0b100), 0)
