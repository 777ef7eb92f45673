"""Models of every kind of graph, small enough to try all plans."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from plait.optimize.costs import DEFAULT, PAPER, Costs
from plait.optimize.model import Cost, Model
from plait.optimize.search.candidate import Joins
from plait.optimize.statistics import Statistics
from plait.query.query import Query
from plait.testing.examples import chain, clique, cycle, star
from plait_lab.exhaustive.plans import all_plans

GRAPHS = {"chain": chain, "star": star, "cycle": cycle, "clique": clique}


def random_model(query: Query, seed: int, costs: Costs = PAPER) -> Model:
    """Rates and selectivities at random."""
    random = Random(seed)
    rates = {name: random.uniform(1, 100) for name in query.names}
    chances = {str(e): random.uniform(0.001, 0.2) for e in query.equalities}
    if len(query.graph.classes) == 1:
        chances = dict.fromkeys(chances, random.uniform(0.001, 0.2))
    return Model(query, Statistics.of(rates, chances, batch=1.0), costs)


def brute_force(model: Model) -> list[Cost]:
    """The costs of all legal plans with all legal probe orders."""
    return [model.cost(plan) for plan in all_plans(model.query)]


@pytest.fixture(params=list(product(GRAPHS, (3, 4), (1, 2))), ids=lambda p: f"{p[0]}{p[1]}-{p[2]}")
def joins(request: pytest.FixtureRequest) -> Joins:
    """A search space whose plans can all be listed."""
    graph, streams, seed = request.param
    if graph == "clique" and streams == 4:
        streams = 3  # an mjoin of four has 1,296 combinations of orders
    costs = PAPER if seed == 1 else DEFAULT
    return Joins(random_model(GRAPHS[graph](streams), seed, costs))
