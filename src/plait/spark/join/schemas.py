"""Convert between the schemas of Spark and of Arrow."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt
from pyspark.errors import PySparkValueError
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from plait.errors import SourceError
from plait.groups.routing.malformed import MARK, MARK_TYPE
from plait.query.keys import carried, unreadable

CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark notes that a column of type STRING is a CHAR or VARCHAR of a table."""

_READ = (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)
"""The types that Plait reads. Columns of other types are refused where a query uses them."""


def arrow_schema(frame: DataFrame, name: str = "a stream") -> pa.Schema:
    """The columns of a DataFrame, which errors call `name`; timestamps are instants in UTC.

    A column that Plait cannot read may be there as long as nobody asks for it. The mark of
    malformed rows is none of them.
    """
    try:
        schema = frame.schema
    except PySparkValueError as error:
        raise SourceError(
            f"PySpark does not know a type of {name!r}: {error}",
            remedy="cast the column before the join, or leave it out",
        ) from None
    fields = [field for field in schema.fields if not _is_mark(field)]
    return pa.schema([(field.name, _column_type(field)) for field in fields])


def _column_type(field: StructField) -> pa.DataType:
    """The type of a column. A CHAR of a table is only carried: Spark pads what it meets."""
    type_, declared = arrow_type(field.dataType), str((field.metadata or {}).get(CHAR_TYPE, ""))
    return carried(type_, declared) if declared.startswith("char(") else type_


def is_marked(frame: DataFrame) -> bool:
    """Whether a DataFrame marks malformed rows; see `plait.groups.routing.malformed`."""
    return any(map(_is_mark, frame.schema.fields))


def _is_mark(field: StructField) -> bool:
    return field.name == MARK and arrow_type(field.dataType) == MARK_TYPE


def arrow_type(type_: DataType) -> pa.DataType:
    """A type of Spark as Arrow has it; strings that are compared by a collation are only carried.

    >>> arrow_type(StringType("UNICODE_CI")).type_name
    'string collate UNICODE_CI'
    """
    try:
        plain = to_arrow_type(type_, timezone="UTC")
    except (TypeError, ValueError):  # not in Arrow, or VOID that is never null
        return unreadable(type_.simpleString())
    if not all(map(_is_read, parts(type_))):
        return unreadable(type_.simpleString())
    return _collated(type_, plain)


def parts(type_: DataType) -> Iterator[DataType]:
    """The type and those within it."""
    yield type_
    if isinstance(type_, ArrayType):
        yield from parts(type_.elementType)
    elif isinstance(type_, StructType):
        for field in type_.fields:
            yield from parts(field.dataType)


def _is_read(type_: DataType) -> bool:
    """Whether Plait reads the type, apart from those within it."""
    if isinstance(type_, StructType):
        return 0 < len(type_.names) == len(set(type_.names))  # others do not reach Python
    return isinstance(type_, _READ)


def _collated(type_: DataType, plain: pa.DataType) -> pa.DataType:
    """The type in Arrow, with the collations that Arrow does not have."""
    if isinstance(type_, StringType) and not type_.isUTF8BinaryCollation():
        return carried(plain, type_.simpleString())
    if isinstance(type_, ArrayType):
        element = _collated(type_.elementType, plain.value_type)
        return pa.list_(plain.value_field.with_type(element))
    if isinstance(type_, StructType):
        pairs = zip(type_.fields, plain, strict=True)
        return pa.struct([f.with_type(_collated(s.dataType, f.type)) for s, f in pairs])
    return plain


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of results."""
    return StructType(
        [StructField(f.name, from_arrow_type(f.type, prefer_timestamp_ntz=True)) for f in schema]
    )


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give columns the names and types of `schema`, whose order they have.

    Spark labels instants with the session's time zone, also those within structs and arrays.
    """
    arrays = []
    for array, field in zip(batch.columns, schema, strict=True):
        instants = array.type != field.type and (
            pt.is_timestamp(array.type) or pt.is_nested(array.type)
        )
        arrays.append(array.cast(field.type) if instants else array)
    return pa.RecordBatch.from_arrays(
        arrays,
        schema=pa.schema([pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]),
    )
