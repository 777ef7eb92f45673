"""The definition of the answer of a query whose question changes while its state stays.

A query is asked one question after the other, each for some batches. A question finds its results
whose last row comes while it is asked. Of the rows that came before, those are there that every
question since then let in and could still join, with the columns that all of them kept.

A watermark never goes back. It is the furthest that the stream's newest event time, less the delay
of the question at that time, has ever been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from plait.groups.routing.packets import lean
from plait.query.query import NEVER_LATE, Query
from plait.testing.oracle.answer import Result, Rows, event_times, oracle, rows_of
from plait.testing.oracle.fates import FILTERED, LATE, NO_TIME, NULL_KEY, reasons

Row = Mapping[str, object]
Kept = dict[str, list[Row]]
Batches = Sequence[Mapping[str, Rows]]


class Asked(NamedTuple):
    """A question, and the batch from which it is asked."""

    since: int
    query: Query


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question finds, and the rows that it sets aside, by stream and reason."""

    results: Counter[Result]
    aside: dict[str, dict[str, list[Row]]]


def answers(phases: Sequence[tuple[Query, Batches]]) -> list[Counter[Result]]:
    """The results that each question finds in its batches; a question without any asks nothing."""
    return [answer.results for answer in full_answers(phases)]


def full_answers(phases: Sequence[tuple[Query, Batches]]) -> list[Answer]:
    """The results of each question, and the rows that it sets aside."""
    found, world = [], _World()
    for query, batches in phases:
        found.append(world.ask(query, batches) if batches else Answer(Counter(), _no_rows(query)))
    return found


def phases_of(asked: Sequence[Asked], batches: Batches) -> list[tuple[Query, Batches]]:
    """Each question with the batches in which it is asked."""
    ends = [*(since for since, _ in asked[1:]), len(batches)]
    return [(query, batches[since:end]) for (since, query), end in zip(asked, ends, strict=True)]


@dataclass
class _World:
    """What is known between two questions."""

    kept: Kept = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    """The watermark of each stream by itself."""

    def ask(self, query: Query, batches: Batches) -> Answer:
        old = {name: self.kept.get(name, []) for name in query.names}
        new: Kept = {name: [] for name in query.names}
        aside = _no_rows(query)
        self._advance(query)
        for batch in batches:
            self._set_aside(query, batch, aside)
            for name, rows in self._on_time(query, batch).items():
                new[name] += _let_in(query, query.index(name), rows)
            for stream in query.streams:
                times = event_times(stream, rows_of(stream, batch.get(stream.name, ())))
                seen = [time for time in (*times, self.newest.get(stream.name)) if time is not None]
                if seen:
                    self.newest[stream.name] = max(seen)
            self._advance(query)
        for s, stream in enumerate(query.streams):
            columns = {f.name for f in lean(query).streams[s].fields}
            self.kept[stream.name] = [
                {c: v if c in columns else None for c, v in row.items()}
                for row in self._needed(query, s, [*old[stream.name], *new[stream.name]])
            ]
        return Answer(_found(query, old, new), aside)

    def _set_aside(
        self, query: Query, batch: Mapping[str, Rows], aside: dict[str, dict[str, list[Row]]]
    ) -> None:
        """Add the rows of a batch that are not joined."""
        for stream in query.streams:
            mark = self._deciding(query, stream.name)
            rows = rows_of(stream, batch.get(stream.name, ()))
            fates = reasons(query, stream, rows)
            for row, time, fate in zip(rows, event_times(stream, rows), fates, strict=True):
                if fate is not None:
                    aside[stream.name][fate].append(row)
                elif mark is not None and time is not None and time < mark:
                    aside[stream.name][LATE].append(row)

    def _advance(self, query: Query) -> None:
        for stream in query.streams:
            newest, mark = self.newest.get(stream.name), self.marks.get(stream.name)
            if newest is not None and stream.delay < NEVER_LATE:
                reached = newest - stream.delay
                self.marks[stream.name] = reached if mark is None else max(mark, reached)

    def _deciding(self, query: Query, name: str) -> int | None:
        """The watermark by which rows of a stream are late."""
        if query.lateness == "own":
            return self.marks.get(name)
        marks = [self.marks.get(other) for other in query.names]
        known = [mark for mark in marks if mark is not None]
        return min(known) if len(known) == len(marks) else None

    def _on_time(self, query: Query, batch: Mapping[str, Rows]) -> Kept:
        found: Kept = {}
        for stream in query.streams:
            mark = self._deciding(query, stream.name)
            rows = rows_of(stream, batch.get(stream.name, ()))
            found[stream.name] = [
                row
                for row, time in zip(rows, event_times(stream, rows), strict=True)
                if time is not None and (mark is None or time >= mark)
            ]
        return found

    def _needed(self, query: Query, s: int, rows: Sequence[Row]) -> list[Row]:
        """The rows that some row still to come could join."""
        marks = [self._deciding(query, name) for name in query.names]
        bounds = query.bounds.matrix[s]
        times = event_times(query.streams[s], rows)
        return [
            row
            for row, time in zip(rows, times, strict=True)
            if time is not None
            and any(
                mark is None or time + bounds[k] >= mark for k, mark in enumerate(marks) if k != s
            )
        ]


def _no_rows(query: Query) -> dict[str, dict[str, list[Row]]]:
    return {name: {r: [] for r in (NO_TIME, FILTERED, NULL_KEY, LATE)} for name in query.names}


def _found(query: Query, old: Kept, new: Kept) -> Counter[Result]:
    """The results with at least one new row."""
    plain = replace(query, residuals=lean(query).residuals)
    both = {name: [*old[name], *new[name]] for name in query.names}
    return oracle(plain, both) - oracle(plain, old)


def _let_in(query: Query, s: int, rows: Sequence[Row]) -> list[Row]:
    """The rows that the filters of a query let in."""
    fates = reasons(query, query.streams[s], rows)
    return [row for row, fate in zip(rows, fates, strict=True) if fate != FILTERED]
