"""Several sources replayed side by side, as batches for the local runtime.

*Correct output.* Every row of every source, once, in one batch; within a stream the order of its
clock (see `order`). In event-time order no row is ever late, whatever the watermark delays.

*Invariants.* All streams advance together: a batch ends at the same instant of the clocks for all
of them, so that the state of the join is that of a live run and not of one stream read far ahead.

*Memory.* A batch, and a chunk per source beyond it; sorting comes on top (see `order`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from plait.engine.ingest import BEFORE_ALL_TIMES
from plait.errors import SourceError
from plait.query.query import Query
from plait.runtime.order import (
    AFTER_ALL_TIMES,
    Ints,
    Timed,
    horizon_of,
    in_event_time_order,
    in_file_order,
)
from plait.runtime.sources.base import Source
from plait.runtime.sources.memory import collected

Order = Literal["event-time", "file"]
ORDERS: tuple[Order, ...] = ("event-time", "file")
BATCH_ROWS = 100_000


class Replay:
    """The batches of a run over sources, by stream of the query.

    `order="event-time"` replays each source sorted by event time; an iterator of batches is first
    read into memory. `order="file"` takes the rows as they stand, and watermarks decide which of
    them are late. Batches have about `batch_rows` rows over all streams, or, with
    `batch_seconds`, that much event time.
    """

    def __init__(
        self,
        query: Query,
        sources: Mapping[str, Source],
        *,
        order: Order = "event-time",
        batch_rows: int = BATCH_ROWS,
        batch_seconds: float | None = None,
    ) -> None:
        if order not in ORDERS:
            raise SourceError(f"there is no order {order!r}", remedy=f"known: {', '.join(ORDERS)}")
        if batch_rows < 1 or (batch_seconds is not None and batch_seconds <= 0):
            raise SourceError("a batch is empty", remedy="give a batch size above 0")
        self._batch_rows = batch_rows
        self._width = None if batch_seconds is None else max(round(batch_seconds * 1e6), 1)
        readable = _readable(sources, order)
        self._lanes = []
        for stream in query.streams:
            source = readable[stream.name]
            columns = [f.name for f in stream.fields]
            if order == "event-time":
                horizon = horizon_of(source, stream.time)
                rows = in_event_time_order(source, columns, stream.time, horizon)
            else:
                rows = in_file_order(source, columns, stream.time)
            self._lanes.append(_Lane(stream.name, rows, source.size))

    @property
    def progress(self) -> float | None:
        """The fraction of the input that has been handed out, if it can be told."""
        known = [lane.progress for lane in self._lanes if lane.progress is not None]
        return sum(known) / len(known) if known else None

    def __iter__(self) -> Iterator[dict[str, pa.Table]]:
        """The batches; a stream without rows in a batch is not in it."""
        return self._by_rows() if self._width is None else self._by_time(self._width)

    def _frontier(self) -> int:
        """The clock that every source has been read up to."""
        return min((lane.last for lane in self._lanes if not lane.done), default=AFTER_ALL_TIMES)

    def _read_on(self) -> None:
        """Read more of the source that holds the others up."""
        min((lane for lane in self._lanes if not lane.done), key=lambda lane: lane.last).load()

    def _by_rows(self) -> Iterator[dict[str, pa.Table]]:
        while True:
            frontier = self._frontier()
            ready = [lane.clocks(frontier, self._batch_rows) for lane in self._lanes]
            total = sum(map(len, ready))
            if total < self._batch_rows and frontier < AFTER_ALL_TIMES:
                self._read_on()
            elif total:
                yield self._take(_shares(ready, self._batch_rows))
            else:
                return

    def _by_time(self, width: int) -> Iterator[dict[str, pa.Table]]:
        begin = None
        while True:
            frontier = self._frontier()
            first = min(lane.first for lane in self._lanes)
            if frontier == first == AFTER_ALL_TIMES:
                # What may be left are rows without an event time.
                if any(lane.buffered for lane in self._lanes):
                    yield self._take([lane.buffered for lane in self._lanes])
                return
            if frontier > BEFORE_ALL_TIMES and first < AFTER_ALL_TIMES:
                begin = first if begin is None else begin
                end = begin + ((first - begin) // width + 1) * width
                if frontier >= end:
                    yield self._take([len(lane.clocks(end - 1)) for lane in self._lanes])
                    continue
            self._read_on()

    def _take(self, counts: Sequence[int]) -> dict[str, pa.Table]:
        pairs = zip(self._lanes, counts, strict=True)
        return {lane.name: lane.take(count) for lane, count in pairs if count}


class _Lane:
    """The rows of one stream that have been read and not yet handed out."""

    def __init__(self, name: str, rows: Iterator[Timed], size: int | None) -> None:
        self.name = name
        self.done = False
        self.last = BEFORE_ALL_TIMES
        self.buffered = 0
        self._rows = rows
        self._size = size
        self._queue: deque[Timed] = deque()
        self._position = 0
        self._handed_out = 0

    @property
    def first(self) -> int:
        """The first clock that waits, of a row with an event time."""
        for part in self._queue:
            at = int(np.searchsorted(part.clock, BEFORE_ALL_TIMES, side="right"))
            if at < len(part.clock):
                return int(part.clock[at])
        return AFTER_ALL_TIMES

    @property
    def progress(self) -> float | None:
        """The fraction of the source that has been handed out."""
        if self._size is None:
            return None
        seen = self._handed_out + self.buffered
        if not seen:
            return 1.0 if self.done else 0.0
        return (self._position / max(self._size, 1)) * self._handed_out / seen

    def load(self) -> None:
        """Read on, or find that there is no more."""
        timed = next(self._rows, None)
        if timed is None:
            self.done = True
            return
        self._queue.append(timed)
        self._position = timed.position
        self.buffered += len(timed.clock)
        self.last = int(timed.clock[-1])

    def clocks(self, limit: int, most: int | None = None) -> Ints:
        """The clocks up to a limit of the rows that wait, only the first `most` if given."""
        found, count = [], 0
        for part in self._queue:
            stop = int(np.searchsorted(part.clock, limit, side="right"))
            found.append(part.clock[:stop])
            count += stop
            if stop < len(part.clock) or (most is not None and count >= most):
                break
        clocks = np.concatenate(found) if found else np.empty(0, np.int64)
        return clocks[:most]

    def take(self, count: int) -> pa.Table:
        """Hand out the first rows that wait."""
        self.buffered -= count
        self._handed_out += count
        parts = []
        while count:
            rows, clock, position = self._queue.popleft()
            if len(clock) > count:
                self._queue.appendleft(Timed(rows.slice(count), clock[count:], position))
                rows = rows.slice(0, count)
            parts.append(rows)
            count -= rows.num_rows
        return pa.concat_tables(parts)


def _readable(sources: Mapping[str, Source], order: Order) -> dict[str, Source]:
    """The sources, with those in memory that can be read only once but are read twice."""
    names: dict[int, list[str]] = {}
    for name, source in sources.items():
        names.setdefault(id(source), []).append(name)
    found = dict(sources)
    for same in names.values():
        source = sources[same[0]]
        if source.once and (order == "event-time" or len(same) > 1):
            found |= dict.fromkeys(same, collected(source))
    return found


def _shares(ready: Sequence[Ints], rows: int) -> list[int]:
    """How many of each, so that the `rows` smallest clocks of all are taken."""
    together = np.concatenate(ready)
    if len(together) <= rows:
        return [len(clocks) for clocks in ready]
    cut = np.partition(together, rows - 1)[rows - 1]
    counts = [int(np.searchsorted(clocks, cut, side="left")) for clocks in ready]
    for i, clocks in enumerate(ready):
        ties = int(np.searchsorted(clocks, cut, side="right")) - counts[i]
        counts[i] += min(ties, rows - sum(counts))
    return counts
