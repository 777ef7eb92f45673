"""DuckDB as a second oracle: the same query over whole tables, for inputs of millions of rows.

It shares no code with the engine but the query itself. Rows without an event time fall out, since
no comparison with null is true. Late rows are part of what it is given: pass it the rows on time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Event, Timer
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from plait.errors import PlaitError
from plait.query.expr import Column, streams_of
from plait.query.keys import plain
from plait.query.query import Equality, Query, Stream
from plait.testing.oracle.checksum import checksum, checksum_batches
from plait.testing.oracle.duck_expr import Untranslatable, duck_type, expr_sql, micros_sql, quoted

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "TooSlow",
    "Untranslatable",
    "checksum",
    "count_and_checksum",
    "duck_result",
    "duck_sql",
    "joinable",
]


def duck_sql(query: Query) -> str:
    """The query in DuckDB's SQL, over tables named like the streams.

    >>> from plait.query.bounds import global_window
    >>> from plait.query.expr import Call
    >>> from plait.query.query import Field, Output, Stream, make_query
    >>> fields = (Field("ts", pa.timestamp("us")), Field("k", pa.int64()))
    >>> a, b = Stream("a", fields, "ts"), Stream("b", fields, "ts")
    >>> same = Call("eq", (Column("a", "k"), Column("b", "k")))
    >>> print(duck_sql(make_query((a, b), (same,), global_window(2, 5),
    ...                           (Output("k", Column("a", "k")),))))
    SELECT "a"."k" AS "k"
    FROM "a", "b"
    WHERE "a"."k" = "b"."k"
      AND epoch_us("b"."ts") - epoch_us("a"."ts") BETWEEN -5 AND 5
    """
    outputs = (f"{expr_sql(o.expr, query.type_of)} AS {quoted(o.name)}" for o in query.select)
    conditions = [_equality(query, e) for e in query.equalities]
    times = [Column(s.name, s.time) for s in query.streams]
    micros = [micros_sql(t, query.type_of(t)) for t in times]
    bounds = query.bounds.matrix
    for i, earlier in enumerate(micros):
        for j, later in enumerate(micros[i + 1 :], start=i + 1):
            span = f"BETWEEN {-bounds[j][i]} AND {bounds[i][j]}"
            conditions.append(f"{later} - {earlier} {span}")
    conditions += [expr_sql(residual, query.type_of) for residual in query.residuals]
    return (
        f"SELECT {', '.join(outputs)}\nFROM {', '.join(map(quoted, query.names))}\nWHERE "
        + "\n  AND ".join(conditions)
    )


def duck_result(
    query: Query, tables: Mapping[str, pa.Table], threads: int | None = None
) -> pa.Table:
    """The query's results by DuckDB, in the query's schema; a stream left out is empty."""
    return pa.Table.from_batches(_batches(query, tables, threads), query.schema)


class TooSlow(PlaitError):
    """DuckDB has not found the results within the time that it was given."""


def count_and_checksum(
    query: Query,
    tables: Mapping[str, pa.Table],
    threads: int | None = None,
    seconds: float | None = None,
) -> tuple[int, int]:
    """The number of results and their checksum, without holding them all in memory.

    If that takes longer than so many `seconds`, TooSlow is raised: DuckDB's order of joins may be
    one that takes hours.
    """
    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in _batches(query, tables, threads, seconds):
            count += batch.num_rows
            yield batch

    total = checksum_batches(counted())
    return count, total


def joinable(query: Query, stream: Stream, rows: pa.Table) -> int:
    """How many rows of a stream could be in a result, as far as they tell by themselves."""
    if not rows.num_rows:
        return 0
    keys = {c for e in query.equalities for c in (e.left, e.right) if c.stream == stream.name}
    conditions = [f"{expr_sql(c, query.type_of)} IS NOT NULL" for c in sorted(keys, key=str)]
    alone = [r for r in query.residuals if streams_of(r) == {stream.name}]
    conditions += [expr_sql(r, query.type_of) for r in alone]
    connection = _connect(1)
    try:
        connection.register(stream.name, _plain(rows))
        where = " AND ".join(conditions)
        found = connection.sql(f"SELECT count(*) FROM {quoted(stream.name)} WHERE {where}")
        (answer,) = found.fetchall()
        return int(answer[0])
    finally:
        connection.close()


def _equality(query: Query, e: Equality) -> str:
    """Numbers of different kinds are compared in a decimal type that holds both."""
    types = [plain(query.type_of(c)) for c in (e.left, e.right)]
    sides = [expr_sql(c, query.type_of) for c in (e.left, e.right)]
    if types[0] != types[1] and all(pt.is_integer(t) or pt.is_decimal(t) for t in types):
        common = next(k.type for k in query.graph.classes if _holds(query, k.columns, e.left))
        sides = [f"CAST({side} AS {duck_type(common)})" for side in sides]
    return f"{sides[0]} = {sides[1]}"


def _holds(query: Query, columns: tuple[tuple[str, ...], ...], wanted: Column) -> bool:
    return wanted.name in columns[query.index(wanted.stream)]


def _batches(
    query: Query,
    tables: Mapping[str, pa.Table],
    threads: int | None,
    seconds: float | None = None,
) -> Iterator[pa.RecordBatch]:
    connection = _connect(threads)
    late = Event()

    def interrupt() -> None:
        late.set()
        connection.interrupt()

    timer = Timer(seconds, interrupt) if seconds is not None else None
    try:
        if timer is not None:
            timer.start()
        for stream in query.streams:
            table = tables.get(stream.name, stream.schema.empty_table())
            connection.register(stream.name, _plain(table))
        result: Any = connection.sql(duck_sql(query))
        # DuckDB 2 renamed the method.
        read = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader
        for batch in read():
            columns = [
                column.cast(field.type)
                for column, field in zip(batch.columns, query.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=query.schema)
            if late.is_set():
                break
    except Exception:
        if not late.is_set():
            raise
    finally:
        if timer is not None:
            timer.cancel()
        connection.close()
    if late.is_set():
        raise TooSlow(f"DuckDB took longer than {seconds:g} s", remedy="give it more time")


def _plain(table: pa.Table) -> pa.Table:
    """The table without dictionaries, which DuckDB would take for types of their own."""
    schema = pa.schema([pa.field(f.name, plain(f.type)) for f in table.schema])
    return table if schema == table.schema else table.cast(schema)


def _connect(threads: int | None) -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ImportError:
        raise PlaitError(
            "DuckDB is not installed", remedy="install it with: pip install 'plait[bench]'"
        ) from None
    return duckdb.connect(config={} if threads is None else {"threads": threads})
