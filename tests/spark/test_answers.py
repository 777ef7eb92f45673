"""On Spark, Spark's answer is the answer: functions, casts and literals, compared value by value.

Every case is evaluated by Spark SQL and by Plait over the same awkward rows, in three time zones,
with ANSI on and off. Where Spark fails on a row, Plait has null: there the case says how Spark asks
for that (TRY_CAST, try_add, ...). What Plait refuses by name is counted as refused. Everything else
must be equal; `KNOWN` lists what is not, with the reason, and may not grow stale.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import PlaitError
from plait.hosts.spark.schemas import arrow_schema, conform
from plait.query.dialect import Dialect
from plait.query.evaluate import evaluate
from plait.query.expr import Expr
from plait.query.query import Field, Stream
from plait.query.sql import parse_output

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

ZONES = ("UTC", "Europe/Berlin", "America/St_Johns")
AT_ONCE = 40

KNOWN = {
    r"(TRY_)?CAST\(bin AS STRING\)": "bytes that are no UTF-8 are null here; Spark keeps them",
    r"(TRY_)?CAST\(f64 AS STRING\)": "Java before 19 does not always write the shortest text",
    r"(TRY_)?CAST\(i64 AS TIMESTAMP(_LTZ)?\)": "beyond 64 bits of microseconds it is null here",
    r"(i8|i32) [-+*] (i8|i32)|-i32|abs\(i32\)": "integers are computed in 64 bits",
    r"dec / i64": "a quotient has fewer digits where 38 do not suffice",
    r"f32 [-+*/%] f32": "FLOAT is computed as DOUBLE",
    r"round\(f64(, 1)?\)": "a rounded -0.0 keeps its sign, and equals 0.0",
    r"ts - TIMESTAMP '.*'": "the time that passes, not the difference of what clocks show",
}
"""What differs from Spark, ANSI or not, and why."""

LENIENT = {
    r"CAST\((i32|i64|f32|f64|dec|s|w) AS (TINYINT|SMALLINT|INT|BIGINT)\)|(ceil|floor)\(f64\)": (
        "what does not fit is null, also without ANSI"
    ),
    r"(i8|i32|i64) [-+*] i64|i64 [-+*] (i8|i32)|round\(i32, -1\)": (
        "what overflows is null, also without ANSI"
    ),
    r"f32 [-+*/%] (i8|i32|i64)|(i8|i32|i64) [-+*/%] f32": "FLOAT is computed as DOUBLE",
}
"""What differs without ANSI only."""

ROWS = """
SELECT * FROM VALUES
 (0, 1Y, 1, 1L, 1.5F, 2.5D, 1.25BD, ' 7 ', true, DATE'2024-03-31', '2024-03-31 02:30:00',
  '1.5', X'41'),
 (1, -128Y, 2147483647, 9223372036854775807L, -0.0F, -0.0D, -99999999.99BD, '-12', false,
  DATE'1969-12-31', '1969-12-31 23:59:59.999999', '2024-10-27', X'FF'),
 (2, 127Y, -2147483648, -9223372036854775808L, CAST('3.4028235E38' AS FLOAT),
  1.7976931348623157E308D, 0.005BD, '2147483648', true, DATE'0001-01-01', '2024-10-27 02:30:00',
  'true', X''),
 (3, 0Y, 0, 0L, CAST('NaN' AS FLOAT), CAST('NaN' AS DOUBLE), 0.00BD, 'x', false, DATE'2024-02-29',
  '1900-01-01 00:00:00', '2024-02-30', X'C3A4'),
 (4, -1Y, -1, -1L, CAST('Infinity' AS FLOAT), CAST('-Infinity' AS DOUBLE), -1.50BD, '1e3', true,
  DATE'9999-12-31', '2024-07-01 00:30:00.1', '2024-7-1 1:2:3Z', X'00'),
 (5, 3Y, 7, 10L, 0.1F, 0.1D, 2.50BD, '', NULL, DATE'1970-01-01', '1970-01-01 00:00:00', 'NaN',
  X'6162'),
 (6, 2Y, 3, -7L, 1E-10F, 1E23D, 33.33BD, '0.5', false, DATE'1582-10-10', '1850-06-01 12:00:00',
  '  y ', X'61'),
 (7, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (8, 5Y, 100, 1000000L, 16777216F, 9007199254740993D, 7.77BD, 'ÄßZ  a', true, DATE'2000-06-15',
  '2024-03-31 03:00:00.000001', '2024-03-31T02:30:00+01:00', X'7A')
AS t(id, i8, i32, i64, f32, f64, dec, s, b, d, at, w, bin)
"""
COLUMNS = (
    "id, i8, i32, i64, f32, f64, CAST(dec AS DECIMAL(12, 2)) AS dec, s, b, d, w, bin, "
    "CAST(at AS TIMESTAMP_NTZ) AS n, timestamp_micros(unix_micros(CAST(at || 'Z' AS TIMESTAMP))) "
    "AS ts"
)
NUMBERS = ("i8", "i32", "i64", "f32", "f64", "dec")
EVERY = (*NUMBERS, "s", "b", "d", "w", "bin", "n", "ts")
TYPES = (
    "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 1)", "DECIMAL(20, 6)",
    "STRING", "BINARY", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ",
)  # fmt: skip
TRIED = {
    "+": "try_add",
    "-": "try_subtract",
    "*": "try_multiply",
    "/": "try_divide",
    "%": "try_mod",
}
LITERALS = (
    "1", "-2147483649", "9223372036854775807", "1.50", "1e3", "-0.0", "'it''s'", "X'4f'", "TRUE",
    "NULL", "DATE '2024-02-29'", "TIMESTAMP '2024-03-31 02:30:00'", "TIMESTAMP '2024-07-01'",
    "TIMESTAMP '2024-07-01 00:30:00Z'", "TIMESTAMP '2024-07-01 00:30:00+05:30'",
    "TIMESTAMP_NTZ '2024-03-31 02:30:00'", "TIMESTAMP_LTZ '2024-10-27 02:30:00'",
    "TIMESTAMP_LTZ '1890-01-01 00:00:00'", "CAST(TIMESTAMP '2024-07-01 00:30:00' AS DATE)",
    "CAST(TIMESTAMP_LTZ '2024-07-01 00:30:00Z' AS STRING)",
    "CAST('2024-07-01 00:30:00' AS TIMESTAMP)", "INTERVAL 90 SECONDS",
    "INTERVAL '1 10:30' DAY TO MINUTE",
)  # fmt: skip
FUNCTIONS = (
    "abs(i32)", "abs(f64)", "abs(dec)", "-i32", "-f64", "ceil(f64)", "floor(f64)", "ceil(dec)",
    "floor(dec)", "round(f64)", "round(f64, 1)", "round(dec, 1)", "round(i32, -1)",
    "coalesce(i32, i64)", "coalesce(s, 'none')", "coalesce(d, DATE '2000-01-01')",
    "concat(s, '-', i32)", "concat(s, ts)", "s || d", "concat(bin, bin)",
    "greatest(i32, f64)", "least(f32, f64)", "greatest(d, DATE '2000-01-01')",
    "length(s)", "length(bin)", "lower(s)", "upper(s)", "trim(s)", "substring(s, 2)",
    "substring(s, -2, 1)", "substring(s, 0, 2)", "unix_micros(ts)", "if(b, i32, i64)",
    "nullif(i32, 0)", "CASE WHEN b THEN s ELSE w END", "CASE i32 WHEN 1 THEN 'a' ELSE 'b' END",
    "s LIKE '%a'", "s LIKE '_'", "s IN ('x', '')", "i32 IN (1, NULL)", "b IS TRUE", "s IS NULL",
    "i32 <=> NULL", "NOT b", "b AND i32 > 0", "b OR s = 'x'", "d = DATE '2024-02-29'",
    "ts > TIMESTAMP '2024-03-31 02:30:00'", "n > TIMESTAMP_NTZ '2024-03-31 02:30:00'", "ts > n",
    "ts > d", "n > d", "ts = w", "ts + INTERVAL 90 SECONDS", "n - INTERVAL 36 HOURS",
    "ts - TIMESTAMP '2024-01-01 00:00:00'", "d + INTERVAL 1 DAY", "d - DATE '2024-01-01'",
    "f64 = CAST('NaN' AS DOUBLE)", "f64 < f32", "i64 = f64", "dec = f64", "i32 = dec",
)  # fmt: skip


def cases() -> Iterator[tuple[str, str]]:
    """Texts for Plait (and Spark without ANSI), and what asks Spark with ANSI for null."""
    for column, type_ in itertools.product(EVERY, TYPES):
        yield f"CAST({column} AS {type_})", f"try_cast({column} AS {type_})"
        yield f"TRY_CAST({column} AS {type_})", f"try_cast({column} AS {type_})"
    for literal in LITERALS:
        yield literal, literal
    for (op, tried), left, right in itertools.product(TRIED.items(), NUMBERS, NUMBERS):
        yield f"{left} {op} {right}", f"{tried}({left}, {right})"
    for op, left, right in itertools.product(("=", "<", ">=", "<=>", "<>"), NUMBERS, NUMBERS):
        yield f"{left} {op} {right}", f"{left} {op} {right}"
    for text in FUNCTIONS:
        yield text, text


def seen(value: Any) -> Any:
    """A value as it is compared: numbers by value, NaN equal to itself."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    exact = Decimal(value)
    return "-0" if exact.is_zero() and exact.is_signed() else exact.normalize()


def listed(array: Any) -> list[Any]:
    """The values as they are compared; times by their number, with or without a zone."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        instants = "instant" if kind.tz else "clock"
        micros = array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
        return [None if v is None else (instants, v) for v in micros]
    if pa.types.is_date(kind):
        days = array.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return [None if v is None else ("day", v) for v in days]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        octets = array.cast(pa.binary()).to_pylist()
        return [None if v is None else v.decode(errors="replace") for v in octets]
    return [seen(v) for v in array.to_pylist()]


def values_of(expr: Expr, rows: pa.RecordBatch) -> pa.Array:
    """Plait's values."""
    return evaluate(expr, lambda column: rows.column(column.name), rows.num_rows)


def of_spark(session: SparkSession, texts: list[str]) -> dict[str, list[Any]]:
    """Spark's values of each text that it can evaluate on all rows."""
    named = [f"({text}) AS c{i}" for i, text in enumerate(texts)]
    try:
        table = session.table("answers").orderBy("id").selectExpr(*named).toArrow()
    except PySparkException:
        if len(texts) == 1:
            return {}
        half = len(texts) // 2
        return {**of_spark(session, texts[:half]), **of_spark(session, texts[half:])}
    return {t: listed(c) for t, c in zip(texts, table.columns, strict=True)}


@pytest.mark.parametrize(
    "zones",
    [ZONES[1:2], pytest.param(ZONES, marks=pytest.mark.campaign)],
    ids=["one zone", "three zones"],
)
@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "lenient"])
def test_differential_spark_answers(
    spark: SparkSession, ansi: bool, zones: tuple[str, ...]
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    counts: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    for zone in zones:
        session.conf.set("spark.sql.session.timeZone", zone)
        session.conf.set("spark.sql.ansi.enabled", "true")
        frame = session.sql(ROWS).selectExpr(*fields_of(COLUMNS))
        frame.createOrReplaceTempView("answers")
        table = frame.orderBy("id").toArrow().combine_chunks()
        schema = arrow_schema(frame)
        rows = conform(table.to_batches()[0], schema)
        stream = Stream("t", tuple(Field(f.name, f.type) for f in schema), "ts")
        session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
        ours: dict[str, tuple[str, list[Any]]] = {}
        for text, tried in cases():
            try:
                (output,) = parse_output(f"{text} AS x", [stream], Dialect(zone))
            except PlaitError:
                counts["refused by name"] += 1
                continue
            found = values_of(output.expr, rows)
            ours[text] = (tried if ansi else text, listed(found))
        asked = sorted({tried for tried, _ in ours.values()})
        theirs: dict[str, list[Any]] = {}
        for i in range(0, len(asked), AT_ONCE):
            theirs |= of_spark(session, asked[i : i + AT_ONCE])
        for text, (tried, found) in ours.items():
            if tried not in theirs:
                counts["refused by Spark, or failing on some row"] += 1
            elif found == theirs[tried]:
                counts["equal"] += 1
            else:
                counts["different"] += 1
                pairs = zip(found, theirs[tried], strict=True)
                first = next(p for p in pairs if p[0] != p[1])
                wrong.setdefault(text, []).append(f"{zone}: {first[0]!r}, Spark {first[1]!r}")
    print(f"ANSI {'on' if ansi else 'off'}, {len(zones)} zones: {dict(counts)}")
    for text, differences in sorted(wrong.items()):
        print(f"  {text}: {'; '.join(differences[:3])}")
    known = KNOWN if ansi else KNOWN | LENIENT
    unknown = {t: d for t, d in wrong.items() if not any(re.fullmatch(k, t) for k in known)}
    assert not unknown
    if zones != ZONES:
        return
    stale = [k for k in known if not any(re.fullmatch(k, text) for text in wrong)]
    assert not stale, "these are equal now; take them out of the list"


def fields_of(text: str) -> list[str]:
    """A select list, split at its outer commas."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]
