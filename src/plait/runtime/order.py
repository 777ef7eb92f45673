"""The rows of a source with their clock: in order of event time, or as they stand in the source.

*Clock.* A number per row that never falls within a source; sources are replayed side by side by
their clocks. In event-time order it is the event time in microseconds. In file order it is the
largest event time so far: a row out of order arrives together with the newest row before it. A row
without an event time arrives with its predecessor.

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

from plait.engine.ingest import BEFORE_ALL_TIMES, event_times
from plait.runtime.sources.base import Source

Ints = npt.NDArray[np.int64]

AFTER_ALL_TIMES = 2**62


class Timed(NamedTuple):
    """Some rows with their clock, which ascends, and the position in the source after them."""

    rows: pa.Table
    clock: Ints
    position: int


def in_file_order(source: Source, columns: Sequence[str], time: str) -> Iterator[Timed]:
    """The rows as they stand in the source."""
    newest = BEFORE_ALL_TIMES
    for rows, position in source.scan(columns):
        if rows.num_rows:
            times = times_of(rows, time)
            times[0] = max(newest, int(times[0]))
            clock = np.maximum.accumulate(times)
            newest = int(clock[-1])
            yield Timed(pa.Table.from_batches([rows]), clock, position)


def in_event_time_order(
    source: Source, columns: Sequence[str], time: str, horizon: Horizon
) -> Iterator[Timed]:
    """The rows sorted by event time, ties as they stand in the source."""
    held: list[Timed] = []
    position, newest = 0, BEFORE_ALL_TIMES
    for rows, position in source.scan(columns):
        if not rows.num_rows:
            continue
        held.append(Timed(pa.Table.from_batches([rows]), times_of(rows, time), position))
        limit = horizon.after(position)
        ready = sum(int(np.count_nonzero(part.clock <= limit)) for part in held)
        # Sorting is worth it when half of what is held can go: each row is sorted few times.
        if 2 * ready >= sum(len(part.clock) for part in held):
            everything = _sorted(held)
            done = int(np.searchsorted(everything.clock, limit, side="right"))
            yield _not_before(newest, _slice(everything, 0, done))
            newest = max(newest, int(everything.clock[done - 1])) if done else newest
            held = [_slice(everything, done, None)] if done < len(everything.clock) else []
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
    """Event times in microseconds, those that are null before all others."""
    column = rows.column(time)
    if not len(column):
        return np.empty(0, np.int64)
    times = np.array(event_times(column))
    if column.null_count:
        times[column.is_null().to_numpy(zero_copy_only=False)] = BEFORE_ALL_TIMES
    return times


def _sorted(parts: Sequence[Timed]) -> Timed:
    rows = pa.concat_tables([part.rows for part in parts])
    clock = np.concatenate([part.clock for part in parts])
    if np.any(clock[1:] < clock[:-1]):
        order = np.argsort(clock, kind="stable")
        rows, clock = rows.combine_chunks().take(pa.array(order)), clock[order]
    return Timed(rows, clock, parts[-1].position)


def _not_before(newest: int, timed: Timed) -> Timed:
    """The rows without an event time, which come first, with the clock of their predecessor."""
    if len(timed.clock) and timed.clock[0] < newest:
        return timed._replace(clock=np.maximum(timed.clock, newest))
    return timed


def _slice(timed: Timed, start: int, stop: int | None) -> Timed:
    clock = timed.clock[start:stop]
    return Timed(timed.rows.slice(start, len(clock)), clock, timed.position)
