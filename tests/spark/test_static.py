"""Static DataFrames: the same query as one batch; keys of every awkward kind."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import plait
from plait.errors import SourceError, TimeColumnError
from plait.testing.oracle.answer import multiset, oracle

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

HUGE = "x" * (1 << 20)


def test_oracle_awkward_keys(spark: SparkSession) -> None:
    """Null equals nothing, NaN itself, -0.0 is 0.0, and a key may have a megabyte."""
    texts = [HUGE, HUGE[:-1] + "y", "", None, "ä", HUGE]
    numbers = [float("nan"), -0.0, 0.0, None, 1.5, float("inf")]
    tables = {
        name: pa.table(
            {
                "ts": pa.array([base + i for i in range(6)], pa.timestamp("us", tz="UTC")),
                "text": pa.array(texts[turn:] + texts[:turn]),
                "number": pa.array(numbers[turn:] + numbers[:turn]),
            }
        )
        for name, base, turn in (("a", 0, 0), ("b", 3, 2), ("c", 1, 4))
    }
    frames = {name: spark.createDataFrame(table) for name, table in tables.items()}

    def asked(sources: Mapping[str, object], key: str) -> plait.Join:
        return (
            plait.join(**sources)
            .on(f"a.{key} = b.{key}", f"b.{key} = c.{key}")
            .within("1 second")
            .select("a.ts AS t", "b.ts AS u", f"c.{key}")
        )

    for key in ("text", "number"):
        question = asked(frames, key)
        found = multiset(question.to_df().toArrow().cast(question.query.schema))
        expected = oracle(question.query, tables)
        assert found == expected and expected


def test_oracle_awkward_names(spark: SparkSession) -> None:
    """Regression: Spark took a dot in the name of an input's column for a field of a struct."""
    table = pa.table(
        {
            "ts": pa.array([0, 1, 2], pa.timestamp("us", tz="UTC")),
            "k.x": pa.array([1, 2, 2]),
            "x + a.y": pa.array([1, 0, 5]),
            "a`b": pa.array([7, 8, 9]),
        }
    )
    frames = {"a": spark.createDataFrame(table), "b": spark.createDataFrame(table)}
    question = (
        plait.join(**frames)
        .on("a.`k.x` = b.`k.x`", "a.`x + a.y` > b.`x + a.y`")
        .within("1 second")
        .select("a.`a``b` AS `one.two`", "b.`a``b` AS other")
    )
    found = multiset(question.to_df().toArrow().cast(question.query.schema))
    assert found == oracle(question.query, dict.fromkeys("ab", table)) == {(9, 8): 1}


def test_static_and_streaming_are_not_mixed(spark: SparkSession) -> None:
    static = spark.createDataFrame([(1,)], "k bigint").selectExpr("k", "current_timestamp() AS ts")
    rate = spark.readStream.format("rate").load().selectExpr("value AS k", "timestamp AS ts")
    mixed = plait.join(a=rate, b=static).on("a.k = b.k").within("1 second").select("a.k")
    with pytest.raises(SourceError, match="'b' is a static DataFrame, but 'a' is a stream"):
        mixed.to_df()
    with pytest.raises(TimeColumnError, match="'b' has no timestamp column"):
        plait.join(a=rate, b=static.drop("ts")).on("a.k = b.k").within("1 s").to_df()


def test_explain_says_how_rows_are_divided(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load().selectExpr("value AS k", "timestamp AS ts")
    question = plait.join(a=rate, b=rate).on("a.k = b.k").within("1 second").select("a.k")
    partitioning = question.explain().split("\n\n")[-1]
    assert partitioning.splitlines()[0] == "partitioning over 2 processors"
    assert question.explain(processors=5).endswith("every row goes to one processor")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2", "to explain changes nothing"
