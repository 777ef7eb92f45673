"""Streams that have fallen silent: when they hold the others back no longer.

A stream's watermark holds while it is silent, because its rows may still come; so the windows of
the others grow. A stream with an idle timeout that was not heard of for that long *follows*: its
watermark becomes the smallest of the streams that are not idle. What it delivers afterwards below
that watermark is late. A stream without a watermark never has late rows, so it never follows.

*Invariants.* A watermark never goes back: following raises the floor of a stream's watermark, and
floors are in the header. The newest event time that a stream has shown stays what it is, so that a
delay that is changed later counts from there. The clock is the time at which Spark began the batch,
which it keeps in its log: all processors have the same, and a batch that is repeated has it again.
If all streams are idle, nobody leads and all hold. In a batch in which no processor runs, no stream
follows; it does in the next one.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.intake.watermarks import own_watermarks
from plait.query.query import Stream


def followed(
    streams: Sequence[Stream],
    newest: Sequence[int],
    floors: Sequence[int],
    heard: Sequence[int],
    clock: int,
) -> list[int]:
    """The floors of the watermarks, when idle streams follow the others.

    `newest` and `floors` are in microseconds of event time; `heard`, when a stream last delivered a
    row with an event time, and `clock` are in milliseconds of the clock.

    >>> a, b = Stream("a", (), "ts", 5), Stream("b", (), "ts", 2, idle=60_000_000)
    >>> followed((a, b), [100, 10], [0, 0], heard=[90_000, 30_000], clock=90_000)
    [0, 95]
    >>> followed((a, b), [100, 10], [0, 0], heard=[90_000, 30_001], clock=90_000)
    [0, 0]
    """
    idle = [
        s.idle is not None and (clock - since) * 1_000 >= s.idle
        for s, since in zip(streams, heard, strict=True)
    ]
    own = own_watermarks(streams, newest, floors)
    leading = min(
        (mark for mark, silent in zip(own, idle, strict=True) if not silent),
        default=BEFORE_ALL_TIMES,
    )
    return [
        max(floor, leading) if silent and not s.unlimited else floor
        for s, floor, silent in zip(streams, floors, idle, strict=True)
    ]
