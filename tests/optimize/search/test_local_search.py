"""Local search: legal neighbours, and never further away than its start."""

from __future__ import annotations

from plait.optimize.search.candidate import inner
from plait.optimize.search.layer_one import best_binary
from plait.optimize.search.local_search import local_search, neighbours
from plait.plan.jtree import check_plan
from plait_lab.experiments.qualified.settings import draw


def test_neighbours_differ_by_one_state() -> None:
    joins = draw(5, 3).joins()
    for plan in (joins.mjoin(), best_binary(joins)):
        states = {node.streams for node in inner(plan)}
        for near in neighbours(joins, plan):
            check_plan(joins.model.query, joins.plan(near))
            assert len(states ^ {node.streams for node in inner(near)}) == 1


def test_it_comes_no_further_away() -> None:
    for number in range(10):
        setting = draw(6, number)
        joins, budget = setting.joins(), setting.budget
        starts = [joins.mjoin(), best_binary(joins)]
        found = local_search(joins, budget, starts)
        assert budget.excess(found.cost) <= min(budget.excess(s.cost) for s in starts)
