"""Spark's schemas and Arrow's: what a DataFrame has, and what an operator returns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import StructField, StructType

from plait.errors import SourceError


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a DataFrame; timestamps are instants in UTC."""
    fields = []
    for field in frame.schema.fields:
        try:
            type_ = to_arrow_type(field.dataType, timezone="UTC")
        except TypeError as error:
            raise SourceError(
                f"the column {field.name!r} is of type {field.dataType.simpleString()}, "
                "which has no columnar form",
                remedy="cast it or leave it out",
            ) from error
        fields.append((field.name, type_))
    return pa.schema(fields)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of results."""
    return StructType(
        [StructField(f.name, from_arrow_type(f.type, prefer_timestamp_ntz=True)) for f in schema]
    )


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns under the names and types of `schema`, which come in its order.

    Spark labels instants with the session's time zone.
    """
    arrays = []
    for array, field in zip(batch.columns, schema, strict=True):
        instants = array.type != field.type and pt.is_timestamp(array.type)
        arrays.append(array.cast(field.type) if instants else array)
    return pa.RecordBatch.from_arrays(
        arrays,
        schema=pa.schema([pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]),
    )
