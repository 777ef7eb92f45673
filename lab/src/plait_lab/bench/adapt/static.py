"""The static plans that an adaptive run is compared with: all of them."""

from __future__ import annotations

from collections.abc import Mapping

from plait.optimize.budget import Budget
from plait.optimize.choose import choose
from plait.optimize.costs import load
from plait.optimize.model import Model
from plait.optimize.search.candidate import Joins
from plait.optimize.statistics import Statistics
from plait.plan.jtree import Node
from plait.query.query import Query
from plait_lab.bench.plan_quality import best_orders
from plait_lab.exhaustive.plans import all_shapes

_DRAWS = 1024


def static_plans(query: Query, truths: Mapping[str, Statistics]) -> dict[str, Node]:
    """Every shape with the best probe orders for each of some truths, which have names.

    A shape whose best orders differ between truths is there once for each.
    """
    found: dict[str, Node] = {}
    known = set()
    for name, statistics in truths.items():
        joins = _joins(query, statistics)
        for shape in all_shapes(query):
            plan = best_orders(joins, shape)
            if plan not in known:
                known.add(plan)
                label = str(plan)
                found[label if label not in found else f"{label}, orders of {name}"] = plan
    return found


def planned(query: Query, statistics: Statistics) -> Node:
    """The plan that the optimiser chooses when it knows the truth about streams and pairs."""
    joins = _joins(query, statistics)
    return joins.plan(choose(joins, Budget()).plan)


def name_of(plan: Node, plans: Mapping[str, Node]) -> str:
    """What a plan is called among others."""
    return next(name for name, other in plans.items() if other == plan)


def _joins(query: Query, statistics: Statistics) -> Joins:
    return Joins(Model(query, statistics, load(), draws=_DRAWS))
