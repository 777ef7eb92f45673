"""On Spark, Spark's answer is the answer: functions, casts and literals, compared value by value.

Every case is evaluated by Spark SQL and by Plait over the same awkward rows, in three time zones,
with ANSI on and off. Where Spark fails on a row, Plait has null. What Plait refuses by name is
counted as refused. Everything else must be equal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.spark.answering import COLUMNS, ROWS, Case, cases, names_of

from plait.errors import PlaitError
from plait.query.dialect import Dialect
from plait.query.evaluate import evaluate
from plait.query.expr import Expr
from plait.query.query import Field, Stream
from plait.query.sql import parse_output
from plait.query.sql.functions import NAMED
from plait.spark.environment.java import writes_shortest
from plait.spark.join.schemas import arrow_schema, conform

ZONES = ("UTC", "Europe/Berlin", "America/St_Johns")
AT_ONCE = 100
README = Path(__file__).parents[2] / "README.md"
PAGE = README.parent / "docs" / "spark-answers.md"


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


def of_spark(session: SparkSession, texts: Sequence[str]) -> dict[str, list[Any]]:
    """Spark's values of each text that it can evaluate on all rows."""
    named = [f"({text}) AS c{i}" for i, text in enumerate(texts)]
    try:
        frame = session.table("answers").selectExpr("id", *named)
        table = frame.toArrow()
    except PySparkException:
        if len(texts) == 1:
            return {}
        half = len(texts) // 2
        return {**of_spark(session, texts[:half]), **of_spark(session, texts[half:])}
    assert table.column(0).to_pylist() == list(range(table.num_rows))
    return {t: listed(c) for t, c in zip(texts, table.columns[1:], strict=True)}


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
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
    # Ten rows are not worth compiling for.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    counts: Counter[tuple[str, str]] = Counter()
    wrong: dict[str, list[str]] = {}
    refused: list[str] = []
    for zone in zones:
        session.conf.set("spark.sql.session.timeZone", zone)
        session.conf.set("spark.sql.ansi.enabled", "true")
        frame = session.sql(ROWS).selectExpr(*COLUMNS)
        frame.createOrReplaceTempView("answers")
        schema = arrow_schema(frame)
        rows = conform(frame.toArrow().combine_chunks().to_batches()[0], schema)
        stream = Stream("t", tuple(Field(f.name, f.type) for f in schema), "ts")
        session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
        dialect = Dialect(zone, ansi=ansi, shortest=writes_shortest(session))
        ours: dict[Case, list[Any]] = {}
        for case in cases():
            try:
                (output,) = parse_output(f"{case.text} AS x", [stream], dialect)
            except PlaitError:
                counts[case.kind, "refused by name"] += 1
                continue
            ours[case] = listed(values_of(output.expr, rows))
        asked = sorted({case.tried if ansi else case.text for case in ours})
        theirs: dict[str, list[Any]] = {}
        for i in range(0, len(asked), AT_ONCE):
            theirs |= of_spark(session, asked[i : i + AT_ONCE])
        for case, found in ours.items():
            expected = theirs.get(case.tried if ansi else case.text)
            if expected is None:
                counts[case.kind, "refused by Spark"] += 1
                refused.append(case.text)
            elif found == expected:
                counts[case.kind, "equal"] += 1
            else:
                counts[case.kind, "different"] += 1
                first = next(p for p in zip(found, expected, strict=True) if p[0] != p[1])
                wrong.setdefault(case.text, []).append(f"{zone}: {first[0]!r}, Spark {first[1]!r}")
    print(f"ANSI {'on' if ansi else 'off'}, {len(zones)} zones")
    for kind in ("functions", "casts", "literals", "operators"):
        verdicts = {verdict: n for (of, verdict), n in sorted(counts.items()) if of == kind}
        print(f"  {kind}: {verdicts}")
    for text, differences in sorted(wrong.items()):
        print(f"  {text}: {'; '.join(differences[:3])}")
    assert not wrong
    assert not refused


def test_every_function_is_compared() -> None:
    called = set().union(*(names_of(case.text) for case in cases()))
    assert set(NAMED) <= called


def test_the_page_has_the_numbers() -> None:
    counts = Counter(case.kind for case in cases())
    text = PAGE.read_text()
    assert f"[{len(NAMED)} functions of Spark](docs/functions.md)" in README.read_text()
    assert f"| functions | {len(NAMED)} names in {counts['functions']} expressions |" in text
    assert f"| casts | {counts['casts']}, among all types |" in text
    assert f"| literals | {counts['literals']} |" in text
    assert f"| operators | {counts['operators']}: " in text
