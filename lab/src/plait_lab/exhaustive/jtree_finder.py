"""JTree-Finder as in the paper (algorithm 1): all qualified plans, bottom-up.

For each stream set, by size, every partition into connected parts, and for each part every
qualified subplan found before. A subplan that exceeds a limit by itself is dropped: costs only
grow upwards. If no subplan of some size is left, no plan exists and the search ends early. The
number of plans grows faster than exponentially (26 for 4 streams that all join, 2,752 for 6), so
the search also ends, without a verdict, when it has kept more than a limit.
"""

from __future__ import annotations

from itertools import product

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import Candidate, Joins
from plait.optimize.search.pareto import QualifiedPlans
from plait.optimize.search.partitions import Partitions

PLANS = 200_000
"""The most subplans that are kept."""


def jtree_finder(joins: Joins, budget: Budget, limit: int = PLANS) -> QualifiedPlans:
    """Find every qualified plan of every shape.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> found = jtree_finder(joins, Budget(cpu=1.0, memory=3000, unit="tuples"))
    >>> [str(joins.plan(plan)) for plan in found.plans]
    ['(a b c)', '((a b) c)']
    """
    model = joins.model
    partitions = Partitions(model)
    plans: dict[int, list[Candidate]] = {1 << i: [leaf] for i, leaf in enumerate(joins.leaves())}
    kept, size, any_of_size = 0, 1, True
    for streams in partitions.sets:
        if streams.bit_count() == 1:
            continue
        if streams.bit_count() > size:
            if not any_of_size:
                return QualifiedPlans((), False, kept)
            size, any_of_size = streams.bit_count(), False
        found: list[Candidate] = []
        for parts in partitions.of(streams):
            choices = [plans[part] for part in parts]
            if not all(choices):
                continue
            own = joins.join(parts).cost
            if not budget.holds(own):
                continue
            for children in product(*choices):
                cost = own
                for child in children:
                    cost = cost + child.cost
                if budget.holds(cost):
                    found.append(Candidate(streams, cost, children))
                    kept += 1
                    if kept > limit:
                        return QualifiedPlans((), True, kept)
        plans[streams] = found
        any_of_size = any_of_size or bool(found)
    return QualifiedPlans(tuple(plans[model.all]), False, kept)
