"""Rows so far ahead of all others that they make the rows after them late: noticed, and said.

A watermark follows the newest event time of its stream. One row with a wrong clock, of the year
9999 say, moves it beyond everything that is to come, and it never goes back. That is what the rule
says, in Spark too, so such a row is joined like any other unless its stream has a bound (`ahead`).
But nobody should have to find out by missing results.

*Correct output.* A stream has leapt when its newest event time is further ahead of everything seen
before, and of the other streams, than a row could be that still joins something: a day at least.
From then on its rows are counted, and how many of them were late, until the others have caught up.
If most were late, a sentence says so.

*Invariants.* The counts are in the header, so they survive restarts and are not counted twice.
Every processor counts its own late rows, and all of them see all rows of a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from plait.engine.times import BEFORE_ALL_TIMES
from plait.query.names import quoted
from plait.query.query import Query

_DAY = 86_400_000_000
_YEAR = 31_556_952_000_000


class Leap(NamedTuple):
    """A stream that is far ahead of the others, and what became of its rows since then."""

    by: int
    """Microseconds between the row and the newest of all others."""
    rows: int = 0
    late: int = 0


Leaps = Mapping[str, Leap]


def leaps_after(
    query: Query,
    leaps: Leaps,
    before: Sequence[int],
    after: Sequence[int],
    rows: Mapping[str, int],
    late: Mapping[str, int],
) -> dict[str, Leap]:
    """The leaps after a batch, from the newest event times before and after it.

    >>> from plait.plan.examples import clique
    >>> leaps_after(clique(2), {}, [5, 5], [9, 9 * _YEAR], {"b": 1}, {})
    {'b': Leap(by=284012567999991, rows=0, late=0)}
    """
    found = {}
    for s, stream in enumerate(query.streams):
        others = [time for k, time in enumerate(after) if k != s and time > BEFORE_ALL_TIMES]
        known = [*others, *(time for time in before if time > BEFORE_ALL_TIMES)]
        furthest = 2 * (query.bounds.widest + stream.delay)
        if stream.unlimited or not known:
            continue
        ahead = after[s] - max(known)
        if ahead > max(_DAY, furthest):
            found[stream.name] = Leap(ahead)
        elif (leap := leaps.get(stream.name)) is not None:
            caught_up = others and after[s] - max(others) <= max(_DAY, furthest)
            if not caught_up:
                counts = rows.get(stream.name, 0), late.get(stream.name, 0)
                found[stream.name] = Leap(leap.by, leap.rows + counts[0], leap.late + counts[1])
    return found


def leap_notes(processors: Iterable[Leaps]) -> list[str]:
    """What to tell of the leaps that the processors of a query have counted.

    >>> print(leap_notes([{"b": Leap(9 * _YEAR, 10, 3)}, {"b": Leap(9 * _YEAR, 10, 5)}])[0])
    one row of stream b is 9 years ahead of all others; since then 8 of 10 rows of b were late...
    """
    together: dict[str, Leap] = {}
    for leaps in processors:
        for name, leap in leaps.items():
            so_far = together.get(name, Leap(leap.by))
            rows = max(so_far.rows, leap.rows)
            together[name] = Leap(leap.by, rows, so_far.late + leap.late)
    return [
        f"one row of stream {quoted(name)} is {_shown(leap.by)} ahead of all others; since then "
        f"{leap.late:,} of {leap.rows:,} rows of {quoted(name)} were late, because the watermark "
        "follows the newest row. It does not go back: begin with a new checkpoint, and bound how "
        "far ahead rows may be, .ahead('1 hour')"
        for name, leap in together.items()
        if leap.late and 2 * leap.late >= leap.rows
    ]


def _shown(micros: int) -> str:
    for unit, name in ((_YEAR, "year"), (_DAY, "day")):
        if micros >= unit:
            return f"{micros // unit:,} {name}{'' if micros // unit == 1 else 's'}"
    return f"{micros / 1e6:g} s"
