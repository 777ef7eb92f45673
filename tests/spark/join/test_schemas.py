"""Every type of PySpark is read, carried or refused by name: none falls through."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkValueError
from pyspark.sql import types as T  # the name everybody uses

from plait.errors import SourceError
from plait.query.keys import is_unreadable, name_of_carried, stored
from plait.spark.join.schemas import arrow_schema, arrow_type

READ: dict[T.DataType, pa.DataType] = {
    T.BinaryType(): pa.binary(),
    T.BooleanType(): pa.bool_(),
    T.ByteType(): pa.int8(),
    T.DateType(): pa.date32(),
    T.DayTimeIntervalType(): pa.duration("us"),
    T.DayTimeIntervalType(1, 1): pa.duration("us"),
    T.DecimalType(38, 18): pa.decimal128(38, 18),
    T.DoubleType(): pa.float64(),
    T.FloatType(): pa.float32(),
    T.IntegerType(): pa.int32(),
    T.LongType(): pa.int64(),
    T.NullType(): pa.null(),
    T.ShortType(): pa.int16(),
    T.StringType(): pa.string(),
    T.TimeType(3): pa.time64("ns"),
    T.TimestampNTZType(): pa.timestamp("us"),
    T.TimestampType(): pa.timestamp("us", tz="UTC"),
    T.ArrayType(T.StringType()): pa.list_(pa.string()),
    T.StructType([T.StructField("n", T.LongType())]): pa.struct([("n", pa.int64())]),
}


class Point(T.UserDefinedType):
    """A type of a user's."""

    @classmethod
    def sqlType(cls) -> T.DataType:
        """How its values are stored."""
        return T.LongType()


REFUSED = (
    T.CalendarIntervalType(),
    T.CharType(5),
    T.GeographyType(4326),
    T.GeometryType(0),
    T.MapType(T.StringType(), T.LongType()),
    T.VarcharType(5),
    T.VariantType(),
    T.YearMonthIntervalType(),
    Point(),
    T.ArrayType(T.NullType(), containsNull=False),
    # PySpark does not get these through.
    T.StructType([]),
    T.StructType([T.StructField("n", T.LongType()), T.StructField("n", T.LongType())]),
)

KINDS = {
    # What other types are kinds of, and what is no type of a column.
    *(T.DataType, T.AtomicType, T.NumericType, T.IntegralType, T.FractionalType),
    *(T.DatetimeType, T.AnyTimeType, T.AnsiIntervalType, T.SpatialType, T.StructField),
}


def test_every_type_of_pyspark_is_listed_here() -> None:
    """A type that a later Spark adds fails here until somebody says what becomes of it."""
    classes = {c for c in vars(T).values() if isinstance(c, type) and issubclass(c, T.DataType)}
    listed = {type(t) for t in (*READ, *REFUSED)} | {T.UserDefinedType} - {Point}
    assert classes - KINDS - listed == set()


def nested(type_: T.DataType) -> Iterator[T.DataType]:
    """The type within others."""
    yield T.ArrayType(type_)
    yield T.StructType([T.StructField("before", T.LongType()), T.StructField("in it", type_)])
    yield T.ArrayType(T.StructType([T.StructField("deep", T.ArrayType(type_))]))


@pytest.mark.parametrize("type_", READ, ids=lambda t: t.simpleString())
def test_types_that_are_read(type_: T.DataType) -> None:
    assert arrow_type(type_) == READ[type_]
    for outer in nested(type_):
        assert not is_unreadable(arrow_type(outer))


@pytest.mark.parametrize("type_", REFUSED, ids=lambda t: t.simpleString())
def test_types_that_are_refused_by_name(type_: T.DataType) -> None:
    for whole in (type_, *nested(type_)):
        found = arrow_type(whole)
        assert is_unreadable(found)
        assert found.type_name == whole.simpleString()


def test_collations_are_carried_at_every_depth() -> None:
    """Regression: a collation was dropped, and 'A' = 'a' was no match."""
    collated = T.StringType("UTF8_LCASE")
    for type_ in (collated, *nested(collated)):
        found = arrow_type(type_)
        assert name_of_carried(found) == "string collate UTF8_LCASE"
        assert stored(found) == arrow_type(_without_collation(type_))


def _without_collation(type_: T.DataType) -> T.DataType:
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(_without_collation(type_.elementType))
    if isinstance(type_, T.StructType):
        return T.StructType(
            [T.StructField(f.name, _without_collation(f.dataType)) for f in type_.fields]
        )
    return T.StringType() if isinstance(type_, T.StringType) else type_


def columns(*fields: T.StructField) -> Any:
    """What `arrow_schema` reads of a DataFrame."""
    return SimpleNamespace(schema=T.StructType(list(fields)))


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ("char(5)", "char(5)"),
        # These are compared as strings.
        ("varchar(5)", None),
        ("struct<x:char(5)>", None),
    ],
)
def test_a_char_of_a_table_is_carried(declared: str, name: str | None) -> None:
    """Regression: Spark pads what a CHAR is compared with, and Plait did not."""
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": declared}
    frame = columns(T.StructField("c", T.StringType(), metadata=metadata))
    assert name_of_carried(arrow_schema(frame, "a").field("c").type) == name


def test_a_schema_that_pyspark_cannot_read() -> None:
    class Unknown:
        @property
        def schema(self) -> T.StructType:
            raise PySparkValueError("Unable to parse datatype. timestamp_ltz(9)")

    unknown: Any = Unknown()
    with pytest.raises(SourceError, match=r"a type of 'trades': .*timestamp_ltz\(9\).*; cast"):
        arrow_schema(unknown, "trades")
