"""Polynomial binary trees: legal, and near the best where that is known."""

from __future__ import annotations

import statistics

import pytest

from plait.optimize.search.binary_dp import binary_dp
from plait.optimize.search.binary_greedy import binary_greedy, by_pairs, one_by_one
from plait.optimize.search.candidate import inner
from plait.plan.jtree import check_plan
from plait_lab.experiments.qualified.settings import draw


@pytest.mark.slow
@pytest.mark.parametrize("streams", [5, 7])
def test_the_gap_to_the_best_is_small(streams: int) -> None:
    gaps = []
    for number in range(15):
        joins = draw(streams, number).joins()
        best = binary_dp(joins)
        assert best is not None
        found = binary_greedy(joins)
        assert found.cost.cpu <= min(by_pairs(joins).cost.cpu, one_by_one(joins).cost.cpu)
        gaps.append(found.cost.cpu / best.cost.cpu)
    assert min(gaps) >= 1 - 1e-9
    assert statistics.median(gaps) <= 1.05


@pytest.mark.parametrize("streams", [4, 12, 20])
def test_the_tree_is_a_legal_binary_tree(streams: int) -> None:
    joins = draw(streams, 3).joins()
    found = binary_greedy(joins)
    check_plan(joins.model.query, joins.plan(found))
    assert all(len(node.children) == 2 for node in (found, *inner(found)))
