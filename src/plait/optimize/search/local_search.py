"""A last attempt in polynomial time: step by step to the neighbouring plans nearest to the budget.

Selection only ever adds states and removal only ever drops them; a qualified plan may lie on
neither way. The neighbours of a plan are both: any one state removed, or two children of any join
that has three or more merged into a state of their own (the most worthwhile edges first, as in
state-selection). The nearest few plans are followed at a time, none is looked at twice, there are
at most as many steps as streams, and the neighbours are fewer the more streams there are. It is not
in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import Candidate, Joins, inner
from plait.optimize.search.state_removal import removals
from plait.optimize.search.state_selection import edges

BEAM = 20
"""Plans that are followed at the same time."""

EDGES = 30
"""Edges of a join that are tried in each step."""

EFFORT = 3_000_000
"""The number of neighbours tried, times the cube of the streams, which bounds ordering one."""


def neighbours(joins: Joins, plan: Candidate) -> Iterator[Candidate]:
    """The plans with one state less, or one more.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> [str(joins.plan(p)) for p in neighbours(joins, joins.mjoin())]
    ['((a b) c)', '(a (b c))']
    """
    for _, without in removals(joins, plan):
        yield without
    yield from _additions(joins, plan)


def _additions(joins: Joins, plan: Candidate) -> Iterator[Candidate]:
    children = plan.children
    if len(children) > 2:
        for edge in edges(joins, children)[:EDGES]:
            merged = joins.combine((children[edge.left], children[edge.right]))
            others = [c for k, c in enumerate(children) if k not in (edge.left, edge.right)]
            yield joins.combine((*others, merged))
    for k, child in enumerate(children):
        others = [c for j, c in enumerate(children) if j != k]
        for changed in _additions(joins, child):
            yield joins.combine((*others, changed))


def local_search(joins: Joins, budget: Budget, starts: Sequence[Candidate]) -> Candidate:
    """Find a qualified plan, or the nearest one after as many steps as there are streams.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> best = local_search(joins, Budget(cpu=0.135, memory=3000, unit="tuples"), [joins.mjoin()])
    >>> str(joins.plan(best))
    '((a b) c)'
    """

    def excess(plan: Candidate) -> float:
        return budget.excess(plan.cost)

    beam = sorted(starts, key=excess)[:BEAM]
    nearest, seen = beam[0], {_states(plan) for plan in beam}
    effort = EFFORT // joins.model.size**3
    for _ in range(joins.model.size):
        if budget.holds(nearest.cost) or effort <= 0:
            break
        found: dict[frozenset[int], Candidate] = {}
        for plan in beam:
            for near in islice(neighbours(joins, plan), effort):
                effort -= 1
                states = _states(near)
                if states not in seen:
                    found[states] = near
        beam = sorted(found.values(), key=excess)[:BEAM]
        if not beam:
            break
        seen |= {_states(plan) for plan in beam}
        nearest = min(nearest, beam[0], key=excess)
    return nearest


def _states(plan: Candidate) -> frozenset[int]:
    """The intermediate states, which identify the plan."""
    return frozenset(state.streams for state in inner(plan))
