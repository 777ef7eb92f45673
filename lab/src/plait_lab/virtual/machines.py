"""Machines and links in virtual time: how long work and messages take, not what they are.

A machine does one thing at a time; its `speed` says how many seconds of work, as the cost model
counts them, it does per second. A link delivers in order: a message waits for the one before it,
then takes its size over the rate, and arrives a latency later.

A `World` lets machines exchange messages: a machine is given a handler, which takes a message and
the time and returns what that cost and what to send. Handlers are state machines without I/O, so
the protocols of `plait.groups.routing` can run in it as they are.

*Ties and time.* Messages are handled in the order in which they arrive; of those that arrive at the
same time, in the order in which they were sent. So a run depends on nothing but its input.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import PlaitError, did_you_mean

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor, or the part of one that is ours.

    >>> Machine(speed=0.5).seconds(3.0)
    6.0
    """

    speed: float = 1.0
    """Seconds of work done per second."""

    def __post_init__(self) -> None:
        if not self.speed > 0:
            raise PlaitError(f"a machine with the speed {self.speed}", remedy="give one above 0")

    def seconds(self, work: float) -> float:
        """How long so much work takes."""
        return work / self.speed


@dataclass(frozen=True, slots=True)
class Link:
    """A way from one machine to another."""

    latency: float = 0.0
    """Seconds that everything takes."""
    rate: float = float("inf")
    """How much (bytes, or tuples: whatever sizes are given in) passes per second."""

    def __post_init__(self) -> None:
        if not (self.latency >= 0 and self.rate > 0):
            raise PlaitError(
                f"a link with the latency {self.latency} and the rate {self.rate}",
                remedy="give a latency of at least 0 and a rate above 0",
            )

    def deliver(self, sent: Floats, sizes: Floats | float = 1.0) -> Floats:
        """When messages arrive that are sent at these times, in ascending order.

        >>> Link(latency=0.5, rate=2.0).deliver(np.array([0.0, 0.1, 9.0])).tolist()
        [1.0, 1.5, 10.0]
        """
        took = np.broadcast_to(np.asarray(sizes, np.float64) / self.rate, sent.shape)
        through = np.cumsum(took)
        begun = np.maximum.accumulate(sent - (through - took)) if len(sent) else sent
        return begun + through + self.latency


@dataclass(frozen=True, slots=True)
class Message:
    """Something for a machine; `size` is in the unit of the rates of the links."""

    to: str
    body: Any
    size: float = 1.0
    sender: str = ""


Handler = Callable[[Message, float], tuple[float, list[Message]]]
"""Takes a message at a time; the work that was, and what to send when it is done."""


@dataclass(slots=True)
class World:
    """Machines by name, what each does with a message, and the links between them.

    Without a link, a message arrives at once.

    >>> def echo(message, now):
    ...     return 2.0, [Message("b", message.body)] if message.to == "a" else []
    >>> world = World({"a": Machine(), "b": Machine(speed=2.0)}, {"a": echo, "b": echo},
    ...               {("a", "b"): Link(latency=1.0)})
    >>> world.send(Message("a", "hello"), at=0.5)
    >>> world.run()
    4.5
    """

    machines: Mapping[str, Machine]
    handlers: Mapping[str, Handler]
    links: Mapping[tuple[str, str], Link] = field(default_factory=dict)
    free: dict[str, float] = field(default_factory=dict)
    """When each machine has done what it was given so far."""
    busy: dict[str, float] = field(default_factory=dict)
    """How long each machine has worked."""
    _sent: dict[tuple[str, str], float] = field(default_factory=dict)
    _under_way: list[tuple[float, int, Message]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    def send(self, message: Message, at: float) -> None:
        """Send a message, from its sender if it has one."""
        if message.to not in self.machines:
            raise PlaitError(
                f"there is no machine {message.to!r}",
                remedy=did_you_mean(message.to, self.machines),
            )
        way = (message.sender, message.to)
        link = self.links.get(way)
        arrives = at
        if link is not None:
            through = max(at, self._sent.get(way, at)) + message.size / link.rate
            self._sent[way] = through
            arrives = through + link.latency
        heapq.heappush(self._under_way, (arrives, next(self._numbers), message))

    def run(self, until: float = float("inf")) -> float:
        """Handle all messages that arrive up to a time; when the last machine was done."""
        while self._under_way and self._under_way[0][0] <= until:
            arrived, _, message = heapq.heappop(self._under_way)
            name = message.to
            begin = max(arrived, self.free.get(name, 0.0))
            work, replies = self.handlers[name](message, begin)
            took = self.machines[name].seconds(work)
            self.free[name] = begin + took
            self.busy[name] = self.busy.get(name, 0.0) + took
            for reply in replies:
                self.send(Message(reply.to, reply.body, reply.size, name), self.free[name])
        return max(self.free.values(), default=0.0)
