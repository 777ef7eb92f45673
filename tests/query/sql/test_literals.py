"""Constants of SQL and their types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from plait import errors
from plait.query.dialect import Dialect
from plait.query.expr import Literal
from plait.query.query import Field, Stream
from plait.query.sql import parse_output

STREAMS = [Stream(n, (Field("ts", pa.timestamp("us")),), "ts") for n in ("a", "b")]


def constant(text: str) -> Literal:
    (output,) = parse_output(text, STREAMS)
    assert isinstance(output.expr, Literal)
    return output.expr


@pytest.mark.parametrize(
    ("text", "value", "type_"),
    [
        ("1", 1, pa.int64()),
        ("-9223372036854775808", -(2**63), pa.int64()),
        ("-128Y", -128, pa.int8()),
        ("- 32768S", -(2**15), pa.int16()),
        ("-9223372036854775808L", -(2**63), pa.int64()),
        ("9223372036854775808", Decimal(2**63), pa.decimal128(19, 0)),
        ("1.5", Decimal("1.5"), pa.decimal128(2, 1)),
        ("-0.05", Decimal("-0.05"), pa.decimal128(2, 2)),
        ("1.50", Decimal("1.50"), pa.decimal128(3, 2)),
        ("1e3", 1000.0, pa.float64()),
        ("5L", 5, pa.int64()),
        ("5S", 5, pa.int16()),
        ("1.5D", 1.5, pa.float64()),
        ("'it''s'", "it's", pa.string()),
        ("'a' 'b'  'c''d'", "abc'd", pa.string()),
        ('"text"', "text", pa.string()),
        (r"'a\nb'", "a\nb", pa.string()),
        (r"r'a\nb'", r"a\nb", pa.string()),
        ("TRUE", True, pa.bool_()),
        ("NULL", None, pa.null()),
        ("X'ff0A'", b"\xff\x0a", pa.binary()),
        ("X'f'", b"\x0f", pa.binary()),
        ("DATE '2024-02-29'", dt.date(2024, 2, 29), pa.date32()),
        ("TIMESTAMP '2024-02-29 01:02:03.5'", dt.datetime(2024, 2, 29, 1, 2, 3, 500_000),
         pa.timestamp("us")),
        ("TIMESTAMP '2024-02-29 02:00:00+02:00'", dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
         pa.timestamp("us", "UTC")),
        ("TIMESTAMP_LTZ '2024-02-29 00:00:00'", dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
         pa.timestamp("us", "UTC")),
        ("TIMESTAMP_NTZ '2024-02-29'", dt.datetime(2024, 2, 29), pa.timestamp("us")),
        ("CAST('12' AS INT)", 12, pa.int32()),
        ("CAST('x' AS INT)", None, pa.int32()),
        ("INTERVAL 10 SECONDS", dt.timedelta(seconds=10), pa.duration("us")),
        ("INTERVAL '10' SECOND", dt.timedelta(seconds=10), pa.duration("us")),
        ("INTERVAL '1.5' SECONDS", dt.timedelta(seconds=1.5), pa.duration("us")),
        ("INTERVAL -5 MILLISECONDS", dt.timedelta(milliseconds=-5), pa.duration("us")),
        ("-INTERVAL 5 DAYS", dt.timedelta(days=-5), pa.duration("us")),
        ("INTERVAL '1 minute 30 seconds'", dt.timedelta(seconds=90), pa.duration("us")),
        ("INTERVAL '1:30' MINUTE TO SECOND", dt.timedelta(seconds=90), pa.duration("us")),
        ("INTERVAL '-1 10:30:00.25' DAY TO SECOND",
         -dt.timedelta(days=1, hours=10, minutes=30, seconds=0.25), pa.duration("us")),
        ("INTERVAL 2 WEEKS", dt.timedelta(weeks=2), pa.duration("us")),
        ("INTERVAL 7 MICROSECONDS", dt.timedelta(microseconds=7), pa.duration("us")),
    ],
)  # fmt: skip
def test_constants(text: str, value: object, type_: pa.DataType) -> None:
    assert constant(text) == Literal(value, type_)
    assert type(constant(text).value) is type(value)


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("DATE '2023-02-29'", errors.UnsupportedSql,
         "line 1, column 6: DATE '2023-02-29' has no value; write for example DATE '2024-12-31'"),
        ("TIMESTAMP 'soon'", errors.UnsupportedSql, "TIMESTAMP 'soon' has no value"),
        ("1" * 39, errors.UnsupportedSql, "line 1, column 1: a number of 39 digits is not"),
        ("INTERVAL 1 MONTH", errors.UnsupportedSql,
         "line 1, column 1: an INTERVAL of MONTH is not supported; it has no fixed length"),
        ("INTERVAL '2 years'", errors.UnsupportedSql, "an INTERVAL of YEARS is not supported"),
        ("1, INTERVAL '1-2' YEAR TO MONTH", errors.UnsupportedSql,
         "line 1, column 4: INTERVAL YEAR TO MONTH is not supported"),
        ("INTERVAL 'x' SECOND", errors.UnsupportedSql, "the unit X of INTERVAL is not supported"),
        ("INTERVAL '5 parsecs'", errors.UnsupportedSql, "the unit PARSECS of INTERVAL"),
        ("INTERVAL '1:2:3' MINUTE TO SECOND", errors.WindowError,
         "line 1, column 1: '1:2:3' is not a length of time from MINUTE to SECOND"),
        ("INTERVAL 0.1 MICROSECONDS", errors.WindowError, "not a length of time in whole micro"),
        ("INTERVAL 40000 DAYS", errors.WindowError, "longer than a century"),
        ("INTERVAL length('abc') SECONDS", errors.UnsupportedSql,
         "an INTERVAL that is not a constant is not supported"),
    ],
)  # fmt: skip
def test_bad_constants(text: str, type_: type[errors.PlaitError], message: str) -> None:
    with pytest.raises(type_) as caught:
        parse_output(text, STREAMS)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("BOOLEAN", pa.bool_()), ("TINYINT", pa.int8()), ("SMALLINT", pa.int16()),
        ("INT", pa.int32()), ("BIGINT", pa.int64()), ("FLOAT", pa.float32()),
        ("REAL", pa.float32()), ("DOUBLE", pa.float64()), ("DECIMAL", pa.decimal128(10, 0)),
        ("DECIMAL(5)", pa.decimal128(5, 0)), ("DECIMAL(5, 2)", pa.decimal128(5, 2)),
        ("STRING", pa.string()), ("BINARY", pa.binary()), ("DATE", pa.date32()),
        ("TIMESTAMP", pa.timestamp("us")), ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("TIMESTAMP_LTZ", pa.timestamp("us", "UTC")),
    ],
)  # fmt: skip
def test_type_names(name: str, type_: pa.DataType) -> None:
    assert constant(f"CAST(NULL AS {name})") == Literal(None, type_)


@pytest.mark.parametrize(
    "type_", ["STRING COLLATE UTF8_LCASE", "TIMESTAMP_NTZ(9)", "TIMESTAMP_LTZ(9)"]
)
def test_types_with_more_than_a_name(type_: str) -> None:
    """Regression: the collation and the digits were dropped, with other answers than Spark's."""
    with pytest.raises(errors.UnsupportedSql, match=r"the type .* is not supported"):
        parse_output(f"CAST(CAST(a.ts AS STRING) AS {type_}) AS x", STREAMS)


@pytest.mark.parametrize("type_", ["CHAR(5)", "VARCHAR(5)", "CHARACTER(5)"])
def test_casts_to_char(type_: str) -> None:
    """Spark reads them as STRING, unless the session keeps such types."""
    text = f"CAST(CAST(a.ts AS STRING) AS {type_}) AS x"
    assert parse_output(text, STREAMS, dialect=Dialect("UTC"))
    with pytest.raises(errors.UnsupportedSql, match="a cast to CHAR or VARCHAR"):
        parse_output(text, STREAMS, dialect=Dialect("UTC", lengths=True))
