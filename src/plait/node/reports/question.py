"""What a join was asked to do, for whoever looks at it from outside of its driver.

The driver writes it into the control directory when the first batch has ended. With it, reports and
events can be shown without the program that made the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from plait.adapt.policy import PlanPolicy
from plait.errors import SourceError
from plait.groups.routing.table import Table
from plait.machine.sealed import sealed, unsealed
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT, Costs, from_mapping
from plait.query.query import Query
from plait.query.serde import query_from_dict, query_to_dict


@dataclass(frozen=True, slots=True)
class Question:
    """The query, and how it was to be run."""

    query: Query
    plan: str
    """The plan that it began with, as text."""
    processors: int = 1
    table: Table | None = None
    """The routing table that the checkpoint began with; None if groups do not move."""
    policy: PlanPolicy | None = None
    """By what processors choose their plans; None: they keep the one they have."""
    budget: Budget = field(default_factory=Budget)
    """The share of one processor."""
    costs: Costs = DEFAULT

    def to_json(self) -> str:
        """For a file.

        >>> from plait.testing.examples import clique
        >>> asked = Question(clique(2), "(a b)")
        >>> Question.from_json(asked.to_json()) == asked
        True
        """
        fields: Mapping[str, Any] = {
            "query": query_to_dict(self.query),
            "plan": self.plan,
            "processors": self.processors,
            "table": None if self.table is None else self.table.to_dict(),
            "policy": None if self.policy is None else self.policy.to_dict(),
            "budget": asdict(self.budget),
            "costs": asdict(self.costs),
        }
        return sealed(fields)

    @classmethod
    def from_json(cls, text: str) -> Question:
        """The inverse of `to_json`; anything else is a PlaitError."""
        found = unsealed(text)
        try:
            table, policy, budget = found["table"], found["policy"], found["budget"]
            return cls(
                query_from_dict(found["query"]),
                str(found["plan"]),
                int(found["processors"]),
                None if table is None else Table.from_dict(table),
                None if policy is None else PlanPolicy.from_dict(policy),
                Budget(budget["cpu"], budget["memory"], budget["unit"]),
                from_mapping(found["costs"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise SourceError(f"it is no question of Plait: {error}") from None
