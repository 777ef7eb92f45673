"""Eddies: one queue, one tuple at a time.

*Correct output* and *invariants* are those of `plait.engine.tactics.routed`. New tuples enter when
the queue is empty, at most `intake` at a time; the rows of one stream among them are one block.
Whatever enters is worked off before the next rows are stored, so nothing waits between two slices.

*Cost.* A routing decision and a lookup for each tuple and visit. Both are compiled
(`plait.engine.tactics.single`), except where conditions must be checked that no index knows: then
each tuple is a packet of one, at some 80 microseconds a visit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import Slice, cut_rows
from plait.engine.probe import length
from plait.engine.states import Tuples
from plait.engine.tactics.routed import RoutedTactic, Station, TuplePacket
from plait.engine.tactics.single import SingleTuples
from plait.engine.windows import Windows
from plait.kernels.jit import Positions
from plait.kernels.memory import Saved
from plait.plan.routed import Eddies
from plait.query.expr import streams_of


class EddyTactic(RoutedTactic):
    """Runs Eddies."""

    def __init__(self, windows: Windows, plan: Eddies) -> None:
        super().__init__(windows, plan)
        self._intake = plan.intake
        self._tuples: deque[tuple[Station, TuplePacket]] = deque()
        self._single = SingleTuples(windows, self._station, self._visit)
        self.compiled = all(len(streams_of(r)) < 2 for r in self._query.residuals)
        """Whether single tuples are routed by compiled code."""
        self.longest_queue = 0

    def to_state(self) -> Saved:
        """Describe its state, with the largest length of the queue."""
        return {**super().to_state(), "longest": self.longest_queue}

    def set_state(self, saved: Saved) -> None:
        """Go on from another router of this plan."""
        super().set_state(saved)
        self.longest_queue = int(saved["longest"])

    @property
    def waiting(self) -> bool:
        """Whether tuples are under way."""
        return bool(self._tuples) or self._single.waiting

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        """Cut a batch into portions that fit the queue."""
        return cut_rows(arrivals, self._intake)

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        """Queue new tuples, and route until nothing waits."""
        if not self.compiled:
            return super().probe(stream, positions)
        self._inputs[stream].arrivals += len(positions)
        self._inputs[stream].inserts += len(positions)
        return self._route_compiled(stream, positions)

    def _route_compiled(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        before = self._single.decisions
        for found in self._single.run(stream, positions, self.policy):
            self._outputs += length(found)
            yield found
        self.decisions += self._single.decisions - before
        self.longest_queue = max(self.longest_queue, self._single.longest)

    def _take_in(self, station: Station, block: TuplePacket) -> None:
        self._line_up(station, block)

    def _line_up(self, station: Station, packet: TuplePacket) -> None:
        """Queue tuples one by one."""
        for i in range(len(packet)):
            columns = {s: column[i : i + 1] for s, column in packet.columns.items()}
            self._tuples.append((station, TuplePacket(columns, packet.oldest, packet.earliest)))

    def _run(self) -> Iterator[Tuples]:
        while self._tuples:
            self.longest_queue = max(self.longest_queue, len(self._tuples))
            station, packet = self._tuples.popleft()
            choice = self.policy.choose(station.done, station.ready)
            yield from self._route(station, choice.target, packet)

    def _queue(self, station: Station, packet: TuplePacket) -> Iterator[Tuples]:
        self._line_up(station, packet)
        yield from ()

    def _waiting(self) -> tuple[int, int] | None:
        # Rows are dropped between two slices only, when the queue is empty.
        assert not self.waiting
        return None
