"""A query as a value: streams, equalities, residual conditions, bounds and the selected columns.

Two queries that ask the same in the same words are equal, whichever front end they came from:
`make_query` brings every part into one canonical form and refuses what has no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.types as pt

from plait.errors import (
    AmbiguousColumn,
    DisconnectedJoin,
    DuplicateName,
    QueryError,
    TimeColumnError,
    TypeMismatch,
    UnknownColumn,
    UnknownStream,
    WindowError,
    did_you_mean,
)
from plait.query.bounds import Bounds, Constraint, close
from plait.query.evaluate import check_computable, type_of
from plait.query.expr import Call, Column, Expr, columns_of, conjuncts, streams_of
from plait.query.graph import JoinGraph, check_connected, join_graph
from plait.query.keys import common_type, is_unreadable, plain, stored
from plait.query.names import quoted
from plait.query.values.forms import is_number

NEVER_LATE = 2**61
"""The delay of a stream without a watermark: none of its rows is late, so rows that wait stay.

It is a number, so that queries and checkpoints have one form, but nothing is counted with it: see
`Stream.unlimited`.
"""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a stream."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Stream:
    """A named stream: its columns, which of them is the event time, and how late rows may be.

    `delay` is in microseconds: the watermark is the newest time seen in earlier batches minus
    `delay`, and a row that is older is late (but see `Lateness`). A stream that is silent for
    `idle` microseconds of the clock no longer holds the others back; without it, it does. With the
    delay `NEVER_LATE` the stream has no watermark. Rows more than `ahead` microseconds ahead of the
    clock are set aside and do not move the watermark; without it, none is.
    """

    name: str
    fields: tuple[Field, ...]
    time: str
    delay: int = 0
    idle: int | None = None
    ahead: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema([(f.name, f.type) for f in self.fields])

    @property
    def unlimited(self) -> bool:
        """Whether the stream has no watermark, so that none of its rows is ever late."""
        return self.delay >= NEVER_LATE

    @property
    def lag(self) -> int:
        """The expected delay of rows, for estimates; 0 if unknown."""
        return 0 if self.unlimited else self.delay

    @property
    def signature(self) -> str:
        """The name and the columns with their types: `a(ts timestamp[us], k int64)`."""
        columns = ", ".join(f"{quoted(f.name)} {f.type}" for f in self.fields)
        return f"{quoted(self.name)}({columns})"

    def type_of(self, column: str) -> pa.DataType:
        """The type of a column, or UnknownColumn."""
        for f in self.fields:
            if f.name == column:
                if is_unreadable(f.type):
                    raise TypeMismatch(
                        f"{Column(self.name, column)} is of type {f.type.type_name}, "
                        "which Plait cannot read",
                        remedy="cast it before the join, or leave it out",
                    )
                return f.type
        raise UnknownColumn(
            f"stream {self.name!r} has no column {column!r}",
            remedy=did_you_mean(column, (f.name for f in self.fields)),
        )


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right`, attributes of two different streams."""

    left: Column
    right: Column

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result."""

    name: str
    expr: Expr

    def __str__(self) -> str:
        text = str(self.expr)
        return text if text == self.name else f"{text} AS {quoted(self.name)}"


Lateness = Literal["own", "least"]
"""Which watermark a row must not be older than: its stream's own, or the least of all streams."""


@dataclass(frozen=True, slots=True)
class Query:
    """A windowed join of several streams. Make one with `make_query`, the builder or SQL."""

    streams: tuple[Stream, ...]
    equalities: tuple[Equality, ...]
    residuals: tuple[Expr, ...]
    bounds: Bounds
    select: tuple[Output, ...]
    lateness: Lateness = "own"

    @property
    def names(self) -> tuple[str, ...]:
        """The streams' names, in the order of their indexes."""
        return tuple(s.name for s in self.streams)

    def index(self, stream: str) -> int:
        """The index of a stream, or UnknownStream."""
        return stream_index(self.streams, stream)

    @property
    def graph(self) -> JoinGraph:
        """Which streams share which keys."""
        return join_graph(self.streams, self.equalities)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the results, without encodings."""
        return pa.schema([(o.name, plain(type_of(o.expr, self.type_of))) for o in self.select])

    def type_of(self, column: Column) -> pa.DataType:
        """The type of an attribute."""
        return self.streams[self.index(column.stream)].type_of(column.name)

    def result_delay(self, stream: str) -> int:
        """How far, in microseconds, the event times of a stream in results may lag behind.

        A result holds a tuple x that has just come, of some stream: it is at most the delay of x's
        stream older than the newest there. The tuple of `stream` may be `D` older than x; and no
        result so far could have had one that is more than `D` younger than that newest.

        If the least watermark decides what is late, x may be of another stream than the one whose
        newest tuple and delay set that watermark; a result so far has a tuple of that one too.
        """
        if endless := [s.name for s in self.streams if s.unlimited]:
            raise WindowError(
                f"{endless[0]!r} has no watermark, so results may lag behind without limit",
                remedy=f'say how late its rows may be: .watermark({endless[0]}="10 seconds")',
            )
        here, d = self.index(stream), self.bounds.matrix
        if self.lateness == "least":
            leading = max(s.delay + d[x][here] for x, s in enumerate(self.streams))
            return leading + max(d[here])
        return max(s.delay + d[here][x] + d[x][here] for x, s in enumerate(self.streams))


def stream_index(streams: Sequence[Stream], name: str) -> int:
    """Find the index of the stream called `name`, or raise UnknownStream."""
    for i, s in enumerate(streams):
        if s.name == name:
            return i
    raise UnknownStream(
        f"there is no stream {name!r}", remedy=did_you_mean(name, (s.name for s in streams))
    )


def resolve(streams: Sequence[Stream], name: str, stream: str | None = None) -> Column:
    """Find the attribute meant by `name`, or by `stream.name`.

    A bare name is resolved when exactly one stream has such a column.
    """
    if stream is not None:
        streams[stream_index(streams, stream)].type_of(name)
        return Column(stream, name)
    owners = [s.name for s in streams if any(f.name == name for f in s.fields)]
    if len(owners) > 1:
        raise AmbiguousColumn(
            f"column {name!r} is in several streams: {', '.join(owners)}",
            remedy=f"write {Column(owners[0], name)}",
        )
    if not owners:
        known = dict.fromkeys(f.name for s in streams for f in s.fields)
        raise UnknownColumn(f"no stream has a column {name!r}", remedy=did_you_mean(name, known))
    return Column(owners[0], name)


def make_query(
    streams: Sequence[Stream],
    conditions: Sequence[Expr],
    constraints: Sequence[Constraint],
    select: Sequence[Output] = (),
    lateness: Lateness = "own",
    *,
    theta: bool = False,
) -> Query:
    """Make a checked query in canonical form.

    `conditions` are ANDed; an equality between attributes of two streams becomes a join
    predicate, everything else a residual condition. An empty `select` means every column of every
    stream, named `stream_column`. With `theta`, streams need no equality between them: only joins
    over sites run such a query.
    """
    streams = tuple(streams)
    _check_streams(streams)
    check_lateness(lateness)
    equalities: set[Equality] = set()
    # By value and by text: 0.0 and -0.0 are equal values, but not the same constant.
    residuals: dict[tuple[str, Expr], None] = {}
    for condition in conditions:
        for part in conjuncts(condition):
            _check_columns(streams, part)
            equality = as_equality(streams, part)
            if equality is not None:
                equalities.add(equality)
            else:
                check_condition(streams, part)
                residuals[str(part), part] = None
    ordered = tuple(sorted(equalities, key=lambda e: _order(streams, e)))
    if not theta:
        _check_joined(streams, ordered, [expr for _, expr in residuals])
    query = Query(
        streams,
        ordered,
        tuple(expr for _, expr in sorted(residuals, key=lambda r: r[0])),
        close([s.name for s in streams], constraints),
        tuple(select) or _everything(streams),
        lateness,
    )
    _check_select(query)
    return replace(query, streams=tuple(map(_stored, streams)))


def _stored(stream: Stream) -> Stream:
    """Return the stream with storage types for columns that are only carried, after all checks."""
    return replace(stream, fields=tuple(Field(f.name, stored(f.type)) for f in stream.fields))


def check_lateness(rule: str) -> None:
    """Refuse an unknown rule for late rows."""
    if rule not in get_args(Lateness):
        raise WindowError(
            f"there is no rule {rule!r} by which rows are late",
            remedy="'own' goes by the watermark of the row's stream, 'least' by the least of all",
        )


def _check_streams(streams: Sequence[Stream]) -> None:
    if len(streams) < 2:
        raise QueryError("a join needs at least two streams", remedy="add another stream")
    seen: set[str] = set()
    for s in streams:
        if s.name in seen:
            raise DuplicateName(f"two streams are called {s.name!r}", remedy="rename one of them")
        seen.add(s.name)
        names = [f.name for f in s.fields]
        if twice := next((n for n in names if names.count(n) > 1), None):
            raise DuplicateName(
                f"stream {s.name!r} has two columns {twice!r}", remedy="rename one of them"
            )
        check_time_column(s.name, s.fields, s.time)
        if s.delay < 0:
            raise WindowError(
                f"the watermark delay of {s.name!r} is negative",
                remedy="give a length of time >= 0",
            )
    _check_zones(streams)


def check_time_column(stream: str, fields: Sequence[Field], time: str) -> None:
    """Refuse a stream whose event-time column is missing or holds no timestamps."""
    stamps = [f.name for f in fields if pt.is_timestamp(f.type)]
    found = next((f for f in fields if f.name == time), None)
    choice = f"timestamp columns: {', '.join(stamps)}" if stamps else "it has no timestamp column"
    if found is None:
        raise TimeColumnError(
            f"stream {stream!r} has no column {time!r} to take the event time from", remedy=choice
        )
    if not pt.is_timestamp(found.type):
        raise TimeColumnError(
            f"the event-time column {Column(stream, time)} is of type {found.type}, "
            "not a timestamp",
            remedy=f"cast it to a timestamp first; {choice}",
        )


def _check_zones(streams: Sequence[Stream]) -> None:
    """Refuse event times with a zone beside those without: their distance is undefined."""
    columns = {s.type_of(s.time).tz is not None: Column(s.name, s.time) for s in reversed(streams)}
    if len(columns) > 1:
        raise TimeColumnError(
            f"the event time {columns[True]} has a time zone and {columns[False]} has none: "
            "the time between them is not known",
            remedy="cast one of them to the type of the other before the join",
        )


def _check_joined(
    streams: tuple[Stream, ...], equalities: tuple[Equality, ...], residuals: Sequence[Expr]
) -> None:
    try:
        check_connected(streams, join_graph(streams, equalities))
    except DisconnectedJoin as error:
        for residual in residuals:
            match residual:
                case Call("nseq", (Column() as a, Column() as b)) if a.stream != b.stream:
                    raise DisconnectedJoin(
                        f"{error.message}; {residual} is no join key, because null equals null "
                        "there: all rows without a value would meet",
                        remedy=f"write {a} = {b}, or give rows without a value one before the join",
                    ) from None
        if between := _between(streams, equalities, residuals):
            raise DisconnectedJoin(
                "no key joins "
                + " with ".join(s.name for s in streams if s.name in streams_of(between))
                + f": {between} is no equality of two columns",
                remedy="add an equality such as a.key = b.key; to join by an expression, make it a "
                "column of the input first",
            ) from None
        raise


def _between(
    streams: tuple[Stream, ...], equalities: tuple[Equality, ...], residuals: Sequence[Expr]
) -> Expr | None:
    """Find a condition between streams that share no key."""
    tied = {frozenset({s.name}) for s in streams}
    for e in equalities:
        met = [group for group in tied if {e.left.stream, e.right.stream} & group]
        tied = (tied - set(met)) | {frozenset().union(*met)}
    return next((r for r in residuals if not any(streams_of(r) <= group for group in tied)), None)


def _check_columns(streams: Sequence[Stream], expr: Expr) -> None:
    for column in columns_of(expr):
        resolve(streams, column.name, column.stream)


def as_equality(streams: Sequence[Stream], expr: Expr) -> Equality | None:
    """Read a condition as a join predicate, or return None."""
    match expr:
        case Call("eq", (Column() as a, Column() as b)) if a.stream != b.stream:
            left, right = sorted((a, b), key=lambda c: stream_index(streams, c.stream))
            types = [
                streams[stream_index(streams, c.stream)].type_of(c.name) for c in (left, right)
            ]
            for column, type_ in zip((left, right), types, strict=True):
                check_computable(column, type_)
            if common_type(types) is None:
                raise _no_key(left, right, types)
            return Equality(left, right)
    return None


def _no_key(left: Column, right: Column, types: Sequence[pa.DataType]) -> TypeMismatch:
    """Explain why two columns cannot be a join key."""
    said = f"{left} is {types[0]} and {right} is {types[1]}"
    if nested := next((t for t in types if pt.is_nested(t)), None):
        return TypeMismatch(
            f"{said}: values of type {nested} are no join keys in Plait",
            remedy="make a column of what they have in common before the join, for example a "
            "field, an element or to_json(...)",
        )
    if all(pt.is_timestamp(t) for t in types):
        return TypeMismatch(
            f"{said}: one has a time zone and the other has none",
            remedy="cast one of them to the type of the other before the join",
        )
    if all(is_number(t) for t in types):
        return TypeMismatch(
            f"{said}: as join keys they have no common type in which equality is exact",
            remedy="cast one of them to the type of the other before the join",
        )
    return TypeMismatch(
        f"{said}: they can never be equal",
        remedy="cast one of them to the type of the other before the join",
    )


def check_condition(streams: Sequence[Stream], expr: Expr) -> None:
    """Refuse a condition that is not true or false, or that does not depend on the streams."""

    def lookup(column: Column) -> pa.DataType:
        return streams[stream_index(streams, column.stream)].type_of(column.name)

    type_ = stored(type_of(expr, lookup))
    if not (pt.is_boolean(type_) or pt.is_null(type_)):
        raise TypeMismatch(
            f"the condition {expr} is of type {type_}, not true or false",
            remedy="compare it with something",
        )
    if not streams_of(expr):
        raise QueryError(f"the condition {expr} reads no column", remedy="leave it out")


def _order(streams: Sequence[Stream], e: Equality) -> tuple[int, int, str, str]:
    return (
        stream_index(streams, e.left.stream),
        stream_index(streams, e.right.stream),
        e.left.name,
        e.right.name,
    )


def _everything(streams: Sequence[Stream]) -> tuple[Output, ...]:
    return tuple(
        Output(f"{s.name}_{f.name}", Column(s.name, f.name)) for s in streams for f in s.fields
    )


def _check_select(query: Query) -> None:
    names: set[str] = set()
    for output in query.select:
        _check_columns(query.streams, output.expr)
        if output.name in names:
            raise DuplicateName(
                f"two result columns are called {output.name!r}",
                remedy="give one of them another name with AS",
            )
        names.add(output.name)
        type_of(output.expr, query.type_of)


def narrowed(query: Query) -> Query:
    """Restrict the streams to the columns that the query reads.

    >>> from plait.testing.examples import trades_quotes_news
    >>> [len(s.fields) for s in narrowed(trades_quotes_news).streams]
    [4, 4, 3]
    """
    read = {c for output in query.select for c in columns_of(output.expr)}
    read |= {c for residual in query.residuals for c in columns_of(residual)}
    read |= {c for e in query.equalities for c in (e.left, e.right)}
    columns = {(c.stream, c.name) for c in read} | {(s.name, s.time) for s in query.streams}
    streams = (
        replace(s, fields=tuple(f for f in s.fields if (s.name, f.name) in columns))
        for s in query.streams
    )
    return replace(query, streams=tuple(streams))
