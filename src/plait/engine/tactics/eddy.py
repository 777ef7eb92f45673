"""Eddies: one queue, one tuple at a time.

*Correct output* and *invariants* are those of `plait.engine.tactics.routed`. New tuples enter when
the queue is empty, at most `intake` at a time; the rows of one stream among them are one block.
Whatever enters is worked off before the next rows are stored, so nothing waits between two slices.

*Cost.* A routing decision and a lookup for each tuple and visit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from plait.engine.ingest import Arrivals
from plait.engine.slices import Slice, cut_rows
from plait.engine.states import Tuples
from plait.engine.tactics.routed import Packet, RoutedTactic, Station
from plait.engine.windows import Windows
from plait.kernels.memory import Saved
from plait.plan.routed import Eddies


class EddyTactic(RoutedTactic):
    """Eddies at work."""

    def __init__(self, windows: Windows, plan: Eddies) -> None:
        super().__init__(windows, plan)
        self._intake = plan.intake
        self._tuples: deque[tuple[Station, Packet]] = deque()
        self.longest_queue = 0

    def to_state(self) -> Saved:
        """Also how long the queue has been."""
        return {**super().to_state(), "longest": self.longest_queue}

    def set_state(self, saved: Saved) -> None:
        """Go on from another router of this plan."""
        super().set_state(saved)
        self.longest_queue = int(saved["longest"])

    @property
    def waiting(self) -> bool:
        """Whether tuples are under way."""
        return bool(self._tuples)

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        """So many rows at a time as may enter the queue."""
        return cut_rows(arrivals, self._intake)

    def _take_in(self, station: Station, block: Packet) -> None:
        self._line_up(station, block)

    def _line_up(self, station: Station, packet: Packet) -> None:
        """Queue tuples one by one."""
        for i in range(len(packet)):
            columns = {s: column[i : i + 1] for s, column in packet.columns.items()}
            self._tuples.append((station, Packet(columns, packet.oldest, packet.earliest)))

    def _run(self) -> Iterator[Tuples]:
        while self._tuples:
            self.longest_queue = max(self.longest_queue, len(self._tuples))
            station, packet = self._tuples.popleft()
            choice = self.policy.choose(station.done, station.ready)
            yield from self._route(station, choice.target, packet)

    def _queue(self, station: Station, packet: Packet) -> Iterator[Tuples]:
        self._line_up(station, packet)
        yield from ()

    def _waiting(self) -> tuple[int, int] | None:
        # Rows are dropped between two slices only, when the queue is empty.
        assert not self._tuples
        return None
