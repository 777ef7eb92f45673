"""Streams that have fallen silent: when they hold the others back no longer.

A stream's watermark holds while it is silent, because its rows may still come; so the windows of
the others grow. A stream with an idle timeout that was not heard of for that long *follows*: its
watermark becomes the smallest of the streams that are not idle. What it delivers afterwards below
that watermark is late. A stream without a watermark never has late rows, so it never follows.

*Invariants.* A watermark never goes back: following raises the newest event time that a stream is
taken to have reached, and that is in the header as if it had been seen. The clock is the time at
which Spark began the batch, which it keeps in its log: all processors have the same, and a batch
that is repeated has it again. If all streams are idle, nobody leads and all hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.engine.times import BEFORE_ALL_TIMES
from plait.engine.watermarks import own_watermark
from plait.query.query import Stream


def progressed(
    streams: Sequence[Stream], newest: Sequence[int], heard: Sequence[int], clock: int
) -> list[int]:
    """How far the streams have come in event time, when idle ones follow the others.

    `newest` is in microseconds of event time; `heard`, when a stream last delivered a row with an
    event time, and `clock` are in milliseconds of the clock.

    >>> a, b = Stream("a", (), "ts", 5), Stream("b", (), "ts", 2, idle=60_000_000)
    >>> progressed((a, b), [100, 10], heard=[90_000, 30_000], clock=90_000)
    [100, 97]
    >>> progressed((a, b), [100, 10], heard=[90_000, 30_001], clock=90_000)
    [100, 10]
    """
    idle = [
        s.idle is not None and (clock - since) * 1_000 >= s.idle
        for s, since in zip(streams, heard, strict=True)
    ]
    leading = [
        own_watermark(s, n)
        for s, n, silent in zip(streams, newest, idle, strict=True)
        if not silent
    ]
    if not leading or min(leading) == BEFORE_ALL_TIMES:
        return list(newest)
    return [
        max(n, min(leading) + s.delay) if silent and not s.unlimited else n
        for s, n, silent in zip(streams, newest, idle, strict=True)
    ]
