"""What the loop did, one event after the other; `plait.node.reports.event_log` keeps them in files.

started      the question, the plan, the policy, the budget and the costs
compared     plans were compared: what was known, what was decided, and why
migrated     another plan runs, or runs beside the old one: what it took
ended        the old plan of a parallel track is gone
judged       whether a migration paid
unqualified  no plan fits the budget, and which resource is short

And what the distribution manager did (`plait.groups.balance.manager`), which is of no single
processor:

weighed      loads were compared: what was decided, and why, also why not
relocated    a move of partition groups was carried out, or given up
reviewed     whether a move paid
unbalanced   groups that are too hot, and that neither moving nor spreading would help
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
    """The file and line that it was read from."""

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
