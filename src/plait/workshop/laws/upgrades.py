"""The definition of the answer of a query that goes on from its state with another question.

Up to some batch the first question is asked, from then on the second one. What is found from then
on are the results of the second one whose last row comes from then on. Of the rows that came before
those are there that the first one let in and could still join, with the columns that it kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from plait.query.query import NEVER_LATE, Query
from plait.route.packets import lean
from plait.workshop.oracle.answer import Result, Rows, event_times, oracle, rows_of, split_late
from plait.workshop.oracle.fates import FILTERED, reasons

Row = Mapping[str, object]
Kept = dict[str, list[Row]]


def answer_from(
    first: Query, second: Query, batches: Sequence[Mapping[str, Rows]], since: int
) -> Counter[Result]:
    """The results that are found from batch `since` on; both queries have the same delays."""
    early = split_late(first, batches[:since])[0]
    every, before = (split_late(second, some)[0] for some in (batches, batches[:since]))
    old, new = Kept(), Kept()
    for s, stream in enumerate(first.streams):
        name = stream.name
        kept = {field.name for field in lean(first).streams[s].fields}
        let_in = _needed(first, s, _let_in(first, s, early[name]), batches[:since])
        old[name] = [{c: v if c in kept else None for c, v in row.items()} for row in let_in]
        new[name] = _let_in(second, s, every[name][len(before[name]) :])
    return _found(second, old, new)


def _found(query: Query, old: Kept, new: Kept) -> Counter[Result]:
    """The results with at least one new row."""
    plain = replace(query, residuals=lean(query).residuals)
    both = {name: [*old[name], *new[name]] for name in query.names}
    return oracle(plain, both) - oracle(plain, old)


def _let_in(query: Query, s: int, rows: Sequence[Row]) -> list[Row]:
    """The rows that the filters of a query let in."""
    fates = reasons(query, query.streams[s], rows)
    return [row for row, fate in zip(rows, fates, strict=True) if fate != FILTERED]


def _needed(
    query: Query, s: int, rows: Sequence[Row], batches: Sequence[Mapping[str, Rows]]
) -> list[Row]:
    """The rows that some row still to come could join."""
    marks = [_watermark(query, k, batches) for k in range(len(query.streams))]
    if query.lateness == "least":
        least = None if None in marks else min(mark for mark in marks if mark is not None)
        marks = [least] * len(marks)
    bounds = query.bounds.matrix[s]
    times = event_times(query.streams[s], rows)
    return [
        row
        for row, time in zip(rows, times, strict=True)
        if time is not None
        and any(mark is None or time + bounds[k] >= mark for k, mark in enumerate(marks) if k != s)
    ]


def _watermark(query: Query, s: int, batches: Sequence[Mapping[str, Rows]]) -> int | None:
    stream = query.streams[s]
    if stream.delay >= NEVER_LATE:
        return None
    rows = [row for batch in batches for row in rows_of(stream, batch.get(stream.name, ()))]
    times = [time for time in event_times(stream, rows) if time is not None]
    return max(times) - stream.delay if times else None
