"""What a loop is for, and by what it decides: given once, when a query starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plait.adapt.knowledge import Knowledge
from plait.adapt.policy import PlanPolicy
from plait.optimize.budget import Budget
from plait.optimize.costs import Costs
from plait.optimize.statistics import Statistics
from plait.query.query import Query

Believe = Callable[[Knowledge, Query, float], Statistics]
"""Turns what is known of a query's streams, at a least confidence, into statistics to plan by."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The question, the policy, and what the machine has and takes."""

    query: Query
    policy: PlanPolicy
    budget: Budget
    costs: Costs
    believe: Believe = Knowledge.statistics
    """Tests that must not depend on good decisions replace it by lies."""

    @property
    def window(self) -> float:
        """The widest bound in seconds."""
        return self.query.bounds.widest / 1e6

    @property
    def half_life(self) -> float:
        """After how many seconds an observation counts half."""
        return self.policy.half_life or max(self.window / 2, 1e-6)

    @property
    def trial(self) -> float:
        """How long a new plan runs before it is judged."""
        return self.window if self.policy.trial is None else self.policy.trial

    @property
    def limited(self) -> bool:
        """Whether there is a limit to the memory."""
        return self.budget.memory is not None

    def crowded(self, nbytes: int) -> bool:
        """Whether so many bytes are half of the memory or more."""
        memory = self.budget.memory
        return memory is not None and 2 * nbytes >= memory

    def statistics(self, knowledge: Knowledge) -> Statistics:
        """What is known well enough to plan with."""
        return self.believe(knowledge, self.query, self.policy.confidence)
