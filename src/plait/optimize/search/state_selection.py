"""State-selection (algorithm 3): from the mjoin on, keep the intermediate results that save most.

A merged graph has groups of streams as its vertices; the plan is an mjoin over the groups, each
made by its own subplan. An *edge* joins two groups that share a key. Its *frequency* is how often
it is used in the probe orders of the mjoin, its *weight* the size of the state that would keep its
result. The edge with the largest frequency per weight is merged first, if that saves CPU: then its
result is stored instead of being computed again and again. `merge` (the paper's Optimize) makes
the new group a binary join, or one larger join where that saves both CPU and memory.

The paper gives up as soon as a merge exceeds the memory. Unless `literal`, such a merge is passed
over and the next edge tried, which finds more and costs no more.

For n streams there are at most n - 1 merges and n²/2 edges to try for each; ordering the mjoin
takes n³ steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import Candidate, Joins
from plait.optimize.search.layer_one import best_mjoin

TRIES = 40
"""Edges that are tried for one merge, best first."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Two groups (by position) that share a key: how often the mjoin uses it, and what it keeps."""

    left: int
    right: int
    frequency: int
    weight: float

    @property
    def worth(self) -> float:
        """Frequency per weight."""
        return self.frequency / self.weight if self.weight > 0 else float("inf")


def edges(joins: Joins, groups: tuple[Candidate, ...]) -> list[Edge]:
    """The edges between groups, the most worthwhile first.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> [(e.left, e.right, e.frequency, e.weight) for e in edges(joins, tuple(joins.leaves()))]
    [(0, 1, 3, 2000.0), (1, 2, 3, 20000.0)]
    """
    model = joins.model
    parts = tuple(g.streams for g in groups)
    near = [model.neighbours(part) for part in parts]
    uses: dict[tuple[int, int], int] = {
        (i, j): 0 for j in range(len(parts)) for i in range(j) if near[i] & parts[j]
    }
    for c, order in enumerate(joins.join(parts).orders):
        gathered = [c]
        for k in order:
            for i in gathered:
                pair = (min(i, k), max(i, k))
                if pair in uses:
                    uses[pair] += 1
            gathered.append(k)
    found = [Edge(i, j, n, model.stored(parts[i] | parts[j])) for (i, j), n in uses.items()]
    return sorted(found, key=lambda e: (-e.worth, e.left, e.right))


def merge(joins: Joins, left: Candidate, right: Candidate, budget: Budget) -> Candidate:
    """Merge two groups: into a binary join, or a larger one that saves both CPU and memory."""
    best = joins.combine((left, right))
    whole: list[tuple[Candidate, ...]] = [(left,), (right,)]
    choices = [[side, side[0].children] if side[0].children else [side] for side in whole]
    for first, second in product(*choices):
        if len(first) + len(second) > 2:
            found = joins.combine(first + second)
            saves_memory = budget.memory_of(found.cost) < budget.memory_of(best.cost)
            if saves_memory and found.cost.cpu < best.cost.cpu:
                best = found
    return best


def state_selection(
    joins: Joins, budget: Budget, start: Candidate | None = None, *, literal: bool = False
) -> Candidate:
    """Search from the mjoin; return a qualified plan, or the best one on the way.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> best = state_selection(joins, Budget(cpu=0.135, memory=3000, unit="tuples"))
    >>> str(joins.plan(best))
    '((a b) c)'
    """
    plan = best_mjoin(joins) if start is None else start
    while not budget.holds_cpu(plan.cost) and len(plan.children) > 2:
        if not budget.holds_memory(plan.cost):
            break
        better = _next(joins, budget, plan, literal)
        if better is None:
            break
        plan = better
    return plan


def _next(joins: Joins, budget: Budget, plan: Candidate, literal: bool) -> Candidate | None:
    groups = plan.children
    for edge in edges(joins, groups)[:TRIES]:
        left, right = groups[edge.left], groups[edge.right]
        merged = merge(joins, left, right, budget)
        others = [g for k, g in enumerate(groups) if k not in (edge.left, edge.right)]
        found = joins.combine((*others, merged))
        if found.cost.cpu < plan.cost.cpu and (literal or budget.holds_memory(found.cost)):
            return found
    return None
