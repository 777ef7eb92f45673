"""The definition of the answer, as naive as it can be written.

A result is one row of every stream such that every equality holds, every residual condition is
true, and no two event times are further apart than the bounds allow. Nothing here is fast or
clever, and nothing is shared with the engine: what both got wrong, no test would find.

Values are plain Python objects, so that multisets of results can be compared: NaN is always the
same object, and times are integers in the unit of their column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from plait.query.expr import Column, streams_of
from plait.query.query import Query, Stream
from plait.testing.oracle.scalar import compare, compiled, inward, outward, python_values

Rows: TypeAlias = "Sequence[Mapping[str, object]] | pa.Table"
Result = tuple[object, ...]
Tuple = dict[Column, object]
"""One row of one stream, or several joined: the value of each attribute."""


def oracle(query: Query, rows: Mapping[str, Rows]) -> Counter[Result]:
    """The results of the query over these rows, with how often each of them occurs.

    Rows are dictionaries of what Arrow makes its columns from (an integer is a time in its
    column's unit), or tables. Rows without an event time are not part of the input.
    """
    streams = [_tuples(stream, rows.get(stream.name, ())) for stream in query.streams]
    checks = [_checks(query, depth) for depth in range(len(streams))]

    def extended(chosen: Tuple, depth: int) -> Iterator[Tuple]:
        if depth == len(streams):
            yield chosen
            return
        for candidate in streams[depth]:
            longer = {**chosen, **candidate}
            if all(check(longer) for check in checks[depth]):
                yield from extended(longer, depth + 1)

    outputs = [
        (compiled(o.expr, query.type_of), field.type)
        for o, field in zip(query.select, query.schema, strict=True)
    ]
    return Counter(
        tuple(outward(value(found), type_) for value, type_ in outputs) for found in extended({}, 0)
    )


def multiset(table: pa.Table) -> Counter[Result]:
    """A table of results in the form of the oracle's answer.

    >>> multiset(pa.table({"x": [1, 1, None]}))
    Counter({(1,): 2, (None,): 1})
    """
    columns = [python_values(column) for column in table.columns]
    return Counter(zip(*columns, strict=True))


def split_late(
    query: Query, batches: Sequence[Mapping[str, Rows]], clocks: Sequence[int] | None = None
) -> tuple[dict[str, list[Mapping[str, object]]], dict[str, list[Mapping[str, object]]]]:
    """The rows on time and the late rows of every stream, when they arrive in these batches.

    The watermark of a stream is the largest event time of the batches before, less its delay. A
    row is late when it is older than its stream's watermark, or, if the query says "least", than
    the watermarks of all streams, of which each must have one. Rows without an event time are
    neither late nor on time, nor are those further ahead of the batch's clock (in microseconds)
    than their stream may be; these do not move the watermark either.
    """
    on_time: dict[str, list[Mapping[str, object]]] = {name: [] for name in query.names}
    late: dict[str, list[Mapping[str, object]]] = {name: [] for name in query.names}
    watermarks: dict[str, int | None] = dict.fromkeys(query.names)
    for number, batch in enumerate(batches):
        before = dict(watermarks)
        for stream in query.streams:
            deciding = [before[stream.name]] if query.lateness == "own" else [*before.values()]
            rows = rows_of(stream, batch.get(stream.name, ()))
            clock = None if clocks is None else clocks[number]
            times = [
                None if is_ahead(stream, time, clock) else time
                for time in event_times(stream, rows)
            ]
            for row, time in zip(rows, times, strict=True):
                if time is None:
                    continue
                is_late = all(mark is not None and time < mark for mark in deciding)
                (late if is_late else on_time)[stream.name].append(row)
            marks = [before[stream.name], *(t - stream.delay for t in times if t is not None)]
            watermarks[stream.name] = max((m for m in marks if m is not None), default=None)
    return on_time, late


def is_ahead(stream: Stream, time: int | None, clock: int | None) -> bool:
    """Whether a time is further ahead of the clock than a stream may be."""
    if time is None or clock is None or stream.ahead is None:
        return False
    return time > clock + stream.ahead


def rows_of(stream: Stream, rows: Rows) -> list[Mapping[str, object]]:
    """The rows as dictionaries of plain Python values."""
    if not isinstance(rows, pa.Table):
        return list(rows)
    columns = [python_values(rows.column(f.name)) for f in stream.fields]
    names = [f.name for f in stream.fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def event_times(stream: Stream, rows: Rows) -> list[int | None]:
    """The event times in whole microseconds, rounded down; None where there is none."""
    return [_micros(t[Column(stream.name, stream.time)]) for t in all_tuples(stream, rows)]


def _micros(instant: object) -> int | None:
    assert instant is None or isinstance(instant, int)
    return None if instant is None else instant // 1000


def _tuples(stream: Stream, rows: Rows) -> list[Tuple]:
    time = Column(stream.name, stream.time)
    return [t for t in all_tuples(stream, rows) if t[time] is not None]


def all_tuples(stream: Stream, rows: Rows) -> list[Tuple]:
    """The rows of a stream as tuples, those without an event time included."""
    if not isinstance(rows, pa.Table):
        rows = pa.Table.from_pylist(list(rows), schema=stream.schema)
    columns = {
        Column(stream.name, f.name): [
            inward(value, f.type) for value in python_values(rows.column(f.name))
        ]
        for f in stream.fields
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _checks(query: Query, depth: int) -> list[Callable[[Tuple], bool]]:
    """What a choice of rows for streams 0 to `depth` must satisfy, and a shorter one need not."""
    here, known = query.streams[depth].name, set(query.names[: depth + 1])
    checks: list[Callable[[Tuple], bool]] = [_near_enough(query, depth)]
    for e in query.equalities:
        if here in (e.left.stream, e.right.stream) and {e.left.stream, e.right.stream} <= known:
            checks.append(_are_equal(e.left, e.right))
    for residual in query.residuals:
        if here in streams_of(residual) <= known:
            checks.append(_is_true(compiled(residual, query.type_of)))
    return checks


def _near_enough(query: Query, depth: int) -> Callable[[Tuple], bool]:
    times = [Column(s.name, s.time) for s in query.streams[: depth + 1]]
    bounds = query.bounds.matrix

    def check(t: Tuple) -> bool:
        micros = [_micros(t[column]) for column in times]
        return all(
            later is not None and earlier is not None and later - earlier <= bounds[i][j]
            for i, earlier in enumerate(micros)
            for j, later in enumerate(micros)
        )

    return check


def _are_equal(left: Column, right: Column) -> Callable[[Tuple], bool]:
    return lambda t: (
        t[left] is not None and t[right] is not None and compare(t[left], t[right]) == 0
    )


def _is_true(condition: Callable[[Tuple], object]) -> Callable[[Tuple], bool]:
    return lambda t: condition(t) is True
