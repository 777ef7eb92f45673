"""Lanes: how a store keeps the rows of a stream apart by how they came to the processor."""

from __future__ import annotations

_STREAMS = 1 << 10
"""More streams than a query can have."""
PLAIN, TAKEN_IN, FLAGGED = 0, 1, 2
"""The kinds of rows in a segment; those flagged by move n have the kind `FLAGGED + n`."""


def lane_of(stream: int, kind: int = PLAIN) -> int:
    """The number under which a store keeps the rows of a stream and kind apart from others.

    Rows of the first kind have the number of their stream, as in states of earlier versions.

    >>> stream_of(lane_of(3)), kind_of(lane_of(3, FLAGGED + 7)) - FLAGGED
    (3, 7)
    """
    return stream + _STREAMS * kind


def stream_of(lane: int) -> int:
    """The stream of a lane."""
    return lane % _STREAMS


def kind_of(lane: int) -> int:
    """The kind of a lane."""
    return lane // _STREAMS
