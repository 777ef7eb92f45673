"""Local re-optimisation: each machine of a virtual cluster changes its own plan.

Every so often a machine takes the rates at which the rows of its own groups arrive, prices every
binary tree by the cost model, and goes over to the cheapest if that is worth a margin. Rates are
those of arrival, not of what it has worked off, so a machine that is behind sees a change at once.
What the conditions let pass is told beforehand.

The adaptive loop of a node (`plait.adapt.loop`) does more: it learns selectivities, guards its
changes and weighs their price. This is as much as the D-CAPE paper has: the optimiser is not its
subject.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from plait.optimize.costs import Costs
from plait.optimize.model import Model
from plait.optimize.statistics import Statistics
from plait.plan.jtree import Join, Leaf, Node
from plait.plan.migration import Strategy
from plait.plan.routed import Plan
from plait.query.query import Query
from plait_lab.exhaustive.plans import binary_trees
from plait_lab.virtual.cluster import VirtualCluster


@dataclass(frozen=True, slots=True)
class LocalPolicy:
    """When a machine looks at its plan, and by what it decides."""

    costs: Costs
    selectivities: Mapping[str, float]
    """Of every condition."""
    every: float = 5.0
    """Seconds between two looks."""
    margin: float = 0.5
    """The share of the old plan's cost that must be saved."""
    strategy: Strategy = "moving-state"
    start: float = 0.0
    """When it begins to look."""
    only: frozenset[int] | None = None
    """The machines that do so; None: all."""


class PlanChoice(NamedTuple):
    """The plan to go over to, if there is one, and why."""

    plan: Node | None
    reason: str


def better_plan(
    query: Query, plan: Plan, rates: Mapping[str, float], policy: LocalPolicy
) -> PlanChoice:
    """The cheapest binary tree at these rates, if it saves the margin.

    >>> from plait.optimize.costs import PAPER
    >>> from plait.testing.examples import clique
    >>> from plait.plan.text import read_tree
    >>> query = clique(3)
    >>> policy = LocalPolicy(PAPER, {str(e): 0.1 for e in query.equalities})
    >>> names = query.names
    >>> plan = read_tree(query, f"(({names[0]} {names[1]}) {names[2]})")
    >>> rates = {names[0]: 100.0, names[1]: 5.0, names[2]: 5.0}
    >>> better_plan(query, plan, rates, policy).plan == plan
    False
    >>> better_plan(query, plan, dict.fromkeys(names, 9.0), policy).plan is None
    True
    """
    if not isinstance(plan, Join | Leaf):
        return PlanChoice(None, "a router has no plan to change")
    if not all(rate > 0 for rate in rates.values()):
        return PlanChoice(None, "some stream has not been seen")
    model = Model(query, Statistics.of(rates, policy.selectivities), policy.costs)
    priced = [(model.cost(tree).cpu, str(tree), tree) for tree in binary_trees(query)]
    least, _, best = min(priced, key=lambda found: found[:2])
    now = model.cost(plan).cpu
    said = f"{best} takes {least:.3g} s/s, {plan} {now:.3g} s/s"
    if least > (1 - policy.margin) * now:
        return PlanChoice(None, f"{said}: less than {policy.margin:.0%} to save")
    return PlanChoice(best, said)


@dataclass(slots=True)
class LocalPlans:
    """Every machine of a cluster looks after its plan."""

    cluster: VirtualCluster
    policy: LocalPolicy
    changes: list[tuple[float, int, str]] = field(default_factory=list)
    """When which machine changed its plan, and why."""
    _arrived: np.ndarray[tuple[int, int], np.dtype[np.int64]] | None = None

    def begin(self) -> None:
        """Look from now on."""
        self.cluster.line.plan(self.policy.start, self._look)

    def _look(self, now: float) -> None:
        cluster, before = self.cluster, self._arrived
        self._arrived = cluster.arrived.copy()
        if before is not None:
            came = cluster.arrived - before
            places = cluster.manager.places
            for number, machine in enumerate(cluster.processors):
                mine = [g for g, place in enumerate(places) if number in place.processors]
                rates = came[mine].sum(axis=0) / self.policy.every
                left_out = self.policy.only is not None and number not in self.policy.only
                if left_out or machine.wanted or machine.store.engine.migrating:
                    continue
                named = dict(zip(cluster.query.names, rates.tolist(), strict=True))
                choice = better_plan(cluster.query, machine.plan, named, self.policy)
                if choice.plan is not None:
                    self.changes.append((now, number, choice.reason))
                    cluster.migrate(number, choice.plan, self.policy.strategy)
        cluster.line.plan(now + self.policy.every, self._look)
