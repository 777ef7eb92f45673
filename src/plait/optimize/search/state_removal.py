"""State-removal (algorithm 4): from the binary tree on, drop the states that are worth the least.

A state is removed by merging the join that fills it into the join that reads it: a larger join
that computes those combinations when it needs them. Its *quality ratio* is the CPU that this costs
per tuple that it frees; the state with the smallest is removed, again and again, until the plan is
qualified or no state is left. The ratio is negative where keeping a state costs more than computing
it, so that removal may also save CPU.

For n streams there are at most n - 2 removals, among as many states, and ordering a merged join
takes n³ steps; joins that do not change are remembered.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import Candidate, Joins
from plait.optimize.search.layer_one import best_binary


def removals(joins: Joins, plan: Candidate) -> Iterator[tuple[int, Candidate]]:
    """Each state of a plan, and the plan without it.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> [(f"{s:03b}", str(joins.plan(p))) for s, p in removals(joins, best_binary(joins))]
    [('011', '(a b c)')]
    """
    for k, child in enumerate(plan.children):
        if child.children:
            others = plan.children[:k] + plan.children[k + 1 :]
            yield child.streams, joins.combine((*others, *child.children))
            for state, below in removals(joins, child):
                yield state, joins.combine((*others, below))


def ratio(joins: Joins, plan: Candidate, state: int, without: Candidate) -> float:
    """The CPU that removing a state costs, per tuple that it frees."""
    size = joins.model.stored(state)
    more = without.cost.cpu - plan.cost.cpu
    return more / size if size > 0 else more


def state_removal(joins: Joins, budget: Budget, start: Candidate | None = None) -> Candidate:
    """Search from the binary tree; return a qualified plan, or the nearest one on the way.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> best = state_removal(joins, Budget(cpu=0.2, memory=1000, unit="tuples"))
    >>> str(joins.plan(best))
    '(a b c)'
    """
    plan = nearest = best_binary(joins) if start is None else start
    while not budget.holds(plan.cost):
        found = [
            (ratio(joins, plan, s, without), s, without) for s, without in removals(joins, plan)
        ]
        if not found:
            return nearest
        plan = min(found, key=lambda f: (f[0], f[1]))[2]
        if budget.excess(plan.cost) < budget.excess(nearest.cost):
            nearest = plan
    return plan
