"""The definition of what becomes of a row, as naive as it can be written.

Part of the answer: each row is joined, or set aside for one reason, the first in this order: it has
no event time; it is further ahead of the clock than its stream may be; a condition on its own
stream is not true; a key is null; two of its columns must equal the same value of another stream
and differ, which is a condition on its own stream too; it is late. Nothing here is shared with the
engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from plait.query.expr import Column, streams_of
from plait.query.query import Query, Stream
from plait.testing.oracle.answer import Rows, Tuple, all_tuples, event_times, is_ahead, split_late
from plait.testing.oracle.scalar import compare, compiled

NO_TIME, FILTERED, NULL_KEY, LATE = "no event time", "filtered", "null key", "late"
AHEAD = "ahead of the clock"
Row = Mapping[str, object]


def set_aside(
    query: Query, batches: Sequence[Mapping[str, Rows]], clocks: Sequence[int] | None = None
) -> dict[str, dict[str, list[Row]]]:
    """For each stream and reason, the rows that are not joined.

    `clocks` has the time of each batch, in microseconds; without it no row is ahead.
    """
    _, late = split_late(query, batches, clocks)
    found: dict[str, dict[str, list[Row]]] = {}
    for stream in query.streams:
        here: dict[str, list[Row]] = {r: [] for r in (NO_TIME, AHEAD, FILTERED, NULL_KEY, LATE)}
        for number, batch in enumerate(batches):
            clock = None if clocks is None else clocks[number]
            rows = list(batch.get(stream.name, ()))
            times = event_times(stream, rows)
            for row, time, reason in zip(rows, times, reasons(query, stream, rows), strict=True):
                fate = AHEAD if is_ahead(stream, time, clock) else reason
                if fate is not None:
                    here[fate].append(row)
        by_time = late[stream.name]
        fates = zip(by_time, reasons(query, stream, by_time), strict=True)
        here[LATE] = [row for row, reason in fates if reason is None]
        found[stream.name] = here
    return found


def counts(aside: Mapping[str, Mapping[str, Sequence[Row]]], reason: str) -> Counter[str]:
    """How many rows of each stream were set aside for a reason."""
    return Counter({name: len(rows[reason]) for name, rows in aside.items() if rows[reason]})


def reasons(query: Query, stream: Stream, rows: Sequence[Row]) -> list[str | None]:
    """Why each row of a stream cannot be in a result, whenever it comes; None if it can."""
    alone = [r for r in query.residuals if streams_of(r) == {stream.name}]
    conditions = [compiled(r, query.type_of) for r in alone]
    time, keys = Column(stream.name, stream.time), _keys(query, stream)

    def reason(t: Tuple) -> str | None:
        if t[time] is None:
            return NO_TIME
        if not all(condition(t) is True for condition in conditions):
            return FILTERED
        if any(t[c] is None for together in keys for c in together):
            return NULL_KEY
        if any(compare(t[together[0]], t[c]) != 0 for together in keys for c in together):
            return FILTERED
        return None

    return [reason(t) for t in all_tuples(stream, rows)]


def _keys(query: Query, stream: Stream) -> list[list[Column]]:
    """The key columns of a stream, those together that must be equal to each other."""
    groups: list[set[Column]] = []
    for e in query.equalities:
        touching = [g for g in groups if e.left in g or e.right in g]
        groups = [g for g in groups if g not in touching]
        groups.append({e.left, e.right}.union(*touching))
    own = [sorted((c for c in g if c.stream == stream.name), key=str) for g in groups]
    return [together for together in own if together]
