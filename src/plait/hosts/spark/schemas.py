"""Spark's schemas and Arrow's: what a DataFrame has, and what an operator returns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from plait.query.keys import unreadable
from plait.route.malformed import MARK, MARK_TYPE


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a DataFrame; timestamps are instants in UTC.

    A column that Plait cannot carry may be there as long as nobody asks for it. The mark of
    malformed rows is none of them.
    """
    fields = [field for field in frame.schema.fields if not _is_mark(field)]
    return pa.schema([(field.name, arrow_type(field.dataType)) for field in fields])


def is_marked(frame: DataFrame) -> bool:
    """Whether a DataFrame tells which of its rows are malformed; see `plait.route.malformed`."""
    return any(map(_is_mark, frame.schema.fields))


def _is_mark(field: StructField) -> bool:
    return field.name == MARK and arrow_type(field.dataType) == MARK_TYPE


def arrow_type(type_: DataType) -> pa.DataType:
    """A type of Spark as Arrow has it."""
    name = type_.simpleString()
    if "map<" in name:  # no hash, no gather and no pandas column has one
        return unreadable(name)
    try:
        return to_arrow_type(type_, timezone="UTC")
    except TypeError:
        return unreadable(name)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of results."""
    return StructType(
        [StructField(f.name, from_arrow_type(f.type, prefer_timestamp_ntz=True)) for f in schema]
    )


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns under the names and types of `schema`, which come in its order.

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
