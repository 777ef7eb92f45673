"""Algorithms 2 and 3 of seed 003 to the letter, beside those that Plait uses.

Algorithm 3 is state-selection, algorithm 2 the two-layer framework around it. Algorithm 4,
state-removal, is to the letter in `plait.optimize` already.

*To the letter:* the weight of an edge is λ_x λ_y σ_xy, with λ_xy = λ_x λ_y σ_xy for a vertex that
was merged; every edge is tried, in the order of frequency over weight; the first merge that saves
CPU is taken; and when that exceeds the memory, the algorithm has found nothing (line 15).

*As we read it:* after a merge the edges are those of the new graph. Read otherwise, line 17 would
return -1 whenever line 3 is passed.

`plait.optimize.search.state_selection` weighs an edge by the tuples that its state would keep,
which differs by a factor of W per merge, tries 40 edges, and passes over merges that exceed the
memory.
"""

from __future__ import annotations

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import Candidate, Joins
from plait.optimize.search.layer_one import best_binary, best_mjoin
from plait.optimize.search.state_removal import state_removal
from plait.optimize.search.state_selection import Edge, edges, merge


def letter_selection(joins: Joins, budget: Budget) -> Candidate | None:
    """A qualified plan, or None where the printed algorithm returns -1.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> best = letter_selection(joins, Budget(cpu=0.135, memory=3000, unit="tuples"))
    >>> str(joins.plan(best))
    '((a b) c)'
    >>> letter_selection(joins, Budget(cpu=0.135, memory=1000, unit="tuples")) is None
    True
    """
    plan = best_mjoin(joins)
    while not budget.holds_cpu(plan.cost):
        if not budget.holds_memory(plan.cost) or len(plan.children) < 3:
            return None
        better = _first_saving(joins, budget, plan)
        if better is None or not budget.holds_memory(better.cost):
            return None
        plan = better
    return plan if budget.holds(plan.cost) else None


def letter_two_layer(joins: Joins, budget: Budget) -> Candidate | None:
    """A qualified plan, or None where algorithm 2 as printed returns -1.

    It ends where the mjoin exceeds the memory, and where the binary tree exceeds the CPU.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> str(joins.plan(letter_two_layer(joins, Budget(cpu=0.2, memory=1000, unit="tuples"))))
    '(a b c)'
    """
    mjoin = best_mjoin(joins)
    if budget.holds(mjoin.cost):
        return mjoin
    if not budget.holds_memory(mjoin.cost):
        return None
    binary = best_binary(joins)
    if budget.holds(binary.cost):
        return binary
    if not budget.holds_cpu(binary.cost):
        return None
    selected = letter_selection(joins, budget)
    if selected is not None:
        return selected
    removed = state_removal(joins, budget, binary)
    return removed if budget.holds(removed.cost) else None


def _first_saving(joins: Joins, budget: Budget, plan: Candidate) -> Candidate | None:
    groups = plan.children
    ordered = sorted(edges(joins, groups), key=lambda e: (-_worth(joins, groups, e), e.left))
    for edge in ordered:
        merged = merge(joins, groups[edge.left], groups[edge.right], budget)
        others = [g for k, g in enumerate(groups) if k not in (edge.left, edge.right)]
        found = joins.combine((*others, merged))
        if found.cost.cpu < plan.cost.cpu:
            return found
    return None


def _worth(joins: Joins, groups: tuple[Candidate, ...], edge: Edge) -> float:
    """Frequency over λ_x λ_y σ_xy, which is the density of the merged vertex."""
    weight = joins.model.density(groups[edge.left].streams | groups[edge.right].streams)
    return edge.frequency / weight if weight > 0 else float("inf")
