"""Event times in microseconds, and which of them are usable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:  # the console reads times, and needs no compiler
    from plait.kernels.jit import Ints

BEFORE_ALL_TIMES = -(2**62)
"""The watermark of a stream that has not been seen; far enough from the end of int64 to add to."""

AFTER_ALL_TIMES = 2**62
"""The watermark of a stream that has ended."""

MOST_DISTANT_TIME = 2**60
"""Event times further than this from 1970, some 36,000 years, are set aside."""

_PER_MICRO = {"s": 1_000_000, "ms": 1_000, "us": 1}


def with_times(rows: pa.RecordBatch, column: str) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Separate the rows with a usable event time from the others, if there are any.

    A time is set aside when it is null or some thousands of years away: it would move the
    watermark beyond all other rows, and sums of it with a bound would overflow.
    """
    times = rows.column(column)
    nanoseconds = times.type.unit == "ns"
    limit = 2**63 - 1 if nanoseconds else MOST_DISTANT_TIME // _PER_MICRO[times.type.unit]
    raw = times.cast(pa.int64())
    extremes = pc.min_max(raw)
    inside = extremes["min"].as_py() is None or (
        extremes["min"].as_py() >= -limit and extremes["max"].as_py() <= limit
    )
    if inside and not times.null_count:
        return rows, None
    usable = pc.and_(pc.greater_equal(raw, -limit), pc.less_equal(raw, limit)).fill_null(False)
    return rows.filter(usable), rows.filter(pc.invert(usable))


def event_times(array: pa.Array) -> Ints:
    """Convert event times to microseconds, nanoseconds rounded down; undefined where null."""
    raw = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array)]
    if array.type.unit == "ns":
        return np.floor_divide(raw, 1_000)
    return raw * _PER_MICRO[array.type.unit] if array.type.unit != "us" else raw
