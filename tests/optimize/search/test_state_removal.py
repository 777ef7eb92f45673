"""State-removal: which states, in which order, and what is left."""

from __future__ import annotations

import pytest

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import inner
from plait.optimize.search.layer_one import best_binary
from plait.optimize.search.state_removal import ratio, removals, state_removal
from plait.plan.jtree import check_plan
from plait_lab.experiments.qualified.settings import draw


def test_each_removal_takes_exactly_one_state_away() -> None:
    joins = draw(8, 4).joins()
    plan = best_binary(joins)
    states = {node.streams for node in inner(plan)}
    found = dict(removals(joins, plan))
    assert set(found) == states
    for state, without in found.items():
        assert {node.streams for node in inner(without)} == states - {state}
        check_plan(joins.model.query, joins.plan(without))
        freed = plan.cost.tuples - without.cost.tuples
        assert freed == pytest.approx(joins.model.stored(state), rel=1e-6, abs=1e-6)
        more = without.cost.cpu - plan.cost.cpu
        assert ratio(joins, plan, state, without) == pytest.approx(more / freed, rel=1e-3)


def test_the_first_removal_has_the_smallest_ratio() -> None:
    joins = draw(7, 2).joins()
    plan = best_binary(joins)
    cheapest = min(ratio(joins, plan, s, w) for s, w in removals(joins, plan))
    just_below = Budget(cpu=None, memory=plan.cost.tuples * (1 - 1e-9), unit="tuples")
    first = state_removal(joins, just_below, plan)
    (gone,) = {n.streams for n in inner(plan)} - {n.streams for n in inner(first)}
    assert ratio(joins, plan, gone, first) == pytest.approx(cheapest)


def test_with_no_memory_left_it_ends_at_the_mjoin() -> None:
    joins = draw(6, 1).joins()
    memory = joins.mjoin().cost.tuples * (1 + 1e-9)
    plan = state_removal(joins, Budget(memory=memory, unit="tuples"))
    assert not list(inner(plan))
