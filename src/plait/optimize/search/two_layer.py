"""The two-layer framework (algorithm 2): four possible answers in polynomial time.

*Layer one* asks whether the plan with the least memory (the mjoin) or the one that computes nothing
twice (the best binary tree) is qualified, and ends if either is. It also ends when the least that
any plan needs exceeds a limit. *Layer two* trades one resource for the other, from either end:
state-selection from the mjoin, state-removal from the binary tree.

The paper also ends when the binary tree exceeds the CPU, on the ground that no plan needs less.
That holds only where keeping a state costs less than computing it again (its own observation 2 in
section 2.4 says so), so unless `literal` the search goes on: state-removal may save CPU too. And
where both ways miss the budget, removal from the greedy trees and a local search that may go both
ways are tried as well.
"""

from __future__ import annotations

from plait.optimize.budget import Budget
from plait.optimize.outcome import Attempt, Outcome, conclude, floor
from plait.optimize.search.binary_greedy import by_pairs, one_by_one
from plait.optimize.search.candidate import Joins
from plait.optimize.search.layer_one import best_binary, best_mjoin
from plait.optimize.search.local_search import local_search
from plait.optimize.search.state_removal import state_removal
from plait.optimize.search.state_selection import state_selection


def two_layer(joins: Joins, budget: Budget, *, literal: bool = False) -> Outcome:
    """A qualified mjoin, binary tree or jtree, or none and why.

    >>> from plait.testing.models import long_chain_model
    >>> joins = Joins(long_chain_model())
    >>> for cpu, memory in ((0.2, 500), (0.135, 3000), (0.14, 2000), (0.13, 1000)):
    ...     outcome = two_layer(joins, Budget(cpu, memory, "tuples"))
    ...     print(outcome.answer, joins.plan(outcome.plan))
    mjoin (a b c d)
    binary tree ((a b) (c d))
    jtree ((a b) c d)
    none (a b c d)
    """
    least = floor(joins)
    attempts = [Attempt("greedy mjoin", best_mjoin(joins))]
    if not budget.holds(least):
        return conclude(attempts, budget, proven=True)
    mjoin = attempts[0].plan
    if budget.holds(mjoin.cost) or (literal and not budget.holds_memory(mjoin.cost)):
        return conclude(attempts, budget)
    binary = best_binary(joins)
    attempts.append(Attempt("binary tree", binary))
    if budget.holds(binary.cost) or (literal and not budget.holds_cpu(binary.cost)):
        return conclude(attempts, budget)
    attempts.append(
        Attempt("state-selection", state_selection(joins, budget, mjoin, literal=literal))
    )
    if budget.holds(attempts[-1].plan.cost):
        return conclude(attempts, budget)
    attempts.append(Attempt("state-removal", state_removal(joins, budget, binary)))
    if literal:
        return conclude(attempts, budget)
    for start in (by_pairs, one_by_one):
        if budget.holds(attempts[-1].plan.cost):
            return conclude(attempts, budget)
        attempts.append(Attempt("state-removal", state_removal(joins, budget, start(joins))))
    if not budget.holds(attempts[-1].plan.cost):
        starts = [attempt.plan for attempt in attempts]
        attempts.append(Attempt("local search", local_search(joins, budget, starts)))
    return conclude(attempts, budget)
