"""Decode Kafka values that are Arrow record batches: many rows in one message.

A value is an IPC stream: its schema, and any number of batches. Columns are found by name. One that
is missing is null, one that is not asked for is left out. A column of another type will do if its
values fit: integers of another width, floats, times in another unit, text in another layout,
dictionaries. Otherwise the whole value is malformed, as is one that is no IPC stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from plait.groups.routing.malformed import MARK, MARK_TYPE, PLACE
from plait.spark.join.schemas import arrow_type, spark_schema

_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    pt.is_integer,
    lambda t: pt.is_integer(t) or pt.is_floating(t),
    lambda t: pt.is_string(t) or pt.is_large_string(t) or pt.is_string_view(t),
    lambda t: pt.is_binary(t) or pt.is_large_binary(t) or pt.is_fixed_size_binary(t),
    pt.is_decimal,
    pt.is_date,
    lambda t: pt.is_timestamp(t) and t.tz is None,
    lambda t: pt.is_timestamp(t) and t.tz is not None,
)
"""Types within which values are the same, however they are laid out."""


def unpacked(frame: DataFrame, fields: Sequence[StructField], keep: Sequence[str]) -> DataFrame:
    """Decode the values of messages into rows, which keep some columns of their message."""
    schema = pa.schema([(f.name, arrow_type(f.dataType)) for f in fields])
    kept = [frame.schema[name] for name in keep]
    mark = spark_schema(pa.schema([(MARK, MARK_TYPE)])).fields
    messages = frame.select(*(frame[name] for name in dict.fromkeys((*PLACE, *keep))))

    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from rows_of_messages(batch, schema, keep)

    return messages.mapInArrow(unpack, StructType([*fields, *kept, *mark]))


def rows_of_messages(
    messages: pa.RecordBatch, schema: pa.Schema, keep: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Decode the values of some messages; mark those that cannot be decoded."""
    tables, bad = list[tuple[int, pa.Table]](), list[tuple[int, str]]()
    for number, value in enumerate(messages.column("value")):
        found = read_value(value, schema)
        if isinstance(found, str):
            bad.append((number, found))
        else:
            tables.append((number, found))
    if tables:
        rows = pa.concat_tables([table for _, table in tables]).combine_chunks()
        lengths = [table.num_rows for _, table in tables]
        origin = pa.array(np.repeat([number for number, _ in tables], lengths), pa.int64())
        columns = [column.combine_chunks() for column in rows.columns]
        columns += [messages.column(name).take(origin) for name in keep]
        yield _batch([*columns, pa.nulls(rows.num_rows, MARK_TYPE)], schema, keep)
    if bad:
        which = pa.array([number for number, _ in bad])
        place = [messages.column(name).take(which) for name in PLACE]
        problems = pa.array([problem for _, problem in bad])
        marks = pa.StructArray.from_arrays([*place, problems], fields=list(MARK_TYPE))
        n = len(bad)
        nulls = [pa.nulls(n, type_) for type_ in schema.types]
        nulls += [pa.nulls(n, messages.column(name).type) for name in keep]
        yield _batch([*nulls, marks], schema, keep)


def read_value(value: pa.Scalar, schema: pa.Schema) -> pa.Table | str:
    """Decode one value into the columns of `schema`, or return what is wrong with it."""
    if not value.is_valid:
        return "no value"
    try:
        with pa.ipc.open_stream(value.as_buffer()) as reader:
            table = reader.read_all()
        table.validate(full=True)  # it comes from somewhere: no offset may lead out of its buffers
    except (pa.ArrowException, OSError, UnicodeError) as error:
        return f"no Arrow IPC stream: {error}"
    columns = []
    for field in schema:
        if table.schema.names.count(field.name) > 1:
            return f"it has several columns {field.name!r}"
        if field.name not in table.schema.names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        found = _fitted(table.column(field.name), field.type)
        if found is None:
            had = table.schema.field(field.name).type
            return f"its column {field.name!r} is of type {had} and does not fit {field.type}"
        columns.append(found)
    return pa.table(columns, schema=schema)


def _fitted(
    column: pa.ChunkedArray | pa.Array, type_: pa.DataType
) -> pa.ChunkedArray | pa.Array | None:
    """Cast a column where no value changes by it, else None."""
    if column.type == type_:
        return column
    plain = column.type.value_type if pt.is_dictionary(column.type) else column.type
    same = plain == type_ or pt.is_null(plain) or any(k(plain) and k(type_) for k in _KINDS)
    if (pt.is_floating(plain) and pt.is_integer(type_)) or not same:
        return None
    try:
        return column.cast(type_)
    except pa.ArrowException:
        return None


def _batch(columns: Sequence[pa.Array], schema: pa.Schema, keep: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), [*schema.names, *keep, MARK])
