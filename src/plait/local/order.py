"""Read the rows of a source with their clock: by event time, or as they stand in the source.

*Clock.* A number per row that never falls within a source; sources are replayed side by side by
their clocks. In event-time order it is the event time in microseconds. In file order it is the
largest event time so far: a row out of order arrives together with the newest row before it. A row
without a usable event time (`engine.intake.times.with_times` says which) is *undated*: it arrives
with its predecessor, and neither clock nor horizon knows of it.

*Event-time order.* A first scan of the time column notes, for every position, the earliest time
after it: the horizon. The second scan holds rows back until the horizon has passed them.

*Memory.* What the disorder of the source needs: a chunk or two if it is sorted already, the rows
of twice its disorder if it is nearly sorted, everything if it is shuffled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.engine.intake.times import BEFORE_ALL_TIMES, event_times, with_times
from plait.local.encodings import decoded_batch
from plait.local.sources.base import Source

Ints = npt.NDArray[np.int64]

AFTER_ALL_TIMES = 2**62
"""Above every clock: no event time that can be counted with comes near it."""


class Timed(NamedTuple):
    """Some rows with their clock, which ascends, and the position in the source after them.

    `undated` has the numbers of the rows without a usable event time, which ascend.
    """

    rows: pa.Table
    clock: Ints
    position: int
    undated: Ints

    @property
    def dates(self) -> int:
        """The number of rows with an event time."""
        return len(self.clock) - len(self.undated)

    @property
    def first(self) -> int:
        """The clock of the first row that has an event time."""
        return int(self.clock[np.searchsorted(self._dates_before, 0, side="right")])

    @property
    def _dates_before(self) -> Ints:
        """For each undated row, the number of dated rows before it."""
        return self.undated - np.arange(len(self.undated))

    def stop_after(self, dates: int) -> int:
        """The number of rows up to the n-th dated one, and the undated ones that follow it."""
        return dates + int(np.searchsorted(self._dates_before, dates, side="right"))

    def dated_clock(self, stop: int) -> Ints:
        """The clock of the dated rows among the first `stop`."""
        undated = self.undated[: np.searchsorted(self.undated, stop)]
        return np.delete(self.clock[:stop], undated) if len(undated) else self.clock[:stop]

    def only_dated(self) -> Timed:
        """Without the undated rows."""
        if not len(self.undated):
            return self
        dated = np.delete(np.arange(len(self.clock)), self.undated)
        return Timed(self.rows.take(dated), self.clock[dated], self.position, self.undated[:0])

    def only_undated(self) -> Timed:
        """Without the dated rows."""
        if not self.dates:
            return self
        numbers = np.arange(len(self.undated))
        rows = self.rows.take(self.undated)
        return Timed(rows, self.clock[self.undated], self.position, numbers)

    def part(self, start: int, stop: int | None = None) -> Timed:
        """Some of the rows, without a copy."""
        clock = self.clock[start:stop]
        first, last = np.searchsorted(self.undated, (start, start + len(clock)))
        undated = self.undated[first:last] - start
        return Timed(self.rows.slice(start, len(clock)), clock, self.position, undated)


def in_file_order(source: Source, columns: Sequence[str], time: str) -> Iterator[Timed]:
    """The rows as they stand in the source."""
    newest = BEFORE_ALL_TIMES
    for rows, position in source.scan(columns):
        if rows.num_rows:
            part = _timed(rows, time, position)
            clock = np.maximum.accumulate(np.maximum(part.clock, newest))
            newest = int(clock[-1])
            yield part._replace(clock=clock)


def in_event_time_order(
    source: Source, columns: Sequence[str], time: str, horizon: Horizon
) -> Iterator[Timed]:
    """The rows sorted by event time, ties as they stand in the source."""
    held: list[Timed] = []
    position, newest = 0, BEFORE_ALL_TIMES
    for rows, position in source.scan(columns):
        if not rows.num_rows:
            continue
        held.append(_timed(rows, time, position))
        limit = horizon.after(position)
        ready = sum(int(np.count_nonzero(part.clock <= limit)) for part in held)
        # Sorting is worth it when half of what is held can go: each row is sorted few times.
        if 2 * ready >= sum(len(part.clock) for part in held):
            everything = _sorted(held)
            done = int(np.searchsorted(everything.clock, limit, side="right"))
            yield _not_before(newest, everything.part(0, done))
            newest = max(newest, int(everything.clock[done - 1])) if done else newest
            held = [everything.part(done)] if done < len(everything.clock) else []
    if held:
        yield _not_before(newest, _sorted(held)._replace(position=position))


class Horizon:
    """For every position of a source, the earliest event time after it.

    >>> horizon = Horizon([10, 20], [5, 3])
    >>> horizon.after(0), horizon.after(10), horizon.after(20) == AFTER_ALL_TIMES
    (3, 3, True)
    """

    def __init__(self, positions: Sequence[int], earliest: Sequence[int]) -> None:
        self._positions = np.array(positions, np.int64)
        following = np.array([*earliest, AFTER_ALL_TIMES], np.int64)
        self._after = np.minimum.accumulate(following[::-1])[::-1]

    def after(self, position: int) -> int:
        """The earliest event time beyond a position."""
        return int(self._after[np.searchsorted(self._positions, position, side="right")])


def horizon_of(source: Source, time: str) -> Horizon:
    """The horizon, from a scan of the time column alone."""
    positions, earliest = [], []
    for rows, position in source.scan([time], report=False):
        times = times_of(rows, time)
        times = times[times > BEFORE_ALL_TIMES]
        positions.append(position)
        earliest.append(int(times.min()) if len(times) else AFTER_ALL_TIMES)
    return Horizon(positions, earliest)


def times_of(rows: pa.RecordBatch, time: str) -> Ints:
    """Event times in microseconds, those that cannot be counted with before all others."""
    column = rows.column(time)
    numbers = pa.array(np.arange(len(column)))
    numbered = pa.RecordBatch.from_arrays([column, numbers], names=["time", "number"])
    usable, others = with_times(numbered, "time")
    times = np.full(len(column), BEFORE_ALL_TIMES)
    if others is None and len(column):
        times[:] = event_times(column)
    elif usable.num_rows:
        times[usable.column("number").to_numpy()] = event_times(usable.column("time"))
    return times


def _timed(rows: pa.RecordBatch, time: str, position: int) -> Timed:
    rows = decoded_batch(rows)
    times = times_of(rows, time)
    undated = np.flatnonzero(times == BEFORE_ALL_TIMES)
    return Timed(pa.Table.from_batches([rows]), times, position, undated)


def _sorted(parts: Sequence[Timed]) -> Timed:
    """All rows by their clocks, so that the undated ones come first."""
    rows = pa.concat_tables([part.rows for part in parts])
    clock = np.concatenate([part.clock for part in parts])
    if np.any(clock[1:] < clock[:-1]):
        order = np.argsort(clock, kind="stable")
        rows, clock = rows.combine_chunks().take(pa.array(order)), clock[order]
    undated = np.arange(np.searchsorted(clock, BEFORE_ALL_TIMES, side="right"))
    return Timed(rows, clock, parts[-1].position, undated)


def _not_before(newest: int, timed: Timed) -> Timed:
    """The undated rows, which come first, with the clock of their predecessor."""
    if len(timed.clock) and timed.clock[0] < newest:
        return timed._replace(clock=np.maximum(timed.clock, newest))
    return timed
