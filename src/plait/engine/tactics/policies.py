"""Routing policies: which window the tuples of a history visit next.

A history is the set of streams whose tuples are already joined, as a bit mask. A policy chooses
among the streams that are `ready`, and is told what became of each packet: how many tuples it
consumed and produced, and the work that took (probes made, rows looked at and rows matched). It
knows nothing of windows, queues or packets; its choices change the work, never the results.
Policies are deterministic: what they leave to chance comes from a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random as Chance
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.kernels.memory import Saved

History = int
"""The streams gathered so far, bit i for stream i."""

Onward = Callable[[History], Sequence[int]]
"""The streams that the tuples of a history can visit next."""


_HEARD = 2
"""The number of trials that the largest packet counts for."""


class Choice(NamedTuple):
    """The next stream; for a trial or a scout, also how few tuples are enough to learn."""

    target: int
    at_most: int | None = None


class RoutingPolicy(Protocol):
    """Chooses the next stream for the tuples of a router."""

    def choose(self, history: History, ready: Sequence[int], waiting: int = 1) -> Choice:
        """Choose the next stream among `ready` for the waiting tuples."""
        ...

    def observe(
        self, history: History, target: int, consumed: int, produced: int, work: int
    ) -> None:
        """Learn from a visit: tuples in, tuples out, and the work."""
        ...

    def to_state(self) -> Saved:
        """Describe what it has learned, and the state of its random generator."""
        ...

    def set_state(self, saved: Saved) -> None:
        """Go on from another policy of this kind."""
        ...


class Drawing:
    """A policy that is a draw by tickets, which compiled code can carry out for many tuples.

    `lend` gives out a seed and the tickets of each stream, `take_back` the tickets afterwards. Each
    stream counts as one ticket at least. With a `memory`, tickets are won and lost on the way.
    """

    memory = 0

    def __init__(self, seed: int) -> None:
        self._chance = Chance(seed)

    def lend(self, streams: int) -> tuple[int, NDArray[np.float64]]:
        """What the next draws depend on."""
        return self._chance.getrandbits(64), np.zeros(streams)

    def take_back(self, tickets: NDArray[np.float64]) -> None:
        """Learn how the draws have changed the tickets."""


class Random(Drawing):
    """Chooses among the ready streams with equal probability, and learns nothing.

    >>> policy = Random(seed=1)
    >>> {policy.choose(1, [1, 2]).target for _ in range(20)}
    {1, 2}
    """

    def choose(self, history: History, ready: Sequence[int], waiting: int = 1) -> Choice:
        """One of them."""
        del history, waiting
        return Choice(ready[int(self._chance.random() * len(ready))])

    def observe(
        self, history: History, target: int, consumed: int, produced: int, work: int
    ) -> None:
        """Nothing is learned."""

    def to_state(self) -> Saved:
        """Where its chance stands."""
        return {"chance": _drawn(self._chance)}

    def set_state(self, saved: Saved) -> None:
        """Go on from another one."""
        _draw_on(self._chance, saved["chance"])


class Lottery(Drawing):
    """A draw: a window gains a ticket for each tuple it consumes and loses one for each it makes.

    Every window has at least one ticket. Tickets are forgotten: after `memory` more tuples, about
    a third of the old ones counts, so the lottery follows selectivities that change.

    >>> policy = Lottery(seed=1)
    >>> policy.observe(1, 1, consumed=100, produced=0, work=100)
    >>> policy.observe(1, 2, consumed=100, produced=500, work=600)
    >>> policy.tickets(1), policy.tickets(2)
    (100.0, 1.0)
    """

    def __init__(self, seed: int, *, memory: int = 4096) -> None:
        super().__init__(seed)
        self.memory = memory
        self._balance: dict[int, float] = {}

    def lend(self, streams: int) -> tuple[int, NDArray[np.float64]]:
        """A seed, and the tickets as they stand."""
        seed, tickets = super().lend(streams)
        for target, held in self._balance.items():
            tickets[target] = held
        return seed, tickets

    def take_back(self, tickets: NDArray[np.float64]) -> None:
        """The tickets as they stand now."""
        for target, held in enumerate(tickets.tolist()):
            if held or target in self._balance:
                self._balance[target] = held

    def tickets(self, target: int) -> float:
        """Count the tickets of a window in a draw."""
        return max(1.0, self._balance.get(target, 0.0))

    def choose(self, history: History, ready: Sequence[int], waiting: int = 1) -> Choice:
        """Draw a window."""
        del history, waiting
        if len(ready) == 1:
            return Choice(ready[0])
        tickets = [self.tickets(t) for t in ready]
        left = self._chance.random() * sum(tickets)
        for target, held in zip(ready, tickets, strict=True):
            left -= held
            if left < 0:
                return Choice(target)
        return Choice(ready[-1])

    def observe(
        self, history: History, target: int, consumed: int, produced: int, work: int
    ) -> None:
        """Hand out tickets for consuming, and take them back for producing."""
        del history, work
        # Within a packet larger than the memory, too, the newest tuples count most.
        share = min(1.0, self.memory / max(1, consumed))
        kept = max(0.0, 1 - consumed / self.memory)
        gained = (consumed - produced) * share
        balance = self._balance.get(target, 0.0) * kept + gained
        self._balance[target] = max(-self.memory, min(self.memory, balance))

    def to_state(self) -> Saved:
        """The tickets, and where its chance stands."""
        return {"chance": _drawn(self._chance), "balance": list(map(list, self._balance.items()))}

    def set_state(self, saved: Saved) -> None:
        """Go on from another one."""
        _draw_on(self._chance, saved["chance"])
        self._balance = {int(target): float(held) for target, held in saved["balance"]}


@dataclass(slots=True)
class _Visits:
    """The outcome of visits of one window by one history; older ones count less."""

    consumed: float = 0.0
    produced: float = 0.0
    work: float = 0.0
    since: int = 0
    """Decisions of this history since the last visit."""

    def add(self, consumed: int, produced: int, work: int, kept: float, most: int) -> None:
        """One more visit; each decision since the last one lets it fade.

        However large, it weighs no more than `most` tuples, or a small visit after it would not
        be heard.
        """
        kept = kept ** max(1, self.since)
        share = min(1.0, most / max(1, consumed))
        self.consumed = self.consumed * kept + consumed * share
        self.produced = self.produced * kept + produced * share
        self.work = self.work * kept + work * share
        self.since = 0


class Ordered:
    """Chooses the way with the least work to come, by the selectivities and costs measured so far.

    A history's work to come is that of its best next visit: the work of the visit itself, and for
    each tuple it produces the work to come of the history it leads to. Ways not tried for a while
    get a small packet to measure them: each after `explore` decisions, and all of them at once
    when the work of the best way has doubled since they were last tried, because then the
    selectivities have changed. To see that before it is dear, a large packet sends a *scout*: a
    few of its tuples go the best way first.

    >>> policy = Ordered(lambda history: [s for s in range(3) if not history >> s & 1])
    >>> policy.choose(1, [1, 2]), policy.choose(1, [1, 2]).at_most
    (Choice(target=1, at_most=64), 64)
    >>> policy.observe(1, 1, consumed=64, produced=640, work=700)
    >>> policy.observe(1, 2, consumed=64, produced=6, work=70)
    >>> policy.choose(1, [1, 2])
    Choice(target=2, at_most=None)
    >>> policy.choose(1, [1, 2], waiting=50_000), policy.choose(1, [1, 2], waiting=49_936)
    (Choice(target=2, at_most=64), Choice(target=2, at_most=None))
    """

    def __init__(
        self,
        onward: Onward,
        *,
        explore: int = 16,
        trial: int = 64,
        kept: float = 0.5,
        surprise: float = 2.0,
        scouted: int = 16,
    ) -> None:
        self._onward = onward
        self._explore = explore
        self._trial = trial
        self._kept = kept
        self._surprise = surprise
        self._large = scouted * trial
        self._scouting: History | None = None
        self._visits: dict[tuple[History, int], _Visits] = {}
        self._reference: dict[History, float] = {}
        self._stale: set[tuple[History, int]] = set()

    def choose(self, history: History, ready: Sequence[int], waiting: int = 1) -> Choice:
        """Choose the way with the least work to come, or one that is due for a trial."""
        if len(ready) == 1:
            return Choice(ready[0])
        scouted = self._scouting == history
        for target in ready:
            visits = self._visits.get((history, target))
            if visits is None:
                return Choice(target, self._trial)
            visits.since += not scouted
        values = {t: self._value(history, t, {}) for t in ready}
        best = min(values, key=lambda t: (values[t], t))
        self._watch(history, ready, values[best])
        for target in ready:
            due = target != best and self._visits[history, target].since > self._explore
            if due or (history, target) in self._stale:
                return Choice(target, self._trial)
        if waiting >= self._large and not scouted:
            self._scouting = history
            return Choice(best, self._trial)
        self._scouting = None
        return Choice(best)

    def observe(
        self, history: History, target: int, consumed: int, produced: int, work: int
    ) -> None:
        """Remember a visit."""
        visits = self._visits.setdefault((history, target), _Visits())
        visits.add(consumed, produced, work, self._kept, _HEARD * self._trial)
        self._stale.discard((history, target))

    def to_state(self) -> Saved:
        """The visits that it remembers."""
        return {
            "visits": [
                [*way, [v.consumed, v.produced, v.work], v.since] for way, v in self._visits.items()
            ],
            "reference": list(map(list, self._reference.items())),
            "stale": sorted(map(list, self._stale)),
            "scouting": self._scouting,
        }

    def set_state(self, saved: Saved) -> None:
        """Go on from another one."""
        self._visits = {
            (int(history), int(target)): _Visits(
                float(consumed), float(produced), float(work), int(since)
            )
            for history, target, (consumed, produced, work), since in saved["visits"]
        }
        self._reference = {int(history): float(v) for history, v in saved["reference"]}
        self._stale = {(int(history), int(target)) for history, target in saved["stale"]}
        self._scouting = None if saved["scouting"] is None else int(saved["scouting"])

    def _watch(self, history: History, ready: Sequence[int], value: float) -> None:
        """When even the best way costs much more, have all but the latest tried again."""
        reference = self._reference.setdefault(history, value)
        if value > self._surprise * reference + 1:
            latest = min(ready, key=lambda t: self._visits[history, t].since)
            self._stale.update((history, t) for t in ready if t != latest)
            self._reference[history] = value
        elif value < reference:
            self._reference[history] = value

    def _value(self, history: History, target: int, known: dict[History, float]) -> float:
        visits = self._visits.get((history, target))
        if visits is None or visits.consumed == 0:
            return 0.0
        fanout, work = visits.produced / visits.consumed, visits.work / visits.consumed
        return work + fanout * self._to_come(history | 1 << target, known)

    def _to_come(self, history: History, known: dict[History, float]) -> float:
        """Estimate the work that a tuple of this history still causes; 0 without measurements."""
        if history not in known:
            ways = [t for t in self._onward(history) if (history, t) in self._visits]
            known[history] = min((self._value(history, t, known) for t in ways), default=0.0)
        return known[history]


def _drawn(chance: Chance) -> list[object]:
    version, words, gauss = chance.getstate()
    return [version, list(words), gauss]


def _draw_on(chance: Chance, saved: Sequence[Any]) -> None:
    version, words, gauss = saved
    chance.setstate((version, tuple(words), gauss))


def make_policy(name: str, seed: int, onward: Onward) -> RoutingPolicy:
    """Make the policy with this name; `onward` lists where each history can go."""
    if name == "random":
        return Random(seed)
    if name == "lottery":
        return Lottery(seed)
    assert name == "ordered", name
    return Ordered(onward)
