"""Epochs: what the driver has decided for all processors, numbered from 1 on.

An epoch says which plan to run from some batch on, or that processors may choose for themselves.
It need not be the same batch on every processor, nor again when a batch is repeated: results do not
depend on plans. So a processor takes the newest epoch it sees at the beginning of a batch, and its
header remembers which one that was.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from plait.engine.migrate.record import Strategy
from plait.plan.jtree import Node
from plait.plan.serde import from_dict, to_dict
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class Epoch:
    """A plan for all processors, and how they come to it."""

    number: int
    plan: Node | None
    """None lets every processor choose for itself."""
    strategy: Strategy | Literal["auto"] = "moving-state"

    def to_json(self) -> str:
        """For a file.

        >>> from plait.plan.examples import clique
        >>> from plait.plan.jtree import mjoin
        >>> epoch = Epoch(1, mjoin(clique(3)))
        >>> Epoch.from_json(epoch.to_json(), clique(3)) == epoch
        True
        """
        plan = None if self.plan is None else to_dict(self.plan)
        return json.dumps({"number": self.number, "strategy": self.strategy, "plan": plan})

    @classmethod
    def from_json(cls, text: str, query: Query) -> Epoch:
        """The inverse of `to_json`; the plan is checked against the query."""
        value = json.loads(text)
        plan = None if value["plan"] is None else from_dict(value["plan"], query)
        return cls(value["number"], plan, value["strategy"])
