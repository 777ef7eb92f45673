"""Build a query step by step: `join(...).time(...).on(...).within(...).select(...)`.

A builder is a value: every method returns a new one and leaves the old one as it was, and refuses
at the call what names something that is not there. `query` is the checked question; the sources
travel along for whoever runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa

from plait.errors import QueryError, SourceError, WindowError
from plait.query.bounds import Constraint, global_window, stream_windows
from plait.query.dialect import PLAIN, Dialect
from plait.query.differences import exactly
from plait.query.durations import Duration, positive
from plait.query.expr import Column
from plait.query.query import (
    Field,
    Lateness,
    Query,
    Stream,
    check_lateness,
    check_time_column,
    make_query,
)
from plait.query.streams import ahead_of, check_names, delays_of, idle_of, time_columns

Source = Any
"""Anything with columns: see `schema_of`."""


def schema_of(source: Source) -> pa.Schema:
    """Read the columns of a source: an Arrow schema, or anything that has one as `.schema`.

    >>> schema_of(pa.table({"k": [1]})).names
    ['k']
    """
    schema = source if isinstance(source, pa.Schema) else getattr(source, "schema", None)
    if not isinstance(schema, pa.Schema):
        raise SourceError(
            f"a {type(source).__name__} is not a source of rows",
            remedy="give an Arrow schema, table, batch or reader",
        )
    return schema


@dataclass(frozen=True, slots=True)
class JoinBuilder:
    """Builds a query. Start with `plait.join`."""

    sources: Mapping[str, Source]
    """The sources by stream name, as they were given."""
    fields: Mapping[str, tuple[Field, ...]] = field(repr=False)
    times: Mapping[str, str] = field(default_factory=dict)
    delays: Mapping[str, int] = field(default_factory=dict)
    timeouts: Mapping[str, int] = field(default_factory=dict)
    furthest: Mapping[str, int] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    windows: tuple[Constraint, ...] = ()
    outputs: tuple[str, ...] = ()
    late_by: Lateness = "own"
    came: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    """The watermark delays of the sources, by stream and event-time column."""
    dialect: Dialect = field(default=PLAIN, repr=False)
    """How SQL text is read: with the settings of the session, if there is one."""
    unsaid: Mapping[str, int] = field(default_factory=dict, repr=False)
    """The delays of streams for which none was given, if not 0."""

    @property
    def names(self) -> tuple[str, ...]:
        """The streams' names, in the order in which they were given."""
        return tuple(self.sources)

    def time(self, **columns: str) -> Self:
        """Say which column is the event time of a stream: `time(trades="ts")`."""
        check_names(columns, self.names)
        for stream, column in columns.items():
            check_time_column(stream, self.fields[stream], column)
        return replace(self, times={**self.times, **columns})

    def watermark(self, delay: Duration | None = None, /, **delays: Duration) -> Self:
        """Say how late rows may come, for all streams or by stream: `watermark("2 seconds")`."""
        everywhere = {} if delay is None else delays_of(self.names, delay)
        given = {name: d for name, d in delays_of(self.names, delays).items() if name in delays}
        return replace(self, delays={**self.delays, **everywhere, **given})

    def lateness(self, rule: Lateness) -> Self:
        """Say which watermark a row must not be older than, or else it is late.

        `"own"`, the usual one, is the watermark of the row's stream. `"least"` is the least of all
        streams, as in Spark's own joins: while one stream lags, or has not come yet, no other one
        has late rows; the windows grow with it.
        """
        check_lateness(rule)
        return replace(self, late_by=rule)

    def idle(self, timeout: Duration | None = None, /, **timeouts: Duration) -> Self:
        """Say how long a silent stream holds the others back: `idle("1 minute")`, `idle(a="5 s")`.

        After that much time of the clock it follows the others, and what it delivers later on
        below their watermarks is late. Without a timeout it holds them for ever.
        """
        given = {**idle_of(self.names, timeout), **idle_of(self.names, timeouts)}
        return replace(self, timeouts={**self.timeouts, **given})

    def ahead(self, limit: Duration | None = None, /, **limits: Duration) -> Self:
        """Say how far rows may be ahead of the clock: `ahead("1 hour")`, `ahead(a="1 day")`.

        Rows beyond that are set aside, and do not move the watermark: one row of the year 9999
        would make all later ones late. Without it any time counts, as in Spark. The clock is that
        of the batch; event times without a time zone are compared with it as UTC.
        """
        given = {**ahead_of(self.names, limit), **ahead_of(self.names, limits)}
        return replace(self, furthest={**self.furthest, **given})

    def on(self, *conditions: str) -> Self:
        """Add join conditions: equalities, intervals between event times, anything boolean.

        The name of a column that several streams have, `on("sym")`, makes them equal in it.
        """
        spelled = tuple(self._shared(condition) for condition in conditions)
        for condition in spelled:
            self._check_condition(condition)
        return replace(self, conditions=self.conditions + spelled)

    def _shared(self, condition: str) -> str:
        """Turn the name of a common column into equalities; return other conditions unchanged."""
        if not isinstance(condition, str):
            raise QueryError(
                f"a {type(condition).__name__} is not a condition",
                remedy='write it as text: "a.key = b.key", or the name of a common column',
            )
        owners = [n for n in self.names if any(f.name == condition for f in self.fields[n])]
        if len(owners) < 2:
            return condition
        columns = [str(Column(owner, condition)) for owner in owners]
        return " AND ".join(f"{columns[0]} = {column}" for column in columns[1:])

    def where(self, *conditions: str) -> Self:
        """Add further conditions; in an inner join they mean the same as with `on`."""
        return self.on(*conditions)

    def within(self, width: Duration | None = None, /, **widths: Duration) -> Self:
        """Bound the time between the tuples of a result.

        `within("10 seconds")` holds for every pair. With a window for each stream, a tuple of
        stream s is joined by tuples at most as much younger as the window of s is long.
        """
        if (width is None) == (not widths):
            raise WindowError(
                "within takes either one width, or one for each stream",
                remedy="write within('10 seconds'), or for example "
                f"within({', '.join(f'{name}=...' for name in self.names)})",
            )
        if width is not None:
            found = global_window(len(self.names), positive(width, what="the window"))
            return replace(self, windows=self.windows + found)
        check_names(widths, self.names)
        if missing := [name for name in self.names if name not in widths]:
            raise WindowError(
                f"within names no window for {', '.join(missing)}",
                remedy="name every stream, or give one width for all",
            )
        each = [positive(widths[n], what=f"the window of {n!r}") for n in self.names]
        return replace(self, windows=self.windows + stream_windows(each))

    def select(self, *outputs: str) -> Self:
        """Say what the result's columns are: `select("trades.sym", "bid * 2 AS double")`."""
        from plait.query.sql import parse_select

        if not outputs:
            raise QueryError("select names no column", remedy='write "*" for all of them')
        parse_select(outputs, self._loose(), self.dialect)
        return replace(self, outputs=self.outputs + outputs)

    @property
    def query(self) -> Query:
        """Return the query as a checked value."""
        return self.build()

    def build(self) -> Query:
        """Check and return the query, or raise the error that says what is missing."""
        from plait.query.sql import parse_select
        from plait.query.sql.conditions import condition_parts, split
        from plait.query.sql.source import SqlText as Text

        texts = [Text(condition, dialect=self.dialect) for condition in self.conditions]
        parts = [condition_parts(text, self._loose()) for text in texts]
        columns = time_columns(
            [(name, self.fields[name]) for name in self.names],
            self.times,
            [expr for found in parts for part in found for expr in part.conjuncts],
        )
        streams = [
            Stream(
                name,
                self.fields[name],
                column,
                self._delay(name, column),
                self.timeouts.get(name),
                self.furthest.get(name),
            )
            for name, column in zip(self.names, columns, strict=True)
        ]
        kept, bounds = exactly(self.windows, streams), list(self.windows)
        for text, found in zip(texts, parts, strict=True):
            conditions, constraints = split(text, found, streams)
            kept += conditions
            bounds += constraints
        outputs = parse_select(self.outputs, streams, self.dialect)
        return make_query(streams, kept, bounds, outputs, self.late_by)

    def _delay(self, stream: str, column: str) -> int:
        if stream in self.delays:
            return self.delays[stream]
        return self.came.get(stream, {}).get(column, self.unsaid.get(stream, 0))

    def _loose(self) -> Sequence[Stream]:
        """Describe the streams before all their event-time columns are known."""
        return [Stream(n, self.fields[n], self.times.get(n, "")) for n in self.names]

    def _check_condition(self, condition: str) -> None:
        from plait.query.sql import parse_condition

        parse_condition(condition, self._loose(), self.dialect)
