"""Replay several sources side by side, as batches of a local run.

*Correct output.* Every row of every source, once, in one batch; within a stream the order of its
clock (see `order`). In event-time order no row is ever late, whatever the watermark delays.

*Invariants.* All streams advance together: a batch ends at the same instant of the clocks for all
of them, so that the state of the join is that of a live run and not of one stream read far ahead.
Where batches end depends on the rows with an event time alone, in the order of (clock, stream,
place in the source): neither the chunks of the sources nor undated rows change which rows are late.

*Undated rows.* They come with their predecessor and fill no batch. If too many wait for a batch to
be full, they go ahead in one of their own: they move no watermark, so their place is immaterial.

*Memory.* A batch with the undated rows between its own, and a chunk per source beyond it; sorting
comes on top (see `order`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.errors import SourceError
from plait.local.options import ORDERS, LocalOptions, Order
from plait.local.order import (
    AFTER_ALL_TIMES,
    Ints,
    Timed,
    horizon_of,
    in_event_time_order,
    in_file_order,
)
from plait.local.sources.base import Source
from plait.local.sources.memory import collected
from plait.query.query import Query


class Replay:
    """The batches of a run over sources, by stream of the query.

    In event-time order each source is sorted; an iterator of batches is first read into memory. In
    file order the rows are taken as they stand, and watermarks decide which of them are late.
    """

    def __init__(self, query: Query, sources: Mapping[str, Source], options: LocalOptions) -> None:
        order, seconds = options.order, options.batch_seconds
        if order not in ORDERS:
            raise SourceError(f"there is no order {order!r}", remedy=f"known: {', '.join(ORDERS)}")
        if options.batch_rows < 1:
            raise SourceError(
                f"a batch of {options.batch_rows} rows", remedy="give a batch size above 0"
            )
        self._batch_rows = options.batch_rows
        self._width = None if seconds is None else _width(seconds)
        self._undated_rows = options.undated_rows
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
        """The fraction of the input that has been handed out, if it is known."""
        known = [lane.progress for lane in self._lanes if lane.progress is not None]
        return sum(known) / len(known) if known else None

    def __iter__(self) -> Iterator[dict[str, pa.Table]]:
        """The batches; a stream without rows in a batch is not in it."""
        return self._by_rows() if self._width is None else self._by_time(self._width)

    def _frontier(self) -> int:
        """The clock that every source has been read up to."""
        return min((lane.last for lane in self._lanes if not lane.done), default=AFTER_ALL_TIMES)

    def _limits(self) -> list[int]:
        """Per lane, the clock up to which its rows come before all that is not yet read.

        Among equal clocks the rows of the first lane come first. So a row may go once the lanes
        after its own have been read up to its clock, and those before it beyond it.
        """
        before, limits = AFTER_ALL_TIMES, []
        for i, lane in enumerate(self._lanes):
            behind = (later.last for later in self._lanes[i + 1 :] if not later.done)
            limits.append(min((before, *behind)))
            before = before if lane.done else min(before, lane.last - 1)
        return limits

    def _read_on(self) -> None:
        """Read more of the source that is furthest behind."""
        min((lane for lane in self._lanes if not lane.done), key=lambda lane: lane.last).load()

    def _by_rows(self) -> Iterator[dict[str, pa.Table]]:
        while True:
            waiting = zip(self._lanes, self._limits(), strict=True)
            ready = [lane.clocks(limit, self._batch_rows) for lane, limit in waiting]
            total = sum(map(len, ready))
            done = all(lane.done for lane in self._lanes)
            if total >= self._batch_rows or (done and total):
                yield self._take(_shares(ready, self._batch_rows))
            elif done:
                yield from self._undated(more_than=0)
                return
            else:
                yield from self._undated(more_than=self._undated_rows)
                self._read_on()

    def _by_time(self, width: int) -> Iterator[dict[str, pa.Table]]:
        begin = None
        while True:
            frontier = self._frontier()
            first = min(lane.first for lane in self._lanes)
            if frontier == first == AFTER_ALL_TIMES:
                yield from self._undated(more_than=0)
                return
            if frontier > BEFORE_ALL_TIMES and first < AFTER_ALL_TIMES:
                begin = first if begin is None else begin
                end = min(begin + ((first - begin) // width + 1) * width, AFTER_ALL_TIMES)
                if frontier >= end:
                    yield self._take([len(lane.clocks(end - 1)) for lane in self._lanes])
                    continue
            yield from self._undated(more_than=self._undated_rows)
            self._read_on()

    def _take(self, counts: Sequence[int]) -> dict[str, pa.Table]:
        pairs = zip(self._lanes, counts, strict=True)
        return {lane.name: lane.take(count) for lane, count in pairs if count}

    def _undated(self, more_than: int) -> Iterator[dict[str, pa.Table]]:
        """A batch of the undated rows that wait, if they are many."""
        if sum(lane.undated for lane in self._lanes) > more_than:
            yield {lane.name: lane.take_undated() for lane in self._lanes if lane.undated}


class _Lane:
    """The rows of one stream that have been read and not yet handed out."""

    def __init__(self, name: str, rows: Iterator[Timed], size: int | None) -> None:
        self.name = name
        self.done = False
        self.last = BEFORE_ALL_TIMES
        self.undated = 0
        """Rows without an event time that wait."""
        self._rows = rows
        self._size = size
        self._queue: deque[Timed] = deque()
        self._buffered = 0
        self._position = 0
        self._handed_out = 0

    @property
    def first(self) -> int:
        """The first clock that waits, of a row with an event time."""
        return next((part.first for part in self._queue if part.dates), AFTER_ALL_TIMES)

    @property
    def progress(self) -> float | None:
        """The fraction of the source that has been handed out."""
        if self._size is None:
            return None
        seen = self._handed_out + self._buffered
        if not seen:
            return 1.0 if self.done else 0.0
        return (self._position / max(self._size, 1)) * self._handed_out / seen

    def load(self) -> None:
        """Read the next rows; set `done` if there are none."""
        timed = next(self._rows, None)
        if timed is None:
            self.done = True
            return
        self._queue.append(timed)
        self._position = timed.position
        self._buffered += len(timed.clock)
        self.undated += len(timed.undated)
        self.last = int(timed.clock[-1])

    def clocks(self, limit: int, most: int | None = None) -> Ints:
        """The clocks up to a limit of the dated rows that wait, the first `most` if given."""
        found, count = [], 0
        for part in self._queue:
            stop = int(np.searchsorted(part.clock, limit, side="right"))
            found.append(part.dated_clock(stop))
            count += len(found[-1])
            if stop < len(part.clock) or (most is not None and count >= most):
                break
        clocks = np.concatenate(found) if found else np.empty(0, np.int64)
        return clocks[:most]

    def take(self, count: int) -> pa.Table:
        """Hand out the first dated rows that wait, and the undated ones among them."""
        parts = []
        while count:
            part = self._queue.popleft()
            if part.dates > count:
                stop = part.stop_after(count)
                self._queue.appendleft(part.part(stop))
                part = part.part(0, stop)
            parts.append(part)
            count -= part.dates
        return self._hand_out(parts)

    def take_undated(self) -> pa.Table:
        """Hand out the undated rows that wait, in their order, ahead of the others."""
        parts = [part.only_undated() for part in self._queue]
        self._queue = deque(part.only_dated() for part in self._queue if part.dates)
        return self._hand_out(parts)

    def _hand_out(self, parts: Sequence[Timed]) -> pa.Table:
        rows = sum(len(part.clock) for part in parts)
        self._buffered -= rows
        self._handed_out += rows
        self.undated -= sum(len(part.undated) for part in parts)
        return pa.concat_tables([part.rows for part in parts])


def _width(seconds: float) -> int:
    """A length of event time in microseconds; beyond all times there is only one batch."""
    if not (math.isfinite(seconds) and seconds > 0):
        raise SourceError(
            f"a batch of {seconds:g} seconds",
            remedy="give a batch size above 0 that is finite, or leave it out",
        )
    return max(round(min(seconds * 1e6, AFTER_ALL_TIMES)), 1)


def _readable(sources: Mapping[str, Source], order: Order) -> dict[str, Source]:
    """Read sources into memory that can be scanned once but are scanned twice."""
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
    """The number of rows to take from each, so that the smallest clocks of all are taken."""
    together = np.concatenate(ready)
    if len(together) <= rows:
        return [len(clocks) for clocks in ready]
    cut = np.partition(together, rows - 1)[rows - 1]
    counts = [int(np.searchsorted(clocks, cut, side="left")) for clocks in ready]
    for i, clocks in enumerate(ready):
        ties = int(np.searchsorted(clocks, cut, side="right")) - counts[i]
        counts[i] += min(ties, rows - sum(counts))
    return counts
