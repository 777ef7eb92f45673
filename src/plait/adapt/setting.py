"""The settings of a loop, given once when a query starts."""

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
"""Turns knowledge of a query's streams, at a minimum confidence, into statistics for planning."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The query, the policy, the budget and the costs of this machine."""

    query: Query
    policy: PlanPolicy
    budget: Budget
    costs: Costs
    believe: Believe = Knowledge.statistics
    """Tests replace it by wrong statistics, where results must not depend on good decisions."""

    @property
    def window(self) -> float:
        """The widest bound in seconds."""
        return self.query.bounds.widest / 1e6

    @property
    def half_life(self) -> float:
        """Seconds after which an observation counts half."""
        return self.policy.half_life or max(self.window / 2, 1e-6)

    @property
    def trial(self) -> float:
        """Seconds that a new plan runs before it is judged."""
        return self.window if self.policy.trial is None else self.policy.trial

    @property
    def limited(self) -> bool:
        """Whether there is a limit to the memory."""
        return self.budget.memory is not None

    def crowded(self, nbytes: int) -> bool:
        """Whether `nbytes` is at least half of the memory budget."""
        memory = self.budget.memory
        return memory is not None and 2 * nbytes >= memory

    def statistics(self, knowledge: Knowledge) -> Statistics:
        """Statistics that are certain enough for planning."""
        return self.believe(knowledge, self.query, self.policy.confidence)
