"""Teddies: packets of tuples with the same history, routed as a whole.

*Correct output* and *invariants* are those of `plait.engine.tactics.routed`: the queues decide when
tuples are routed, and results do not depend on that.

*Metaqueues.* The tuples of one history wait in one metaqueue. It is put at the end of the
scheduler's queue when its occupancy reaches its threshold, and stays there until its turn; then
all its tuples, up to the packet limit, make one visit together. If it held at least twice its
threshold at that moment, the threshold doubles. Every metaqueue that is not scheduled counts the
rounds since it was; each round beyond the counter limit halves its threshold. So much-used
histories come to travel in large packets, and none waits for ever.

*A round* is the turn of a metaqueue, or new tuples entering without anything becoming due. It
costs a step per metaqueue beside the visit.

*Back-pressure.* New tuples enter only when nothing is scheduled. And when a visit finds so much
that the next metaqueue holds several packets, those are routed before the visit goes on, as a
part of it: what waits is bounded by the depth of a history, not by the size of the result.

*Waiting.* At the end of a batch every metaqueue is worked off whose oldest tuple has been under
way for more than `patience` batches; histories only grow, so one pass from short to long ones
does. Within a batch the rounds that a tuple waits are bounded. Both are measured:
`metaqueues` reports rounds and seconds.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import Slice, cut_rows
from plait.engine.states import Tuples
from plait.engine.tactics.routed import QueueCounts, RoutedTactic, Station, TuplePacket
from plait.engine.windows import Windows
from plait.kernels.memory import Saved
from plait.plan.routed import Teddies


class Metaqueue:
    """The waiting tuples of one history, and the thresholds for their turn."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self.occupancy = 0
        self.threshold = 1
        self.counter = 0
        self.scheduled = False
        self.packets: deque[tuple[TuplePacket, int, float]] = deque()
        self.turns = self.routed = self.most = self.longest_rounds = 0
        self.held = self.rounds = self.seconds = self.longest_seconds = 0.0

    def begin_turn(self, limit: int) -> None:
        """Remember how full it is; the threshold doubles, up to a limit, if that is twice it."""
        self.turns += 1
        self.held += self.occupancy
        self.most = max(self.most, self.occupancy)
        self.counter = 0
        if self.occupancy >= 2 * self.threshold:
            self.threshold = min(2 * self.threshold, limit)

    def put(self, packet: TuplePacket, now: int, clock: float) -> None:
        """Add waiting tuples."""
        self.packets.append((packet, now, clock))
        self.occupancy += len(packet)

    def take(self, most: int, now: int, clock: float) -> TuplePacket:
        """Take the tuples that waited longest as one packet, and remember how long."""
        parts: list[TuplePacket] = []
        left = most
        while self.packets and left:
            packet, entered, began = self.packets.popleft()
            if len(packet) > left:
                self.packets.appendleft((_part(packet, left, len(packet)), entered, began))
                packet = _part(packet, 0, left)
            n = len(packet)
            left -= n
            parts.append(packet)
            self.rounds += n * (now - entered)
            self.seconds += n * (clock - began)
            self.longest_rounds = max(self.longest_rounds, now - entered)
            self.longest_seconds = max(self.longest_seconds, clock - began)
        self.occupancy -= most - left
        self.routed += most - left
        return _together(parts)

    def to_state(self) -> Saved:
        """What it has learnt and counted; nothing waits."""
        return {name: getattr(self, name) for name in _LEARNT}

    def set_state(self, saved: Saved) -> None:
        """Go on from another metaqueue of this history."""
        for name, kind in _LEARNT.items():
            setattr(self, name, kind(saved[name]))

    def report(self, names: tuple[str, ...]) -> QueueCounts:
        """What it did so far."""
        turns, tuples = max(1, self.turns), max(1, self.routed)
        return QueueCounts(
            tuple(names[s] for s in self.station.streams),
            self.turns,
            self.routed,
            self.held / turns,
            self.most,
            self.threshold,
            self.rounds / tuples,
            self.longest_rounds,
            self.seconds / tuples,
            self.longest_seconds,
        )


_LEARNT: dict[str, type[int] | type[float]] = {
    **dict.fromkeys(("threshold", "counter", "turns", "routed", "most", "longest_rounds"), int),
    **dict.fromkeys(("held", "rounds", "seconds", "longest_seconds"), float),
}
"""The numbers of a metaqueue that outlast its tuples."""


class TeddyTactic(RoutedTactic):
    """Runs Teddies: a metaqueue per history, and a queue of those that are due.

    `clock` is read to report how long tuples wait; nothing is decided by it.
    """

    def __init__(
        self,
        windows: Windows,
        plan: Teddies,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(windows, plan)
        self._teddies = plan
        self._clock = clock
        self._metaqueues: dict[int, Metaqueue] = {}
        self._schedule: deque[Metaqueue] = deque()
        self._batch_ends: deque[int] = deque(maxlen=plan.patience + 1)
        self._highest_threshold = min(plan.threshold_limit, plan.packet_limit)
        self.rounds = 0

    def to_state(self) -> Saved:
        """Also what the metaqueues have learnt."""
        return {
            **super().to_state(),
            "round": self.rounds,
            "ends": list(self._batch_ends),
            "queues": [[done, queue.to_state()] for done, queue in self._metaqueues.items()],
        }

    def set_state(self, saved: Saved) -> None:
        """Go on from another engine of this plan."""
        super().set_state(saved)
        self.rounds = int(saved["round"])
        self._batch_ends.extend(int(end) for end in saved["ends"])
        for done, learnt in saved["queues"]:
            queue = self._metaqueues[int(done)] = Metaqueue(self._station(int(done)))
            queue.set_state(learnt)

    def metaqueues(self) -> list[QueueCounts]:
        """What every metaqueue did so far, short histories first."""
        queues = sorted(self._metaqueues.values(), key=lambda q: _depth(q.station))
        return [queue.report(self._query.names) for queue in queues]

    @property
    def under_way(self) -> int:
        """The tuples that wait now."""
        return sum(queue.occupancy for queue in self._metaqueues.values())

    def finish(self) -> Iterator[Tuples]:
        """Process all waiting tuples."""
        yield from self._work_off(lambda queue: True)

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        """Slices of event time, larger than usual; or as many rows as the plan says."""
        if self._teddies.intake is None:
            return self.windows.slices(arrivals, self.windows.tuning.teddy_slices)
        return cut_rows(arrivals, self._teddies.intake)

    def _take_in(self, station: Station, block: TuplePacket) -> None:
        self._schedule_if_due(self._enqueue(station, block))
        if not self._schedule:
            self._end_round()

    def _run(self) -> Iterator[Tuples]:
        while self._schedule:
            queue = self._schedule.popleft()
            queue.scheduled = False
            if queue.occupancy:
                yield from self._turn(queue)
                self._end_round(queue)

    def _turn(self, queue: Metaqueue) -> Iterator[Tuples]:
        """Route what a metaqueue holds, up to the packet limit; a trial takes a part of it."""
        station = queue.station
        queue.begin_turn(self._highest_threshold)
        left = min(queue.occupancy, self._teddies.packet_limit)
        while left:
            choice = self.policy.choose(station.done, station.ready, left)
            most = left if choice.at_most is None else min(left, choice.at_most)
            packet = queue.take(most, self.rounds, self._clock())
            left -= most
            yield from self._route(station, choice.target, packet)

    def _end_round(self, just_routed: Metaqueue | None = None) -> None:
        self.rounds += 1
        for queue in self._metaqueues.values():
            if queue.scheduled:
                continue
            if queue is not just_routed:
                queue.counter += 1
                if queue.counter > self._teddies.counter_limit and queue.threshold > 1:
                    queue.threshold //= 2
            self._schedule_if_due(queue)

    def _schedule_if_due(self, queue: Metaqueue) -> None:
        if not queue.scheduled and queue.occupancy >= queue.threshold:
            queue.scheduled = True
            self._schedule.append(queue)

    def _enqueue(self, station: Station, packet: TuplePacket) -> Metaqueue:
        queue = self._metaqueues.get(station.done)
        if queue is None:
            queue = self._metaqueues[station.done] = Metaqueue(station)
        queue.put(packet, self.rounds, self._clock())
        return queue

    def _queue(self, station: Station, packet: TuplePacket) -> Iterator[Tuples]:
        queue = self._enqueue(station, packet)
        while queue.occupancy >= self.windows.tuning.waiting_packets * self._teddies.packet_limit:
            yield from self._turn(queue)

    def close_batch(self) -> Iterator[Tuples]:
        """Process the tuples that have waited for more batches than allowed."""
        self._batch_ends.append(self._frontiers.next)
        if len(self._batch_ends) > self._teddies.patience:
            before = self._batch_ends[0]
            yield from self._work_off(lambda q: min(p.oldest for p, _, _ in q.packets) < before)

    def _work_off(self, due: Callable[[Metaqueue], bool]) -> Iterator[Tuples]:
        """Route from every metaqueue, short histories first, as long as it is due."""
        for size in range(1, len(self._bases)):
            for queue in [q for q in self._metaqueues.values() if len(q.station.streams) == size]:
                while queue.occupancy and due(queue):
                    yield from self._turn(queue)
                    self._end_round(queue)
        self._schedule = deque(q for q in self._schedule if q.occupancy)
        for queue in self._metaqueues.values():
            queue.scheduled = queue in self._schedule

    def _waiting(self) -> tuple[int, int] | None:
        packets = [p for queue in self._metaqueues.values() for p, _, _ in queue.packets]
        if not packets:
            return None
        return min(p.oldest for p in packets), min(p.earliest for p in packets)


def _depth(station: Station) -> tuple[int, int]:
    return len(station.streams), station.done


def _part(packet: TuplePacket, start: int, stop: int) -> TuplePacket:
    columns = {s: column[start:stop] for s, column in packet.columns.items()}
    return TuplePacket(columns, packet.oldest, packet.earliest)


def _together(parts: list[TuplePacket]) -> TuplePacket:
    """Join several packets into one."""
    if len(parts) == 1:
        return parts[0]
    columns = {s: np.concatenate([p.columns[s] for p in parts]) for s in parts[0].columns}
    return TuplePacket(columns, min(p.oldest for p in parts), min(p.earliest for p in parts))
