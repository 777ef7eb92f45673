"""Detect rows so far ahead in event time that the rows after them are late, and say so.

A watermark follows the newest event time of its stream. One row with a wrong clock, of the year
9999 say, moves it beyond everything that is to come, and it never goes back. That is what the rule
says, in Spark too, so such a row is joined like any other unless its stream has a bound (`ahead`).
But nobody should have to find out by missing results.

*Correct output.* A stream is far ahead when its newest event time is further from everything seen
before, and from the other streams, than a row could be that still joins something: a day at least.
From then on its rows are counted, and how many of them were late, until the others have caught up.
If most were late, a sentence says so.

*Invariants.* The counts are in the header, so they survive restarts and are not counted twice.
Every processor counts its own late rows, and all of them see all rows of a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.query.names import quoted
from plait.query.query import Query

_DAY = 86_400_000_000
_YEAR = 31_556_952_000_000


class TimeOutlier(NamedTuple):
    """How far a stream is ahead of the others, and what became of its rows since then."""

    by: int
    """Microseconds between the row and the newest of all others."""
    rows: int = 0
    late: int = 0


TimeOutliers = Mapping[str, TimeOutlier]


def time_outliers_after(
    query: Query,
    streams: TimeOutliers,
    before: Sequence[int],
    after: Sequence[int],
    rows: Mapping[str, int],
    late: Mapping[str, int],
) -> dict[str, TimeOutlier]:
    """The streams that are far ahead after a batch.

    `before` and `after` are the newest event times of all streams, `rows` and `late` what came in
    the batch.

    >>> from plait.testing.examples import clique
    >>> time_outliers_after(clique(2), {}, [5, 5], [9, 9 * _YEAR], {"b": 1}, {})
    {'b': TimeOutlier(by=284012567999991, rows=0, late=0)}
    """
    found = {}
    for s, stream in enumerate(query.streams):
        others = [time for k, time in enumerate(after) if k != s and time > BEFORE_ALL_TIMES]
        known = [*others, *(time for time in before if time > BEFORE_ALL_TIMES)]
        if stream.unlimited or not known:
            continue
        allowed = max(_DAY, 2 * (query.bounds.widest + stream.delay))
        ahead = after[s] - max(known)
        if ahead > allowed:
            found[stream.name] = TimeOutlier(ahead)
        elif stream.name in streams and not (others and after[s] - max(others) <= allowed):
            by, so_far, late_so_far = streams[stream.name]
            found[stream.name] = TimeOutlier(
                by, so_far + rows.get(stream.name, 0), late_so_far + late.get(stream.name, 0)
            )
    return found


def time_outlier_notes(processors: Iterable[TimeOutliers]) -> list[str]:
    """A sentence for each stream whose rows are late because one is far ahead.

    >>> there, here = ({"b": TimeOutlier(9 * _YEAR, 10, late)} for late in (3, 5))
    >>> print(time_outlier_notes([there, here])[0])
    one row of stream b is 9 years ahead of all others; since then 8 of 10 rows of b were late...
    """
    together: dict[str, TimeOutlier] = {}
    for streams in processors:
        for name, (by, rows, late) in streams.items():
            so_far = together.get(name, TimeOutlier(by))
            together[name] = TimeOutlier(by, max(so_far.rows, rows), so_far.late + late)
    return [
        f"one row of stream {quoted(name)} is {_shown(by)} ahead of all others; since then "
        f"{late:,} of {rows:,} rows of {quoted(name)} were late, because the watermark follows the "
        "newest row. It does not go back: begin with a new checkpoint, and bound how far ahead "
        "rows may be, .ahead('1 hour')"
        for name, (by, rows, late) in together.items()
        if late and 2 * late >= rows
    ]


def _shown(micros: int) -> str:
    for unit, name in ((_YEAR, "year"), (_DAY, "day")):
        if micros >= unit:
            return f"{micros // unit:,} {name}{'' if micros // unit == 1 else 's'}"
    return f"{micros / 1e6:g} s"
