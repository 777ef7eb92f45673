"""Binary trees by dynamic programming against all binary trees."""

from __future__ import annotations

import pytest
from tests.optimize.conftest import random_model

from plait.optimize.search.binary_dp import binary_dp, connected_sets
from plait.optimize.search.candidate import Joins, kind
from plait.query.query import Query
from plait.testing.examples import chain, clique, cycle, star
from plait_lab.exhaustive.plans import binary_trees


@pytest.mark.parametrize(
    "query", [chain(6), star(5), cycle(5), clique(5)], ids=["chain", "star", "cycle", "clique"]
)
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_best_of_all_binary_trees(query: Query, seed: int) -> None:
    joins = Joins(random_model(query, seed))
    best = binary_dp(joins)
    assert best is not None
    assert kind(best) in ("binary tree", "mjoin")
    every = min(joins.model.cost(plan).cpu for plan in binary_trees(query))
    assert best.cost.cpu == pytest.approx(every)
    assert joins.model.cost(joins.plan(best)).cpu == pytest.approx(best.cost.cpu)


def test_connected_sets_of_the_usual_graphs() -> None:
    for query, count in ((chain(6), 21), (star(6), 5 + 32), (clique(6), 63), (cycle(6), 31)):
        sets = list(connected_sets(random_model(query, 1)))
        assert len(sets) == len(set(sets)) == count


def test_it_gives_up_beyond_the_limit() -> None:
    assert binary_dp(Joins(random_model(clique(6), 1)), limit=62) is None
