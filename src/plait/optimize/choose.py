"""Which plan runs: the algorithms in the order in which they are tried, and why.

1. Nothing is limited: the least CPU. JTree-Finder with a Pareto frontier knows it for a query of a
   few streams; for more, the cheaper of the mjoin, the binary tree and what is left of that tree
   when every state that costs more than it saves is removed.
2. Something is limited: the two-layer framework, which takes milliseconds, from its cheapest test
   to its widest search: mjoin, binary tree, state-selection, state-removal, local search.
3. It finds none, but has not proven that there is none: the Pareto frontier again, which decides.
   Beyond the streams it can take, the answer says that it is not proven. The nearest plan, which
   the answer names, is looked for without the limits.
4. The two-layer framework stops at the first qualified plan. Of a few streams the frontier is
   known anyway, so the qualified plan with the least CPU runs: it leaves most room for bursts.
"""

from __future__ import annotations

from plait.optimize.budget import Budget
from plait.optimize.outcome import Attempt, Outcome, conclude
from plait.optimize.search.candidate import Candidate, Joins
from plait.optimize.search.layer_one import best_binary, best_mjoin
from plait.optimize.search.pareto import pareto_finder
from plait.optimize.search.state_removal import removals
from plait.optimize.search.two_layer import two_layer

FEW_STREAMS = 7
"""The most streams for which the frontier is always searched: some hundredths of a second."""

PROOF_SECONDS = 5.0
"""How long the frontier may take to prove that there is no plan."""


def choose(joins: Joins, budget: Budget) -> Outcome:
    """Choose the plan to run under a budget, or say why there is none.

    >>> from plait.testing.models import long_chain_model
    >>> joins = Joins(long_chain_model())
    >>> outcome = choose(joins, Budget(cpu=0.2, memory=2000, unit="tuples"))
    >>> outcome.answer, str(joins.plan(outcome.plan)), outcome.chosen.algorithm
    ('jtree', '((a b) c d)', 'JTree-Finder')
    """
    few = joins.model.size <= FEW_STREAMS
    if budget.cpu is None and budget.memory is None:
        return _unlimited(joins, budget, few)
    outcome = two_layer(joins, budget)
    if outcome.answer == "none" and outcome.proven:
        return conclude([*outcome.attempts, *_nearest(joins, budget, few)], budget, proven=True)
    if outcome.answer != "none" and not few:
        return outcome
    found = pareto_finder(joins, budget, None if few else PROOF_SECONDS)
    attempts = [Attempt("JTree-Finder", plan) for plan in found.plans[:1]] + list(outcome.attempts)
    if few and all(attempt.algorithm != "binary tree" for attempt in attempts):
        attempts.append(Attempt("binary tree", best_binary(joins)))
    if not found.plans and outcome.answer == "none":
        attempts += _nearest(joins, budget, few)
    return conclude(attempts, budget, proven=not found.gave_up)


def _nearest(joins: Joins, budget: Budget, few: bool) -> list[Attempt]:
    """Plans that come near a budget that none fits; of a few streams the nearest of all.

    What a plan exceeds the budget by grows with both resources: the nearest is on the frontier.
    """
    if not few:
        return [Attempt("binary tree", best_binary(joins))]
    frontier = pareto_finder(joins, Budget(unit=budget.unit)).plans
    return [Attempt("JTree-Finder", min(frontier, key=lambda p: budget.excess(p.cost)))]


def _unlimited(joins: Joins, budget: Budget, few: bool) -> Outcome:
    attempts = [
        Attempt("greedy mjoin", best_mjoin(joins)),
        Attempt("binary tree", best_binary(joins)),
    ]
    if few:
        attempts.append(Attempt("JTree-Finder", pareto_finder(joins, budget).plans[0]))
    else:
        attempts.append(Attempt("state-removal", _lightened(joins, attempts[1].plan)))
    return conclude(sorted(attempts, key=lambda a: a.plan.cost.cpu), budget)


def _lightened(joins: Joins, plan: Candidate) -> Candidate:
    """The plan without the states whose removal saves CPU."""
    while True:
        lighter = min(
            (without for _, without in removals(joins, plan)),
            key=lambda p: p.cost.cpu,
            default=plan,
        )
        if not lighter.cost.cpu < plan.cost.cpu:
            return plan
        plan = lighter
