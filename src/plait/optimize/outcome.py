"""The outcome of a search for a qualified plan: one of four answers, with the attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from plait.optimize.budget import Budget
from plait.optimize.model import Cost
from plait.optimize.search.candidate import Candidate, Joins, kind

Answer = Literal["mjoin", "binary tree", "jtree", "none"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A plan, and the algorithm that proposed it."""

    algorithm: str
    plan: Candidate


@dataclass(frozen=True, slots=True)
class Outcome:
    """A qualified plan, or the nearest plan and the reason why no plan qualifies.

    `proven` says whether a negative answer is a proof; a positive one always is.
    """

    answer: Answer
    chosen: Attempt
    attempts: tuple[Attempt, ...]
    proven: bool

    @property
    def plan(self) -> Candidate:
        """The qualified plan, or the nearest one."""
        return self.chosen.plan


def conclude(attempts: Sequence[Attempt], budget: Budget, *, proven: bool = False) -> Outcome:
    """Conclude from all attempts: the first qualified plan, or none and the nearest."""
    qualified = [a for a in attempts if budget.holds(a.plan.cost)]
    if qualified:
        chosen = qualified[0]
        found = kind(chosen.plan)
        answer: Answer = (
            "mjoin" if found == "mjoin" else "binary tree" if found == "binary tree" else "jtree"
        )
        return Outcome(answer, chosen, tuple(attempts), True)
    nearest = min(attempts, key=lambda a: budget.excess(a.plan.cost))
    return Outcome("none", nearest, tuple(attempts), proven)


def floor(joins: Joins) -> Cost:
    """The least cost of any plan of the query.

    Each keeps the windows of the streams, with an index each, and finds each result once.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> floor(joins).tuples == joins.mjoin().cost.tuples
    True
    """
    model = joins.model
    costs = model.costs
    results = model.made(model.all)
    per_result = costs.match + costs.carry * model.size + costs.result * len(model.query.select)
    total = Cost(results * per_result, 0.0, 0.0)
    for i in range(model.size):
        total += model.state_cost(1 << i, [1 << model.classes_of(i)[0]])
    return total
