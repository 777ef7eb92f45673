"""Watermarks: rows that arrive with an older time are late.

*Correct output.* For each stream the time below which a row is late, from the newest event times of
the streams in the batches before. By the rule "own" that is the stream's newest time minus its
delay; by the rule "least" it is the least of these, for all streams. A stream that has not been
seen has no watermark, nor has one whose rows are never late, and then by "least" none of them has.

How far a stream has come (its newest event time) and how far its watermark has come are two values.
They part where a delay is made longer and where an idle stream follows the others: then the
watermark stands on a *floor*, until the stream's own rows lift it further.

*Invariants.* A watermark never goes back while newest times and floors do not. The engine purges by
the same times by which rows are late, so nothing is purged that an admitted row could join.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.query.query import Query, Stream


def watermarks_of(
    query: Query, newest: Sequence[int], floors: Sequence[int] | None = None
) -> list[int]:
    """Compute the watermark of each stream, `BEFORE_ALL_TIMES` before its first row.

    Without `floors`, watermarks follow from the newest times alone.

    >>> from dataclasses import replace
    >>> from plait.testing.examples import clique
    >>> watermarks_of(clique(2), [100, 70])
    [100, 70]
    >>> watermarks_of(replace(clique(2), lateness="least"), [100, 70])
    [70, 70]
    >>> watermarks_of(clique(2), [100, 70], floors=[BEFORE_ALL_TIMES, 80])
    [100, 80]
    """
    own = own_watermarks(query.streams, newest, floors)
    return own if query.lateness == "own" else [min(own)] * len(own)


def own_watermarks(
    streams: Sequence[Stream], newest: Sequence[int], floors: Sequence[int] | None = None
) -> list[int]:
    """Compute the watermark of each stream by itself, not below its floor."""
    own = [own_watermark(s, n) for s, n in zip(streams, newest, strict=True)]
    return own if floors is None else list(map(max, own, floors))


def own_watermark(stream: Stream, newest: int) -> int:
    """Compute the watermark of one stream by itself; without a delay limit it never has one.

    >>> own_watermark(Stream("a", (), "ts", 30), 100), own_watermark(Stream("a", (), "ts"), 100)
    (70, 100)
    """
    if newest <= BEFORE_ALL_TIMES or stream.unlimited:
        return BEFORE_ALL_TIMES
    return newest - stream.delay
