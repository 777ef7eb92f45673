"""The events of the loop; `plait.node.reports.event_log` keeps them in files.

started      the query, the plan, the policy, the budget and the costs
compared     plans were compared: the statistics, the decision and its reasons
migrated     another plan runs, or runs beside the old one: the cost of the migration
ended        the old plan of a parallel track is gone
judged       whether a migration paid
unqualified  no plan fits the budget, and which resource is short

Events of the distribution manager (`plait.groups.balance.manager`), which belong to no single
processor:

weighed      loads were compared: the decision and its reasons, also for staying
relocated    a move of partition groups was carried out or given up
reviewed     whether a move paid
unbalanced   groups that are too hot, where neither moving nor spreading would help
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

EventKind = Literal[
    "started",
    "compared",
    "migrated",
    "ended",
    "judged",
    "unqualified",
    "weighed",
    "relocated",
    "reviewed",
    "unbalanced",
]


_FOR_REPLAY = ("statistics", "standing", "query", "costs")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; `time` is event time in microseconds."""

    kind: EventKind
    batch: int
    time: int
    data: Mapping[str, Any] = field(default_factory=dict)
    processor: int = 0
    origin: str = field(default="", compare=False)
    """The file and line where it was read."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        head = {"event": self.kind, "batch": self.batch, "time": self.time}
        return head | {"processor": self.processor} | dict(self.data)

    def brief(self) -> dict[str, Any]:
        """Plain data without what only a replay needs."""
        return {k: v for k, v in self.to_dict().items() if k not in _FOR_REPLAY}

    def to_json(self) -> str:
        """One line.

        >>> Event.from_dict(json.loads(Event("judged", 3, 7, {"paid": True}).to_json())).data
        {'paid': True}
        """
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Event:
        """The inverse of `to_dict`."""
        data = dict(given)
        head = [data.pop(name) for name in ("event", "batch", "time", "processor")]
        return cls(head[0], head[1], head[2], data, head[3])
