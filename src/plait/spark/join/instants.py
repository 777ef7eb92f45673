"""Carry timestamps through Python as microseconds, also within arrays and structs.

pandas would convert them one by one, and those of arrays by the clock of the session's zone.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # the name everybody uses


def with_micros(type_: pa.DataType) -> pa.DataType:
    """The type with microseconds for instants, at every depth; nested values may be null.

    Arrow refuses a null struct that has a struct which is never null.

    >>> with_micros(pa.list_(pa.timestamp("us", "UTC")))
    ListType(list<item: int64>)
    """
    if is_instant(type_):
        return pa.int64()
    if pt.is_struct(type_):
        return pa.struct([pa.field(f.name, with_micros(f.type)) for f in type_])
    if pt.is_list(type_):
        return pa.list_(pa.field(type_.value_field.name, with_micros(type_.value_type)))
    return type_


def is_instant(type_: pa.DataType) -> bool:
    """Whether values are instants, Spark's TIMESTAMP."""
    return bool(pt.is_timestamp(type_)) and type_.tz is not None


def _has_instants(type_: pa.DataType) -> bool:
    if pt.is_nested(type_):
        return any(_has_instants(type_.field(i).type) for i in range(type_.num_fields))
    return is_instant(type_)


def with_instants(rows: DataFrame, meant: Iterable[pa.Field]) -> DataFrame:
    """Turn microseconds back into the instants of these fields."""
    return rows.select([_instants(named_column(f.name), f.type).alias(f.name) for f in meant])


def _instants(value: Column, type_: pa.DataType) -> Column:
    """A column of this type whose instants came as microseconds."""
    if not _has_instants(type_):
        return value
    if pt.is_list(type_):
        return F.transform(value, lambda item: _instants(item, type_.value_type))
    if pt.is_struct(type_):
        fields = [_instants(value.getField(f.name), f.type).alias(f.name) for f in type_]
        return F.when(value.isNotNull(), F.struct(*fields))
    return F.timestamp_micros(value)


def named_column(name: str) -> Column:
    """A column by its name, which may have dots and backquotes in it."""
    return F.col("`" + name.replace("`", "``") + "`")
