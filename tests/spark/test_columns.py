"""Columns of Spark as conditions and outputs: the same answer as Spark's own join."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import plait
from plait.errors import QueryError

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    texts = ["it's", "x", None, r"back\slash", "select", ""]

    def frame(stream: int) -> DataFrame:
        rows: list[tuple[Any, ...]] = [
            (start + dt.timedelta(seconds=i), i % 3, texts[(i + stream) % 6], i / 4 - 1, i)
            for i in range(12)
        ]
        return spark.createDataFrame(rows, "ts timestamp, k long, s string, x double, `order` int")

    return {"a": frame(0), "b": frame(1)}


def conditions() -> list[Column]:
    a, b = F.col("a.x"), F.col("b.x")
    return [
        (a < b) & ~(F.col("a.s") == F.col("b.s")),
        (a + 1 >= b * 2) | F.col("a.s").isNull(),
        F.col("a.s").isin("x", "it's", r"back\slash"),
        F.col("b.s").like("%s%") & F.col("b.s").isNotNull(),
        F.col("a.order") % 2 == F.col("b.order") % F.lit(2),
        a.between(-0.5, 1) & (-b < 0.25),
        F.col("a.s").eqNullSafe(F.col("b.s")),
        F.when(a > 0, F.col("a.k")).when(a == 0, -1).otherwise(F.col("b.k")) == 1,
        F.expr("a.x = b.x OR a.s = 'select'"),
        F.length("a.s") > F.coalesce(F.length(F.col("b.s")), F.lit(0)),
        a.cast("int") == b.cast("int"),
        F.lit(True) & (a > float("-inf")),
        F.col("a.s") == F.lit(None),
        F.col("a.s").substr(1, 2) == F.upper(F.concat_ws("", F.col("b.s"))),
        F.col("a.s").startswith("s") | F.col("b.s").rlike(r"^\w+$") | F.col("b.s").ilike("X"),
        F.regexp_replace("a.s", r"[aeiou]", "<$0>") == F.lpad("b.s", 3, "*"),
        F.date_trunc("hour", "a.ts") == F.to_timestamp(F.lit("2024-01-01 00:00:00")),
        F.year("a.ts") + F.datediff("a.ts", "b.ts") == F.col("a.order").bitwiseAND(7) + 2024,
        F.coalesce(F.nullif(F.col("a.s"), F.lit("x")), F.md5("b.s")) > F.hex("b.k"),
    ]


def test_differential_conditions_are_those_of_spark(frames: dict[str, DataFrame]) -> None:
    a, b = frames["a"].alias("a"), frames["b"].alias("b")
    equal = F.col("a.k") == F.col("b.k")
    near = F.abs(F.unix_micros("a.ts") - F.unix_micros("b.ts")) <= 4_000_000
    outputs = [condition.alias(f"c{i}") for i, condition in enumerate(conditions())]
    outputs += [F.col("a.order"), F.col("b.order").alias("other")]
    chosen = F.col("a.x") < F.col("b.x") + 5
    asked = plait.join(**frames).on(equal).within("4 seconds").where(chosen).select(*outputs)
    ours = Counter(map(tuple, asked.to_df().collect()))
    theirs = a.join(b, equal & near & chosen).select(*outputs)
    assert ours == Counter(map(tuple, theirs.collect()))
    assert len(ours) > 10


def test_what_has_no_text_is_refused(frames: dict[str, DataFrame]) -> None:
    asked = plait.join(**frames).on("k").within("4 seconds")
    with pytest.raises(QueryError, match=r"cannot be read"):
        asked.where(F.col("a.ts") > F.lit(dt.datetime(2024, 1, 1)))
    with pytest.raises(QueryError, match="cannot read"):
        asked.where(F.transform(F.array("a.x"), lambda x: x + 1).isNotNull())
    with pytest.raises(QueryError, match="column x does not say of which stream it is"):
        asked.where(frames["a"].x > 1)
