"""What happens when, in virtual time: events in order, and a network that carries messages.

*Ties and time.* Events happen in the order of their times; those of the same time in the order in
which they were planned. So a run depends on nothing but its input. Between two addresses messages
arrive in the order in which they were sent.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from plait_lab.protocol.messages import Message, ReceivePartitions
from plait_lab.protocol.wire import message_to_plain
from plait_lab.virtual.machines import Link

What = Callable[[float], None]


@dataclass(slots=True)
class Timeline:
    """Events to come.

    >>> line, seen = Timeline(), []
    >>> line.plan(2.0, lambda now: seen.append(("late", now)))
    >>> line.plan(1.0, lambda now: line.plan(1.5, lambda then: seen.append(("early", then))))
    >>> line.run(until=10.0); seen
    [('early', 1.5), ('late', 2.0)]
    """

    now: float = 0.0
    _events: list[tuple[float, int, What]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    def plan(self, time: float, what: What) -> None:
        """Let something happen at a time, or now if that has passed."""
        heapq.heappush(self._events, (max(time, self.now), next(self._numbers), what))

    def run(self, until: float) -> None:
        """Let everything happen up to a time, which is then now."""
        while self._events and self._events[0][0] <= until:
            self.now, _, what = heapq.heappop(self._events)
            what(self.now)
        self.now = max(self.now, until)


@dataclass(slots=True)
class Network:
    """Carries messages over links that are all alike, and counts them."""

    line: Timeline
    link: Link = field(default_factory=Link)
    sent: Counter[str] = field(default_factory=Counter)
    """Messages by name."""
    nbytes: Counter[str] = field(default_factory=Counter)
    """Bytes by name."""
    _last: dict[tuple[str, str], float] = field(default_factory=dict)

    def send(self, sender: str, to: str, message: Message, deliver: What) -> None:
        """Send a message now; `deliver` is called when it arrives."""
        name, size = type(message).__name__, size_of(message)
        self.sent[name] += 1
        self.nbytes[name] += size
        self.carry(sender, to, size, deliver)

    def carry(self, sender: str, to: str, size: float, deliver: What) -> None:
        """Carry something of a size, in bytes, behind what was sent there before."""
        way = (sender, to)
        begun = max(self.line.now, self._last.get(way, 0.0))
        through = begun + size / self.link.rate
        self._last[way] = through
        self.line.plan(through + self.link.latency, deliver)


def size_of(message: Message) -> int:
    """The bytes of a message: as JSON, and of partitions their rows as they travel.

    >>> from plait_lab.protocol.messages import Settled
    >>> size_of(Settled(3, "split-0"))
    50
    """
    if isinstance(message, ReceivePartitions):
        assert isinstance(message.partitions, MovedGroups), "hosts in virtual time send cargo"
        return message.partitions.size
    return len(json.dumps(message_to_plain(message)))


@dataclass(frozen=True, slots=True)
class MovedGroups:
    """Partition groups on their way: rows as bytes, and the combinations that go with them."""

    raw: bytes
    states: frozenset[frozenset[int]] = frozenset()
    """The stream sets of the sender's combined states: those that match are not recomputed."""
    combined: int = 0
    """Bytes of the combinations."""

    @property
    def size(self) -> int:
        """All bytes."""
        return len(self.raw) + self.combined
