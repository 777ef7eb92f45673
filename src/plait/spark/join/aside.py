"""Return rows that were set aside (late, without event time or key) beside the results.

A streaming query has one output, and whether a row is late depends on the batches of this very
query; a second query over the same sources would have other batches and call other rows late. So
the operator returns both kinds of rows, and one column of type struct, null in results, holds what
was set aside:

    late: struct<stream: string, reason: string, event_time: timestamp, trades: struct<...>, ...>

with a member per stream, which has the columns that processors need of it, and is null unless the
row is of that stream. Where values of a stream may be malformed (`plait.groups.routing.malformed`),
a last member `malformed` has them as they came; nothing else is known of them. Inside the operator
these are flat columns, because pandas has no structs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # the name everybody uses

from plait.engine.intake.admission import NO_TIME
from plait.engine.intake.times import event_times
from plait.errors import DuplicateName, SourceError
from plait.groups.routing.malformed import MALFORMED, MARK_TYPE
from plait.node.batch import Aside
from plait.query.expr import Column as Attribute
from plait.query.query import Query
from plait.spark.join.arrow_frame import arrow_frame

STREAM = "__plait_stream"
REASON = "__plait_reason"
TIME = "__plait_time"
LATE_COLUMN = "late"
"""What the column with the rows set aside is called unless someone says otherwise."""

EachBatch = Callable[[DataFrame, int], None]
"""A function for Spark's `foreachBatch`: it takes the rows of a batch and its number."""


def aside_schema(query: Query, malformed: bool = False) -> pa.Schema:
    """The flat columns of rows set aside, for a query whose streams have their columns in packets.

    >>> from plait.testing.examples import clique
    >>> aside_schema(clique(2)).names[3:]
    ['__plait_0_ts', '__plait_0_k', '__plait_1_ts', '__plait_1_k']
    """
    columns = [
        (_flat(s, field.name), field.type)
        for s, stream in enumerate(query.streams)
        for field in stream.fields
    ]
    if malformed:
        columns += [(_of_mark(field.name), field.type) for field in MARK_TYPE]
    when = pa.timestamp("us", tz="UTC")
    return pa.schema([(STREAM, pa.string()), (REASON, pa.string()), (TIME, when), *columns])


def aside_sources(query: Query) -> dict[str, Attribute]:
    """The attributes that the flat columns have, by name."""
    return {
        _flat(s, field.name): Attribute(stream.name, field.name)
        for s, stream in enumerate(query.streams)
        for field in stream.fields
    }


def aside_columns(query: Query, aside: Aside) -> dict[str, pa.Array]:
    """Rows set aside, as those of the columns in `aside_schema` that are not null."""
    stream, n = query.streams[aside.stream], aside.rows.num_rows
    if aside.reason == MALFORMED:
        return {
            STREAM: pa.repeat(stream.name, n),
            REASON: pa.repeat(aside.reason, n),
            **{_of_mark(f.name): aside.rows.column(f.name) for f in MARK_TYPE},
        }
    micros = event_times(aside.rows.column(stream.time))
    unknown = np.full(n, aside.reason == NO_TIME)
    return {
        STREAM: pa.repeat(stream.name, n),
        REASON: pa.repeat(aside.reason, n),
        TIME: pa.array(micros, pa.int64(), mask=unknown).cast(pa.timestamp("us", tz="UTC")),
        **{_flat(aside.stream, f.name): aside.rows.column(f.name) for f in stream.fields},
    }


def padded(columns: dict[str, pa.Array], rows: int, schema: pa.Schema) -> pd.DataFrame:
    """Columns and nulls as a pandas frame of Arrow arrays: nothing is converted."""
    return arrow_frame(padded_batch(columns, rows, schema))


def padded_batch(columns: dict[str, pa.Array], rows: int, schema: pa.Schema) -> pa.RecordBatch:
    """Columns and nulls in the columns of a schema."""
    arrays = [
        _as(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Instants as microseconds, also within others; all else as it is."""
    if array.type != type_ and pt.is_nested(array.type):
        return array.cast(type_)
    if array.type == type_ or not pt.is_timestamp(array.type):
        return array
    return array.cast(pa.timestamp("us", tz=array.type.tz), safe=False).view(type_)


def late_column(query: Query, late: bool | str) -> str | None:
    """What the column with the rows set aside is called; None if they are not asked for."""
    if not late:
        return None
    name = late if isinstance(late, str) else LATE_COLUMN
    if name in query.schema.names:
        raise DuplicateName(
            f"the results have a column {name!r} already",
            remedy=f"call the one with late rows differently: to_df(late='{name}_rows')",
        )
    return name


def aside_type(query: Query, malformed: bool = False) -> pa.DataType:
    """The column with rows set aside as an Arrow type, for those who write without Spark."""
    streams = [
        (stream.name, pa.struct([(f.name, f.type) for f in stream.fields]))
        for stream in query.streams
    ]
    if malformed:
        streams.append((MALFORMED, MARK_TYPE))
    when = pa.timestamp("us", tz="UTC")
    return pa.struct(
        [("stream", pa.string()), ("reason", pa.string()), ("event_time", when), *streams]
    )


def aside_structs(query: Query, aside: Aside, malformed: bool = False) -> pa.Array:
    """Rows set aside as values of that type."""
    flat, n = aside_columns(query, aside), aside.rows.num_rows
    when = pa.timestamp("us", tz="UTC")
    members = [flat[STREAM], flat[REASON], flat.get(TIME, pa.nulls(n, when))]
    for s, stream in enumerate(query.streams):
        fields = [pa.field(f.name, f.type) for f in stream.fields]
        if s != aside.stream or aside.reason == MALFORMED:
            members.append(pa.nulls(n, pa.struct(fields)))
            continue
        values = [flat[_flat(s, f.name)].cast(f.type) for f in fields]
        members.append(pa.StructArray.from_arrays(values, fields=fields))
    if malformed and aside.reason == MALFORMED:
        marks = [flat[_of_mark(f.name)] for f in MARK_TYPE]
        members.append(pa.StructArray.from_arrays(marks, fields=list(MARK_TYPE)))
    elif malformed:
        members.append(pa.nulls(n, MARK_TYPE))
    return pa.StructArray.from_arrays(members, fields=list(aside_type(query, malformed)))


def nested(frame: DataFrame, query: Query, name: str, malformed: bool = False) -> DataFrame:
    """The flat columns of rows set aside as one column of type struct."""
    results = [F.col(_quoted(column)) for column in query.schema.names]
    members: list[Column] = [
        F.col(STREAM).alias("stream"),
        F.col(REASON).alias("reason"),
        F.col(TIME).alias("event_time"),
    ]
    for s, stream in enumerate(query.streams):
        values = [F.col(_quoted(_flat(s, f.name))).alias(f.name) for f in stream.fields]
        is_here = F.col(STREAM) == F.lit(stream.name)
        if malformed:
            is_here &= F.col(REASON) != F.lit(MALFORMED)
        members.append(F.when(is_here, F.struct(*values)).alias(stream.name))
    if malformed:
        marks = [F.col(_of_mark(f.name)).alias(f.name) for f in MARK_TYPE]
        is_mark = F.col(REASON) == F.lit(MALFORMED)
        members.append(F.when(is_mark, F.struct(*marks)).alias(MALFORMED))
    aside = F.when(F.col(STREAM).isNotNull(), F.struct(*members)).alias(name)
    return frame.select(*results, aside)


def each_batch(
    results: EachBatch | None = None, late: EachBatch | None = None, *, column: str = LATE_COLUMN
) -> EachBatch:
    """Return a function for `foreachBatch` that passes results and late rows to two others.

        both = plait.spark.each_batch(results=..., late=...)
        q.to_df(late=True).writeStream.foreachBatch(both)

    Each gets a DataFrame, as `split_late` returns it, and the number of the batch. The batch is
    computed once. As always with `foreachBatch`, a batch that is repeated after a failure has the
    same number.
    """

    def split(frame: DataFrame, number: int) -> None:
        joined, set_aside = split_late(frame, column)
        frame.persist()
        try:
            if results is not None:
                results(joined, number)
            if late is not None:
                late(set_aside, number)
        finally:
            frame.unpersist()

    return split


def split_late(frame: DataFrame, column: str = LATE_COLUMN) -> tuple[DataFrame, DataFrame]:
    """Split what `to_df(late=True)` returned into two DataFrames: the results and the late rows.

        results, late = plait.spark.split_late(q.to_df(late=True))

    Results have the columns of the query. Late rows have the members of the struct `column`: the
    stream, the reason, the event time, and a struct per stream with the row itself.

    It takes a static DataFrame, or a batch inside `foreachBatch`; `each_batch` calls it for each.
    A streaming DataFrame is refused: Spark would run two queries over it, with batches of their
    own, and what is late depends on the batches.
    """
    if column not in frame.columns:
        raise SourceError(
            f"these rows have no column {column!r} with what was set aside",
            remedy="build them with to_df(late=True)",
        )
    if frame.isStreaming:
        raise SourceError(
            "a streaming DataFrame cannot be split: each half would be a query of its own",
            remedy="use writeStream.foreachBatch(plait.spark.each_batch(results=..., late=...))",
        )
    aside = F.col(_quoted(column))
    results = frame.where(aside.isNull()).drop(column)
    return results, frame.where(aside.isNotNull()).select(f"{_quoted(column)}.*")


def _flat(stream: int, column: str) -> str:
    return f"__plait_{stream}_{column}"


def _of_mark(field: str) -> str:
    return f"__plait_mark_{field}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
