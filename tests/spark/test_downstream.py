"""The result is an ordinary streaming DataFrame: watermarks and aggregations go on top of it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # the name everybody uses

import plait
from plait.errors import DuplicateName
from plait.query.query import NEVER_LATE
from plait.spark.join import frame
from plait.spark.join.watermarks import watermark_delays, without_watermark

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64())])
SECOND = 1_000_000


def stream(spark: SparkSession, where: Path, batches: list[list[tuple[int, int]]]) -> DataFrame:
    """A streaming DataFrame with one file, rows of (second, key), in every batch."""
    where.mkdir()
    for n, rows in enumerate(batches):
        columns = [pa.array([t * SECOND for t, _ in rows], SCHEMA[0].type), [k for _, k in rows]]
        pq.write_table(pa.table(columns, schema=SCHEMA), where / f"{n}.parquet")
        os.utime(where / f"{n}.parquet", (1_700_000_000 + n, 1_700_000_000 + n))
    reader = spark.readStream.schema("ts timestamp, k bigint").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(where))


def test_a_windowed_count_of_results_over_watermarked_inputs(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [[(10 * n + i, i % 2) for i in range(10)] for n in range(3)]
    a = stream(spark, tmp_path / "a", batches).withWatermark("ts", "3 seconds")
    b = stream(spark, tmp_path / "b", batches)
    asked = plait.join(a=a, b=b).on("a.k = b.k").within("2 seconds").select("a.ts", "a.k")
    asked = asked.watermark(b="0 seconds")
    assert asked.query.streams[0].delay == 3 * SECOND, "the watermark of the input is taken over"
    assert asked.result_delay("a") == "4000 milliseconds"
    results = asked.to_df().withWatermark("ts", asked.result_delay("a"))
    counts = results.groupBy(F.window("ts", "5 seconds").alias("w")).count()
    running = (
        counts.selectExpr("unix_seconds(w.start) AS start", "count")
        .writeStream.format("memory")
        .queryName("counted")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    found = {row["start"]: row["count"] for row in spark.table("counted").collect()}
    rows = [row for batch in batches for row in batch]
    expected = Counter(t // 5 * 5 for t, k in rows for u, j in rows if k == j and abs(t - u) <= 2)
    closed = {start: n for start, n in expected.items() if start + 5 <= 29 - 4}
    assert found == closed and len(closed) == 5


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().analyzed().toString())


def test_which_watermarks_can_be_taken_out(spark: SparkSession, tmp_path: Path) -> None:
    frame = stream(spark, tmp_path / "a", [[(1, 1)]]).withWatermark("ts", "3 seconds")
    above = frame.where("k > 0").select("ts", (F.col("k") + 1).alias("k")).unionAll(frame)
    assert "EventTimeWatermark" in plan(above)
    assert "EventTimeWatermark" not in plan(without_watermark(above))
    assert watermark_delays(above) == {"ts": 3 * SECOND}
    needed = frame.dropDuplicatesWithinWatermark(["k"])
    assert "EventTimeWatermark" in plan(without_watermark(needed)), "its operator needs it"


def test_sql_takes_watermarks_over_too(spark: SparkSession, tmp_path: Path) -> None:
    frame = stream(spark, tmp_path / "a", [[(1, 1)]])
    frame.withWatermark("ts", "3 seconds").createOrReplaceTempView("marked")
    frame.createOrReplaceTempView("plain")
    assert "EventTimeWatermark" in plan(spark.table("marked"))
    assert "EventTimeWatermark" not in plan(without_watermark(spark.table("marked")))
    text = "SELECT m.k FROM marked m JOIN plain p ON m.k = p.k WITHIN 2 SECONDS"
    delays = [s.delay for s in plait.sql(spark, text).query.streams]
    assert delays == [3 * SECOND, NEVER_LATE]
    said = plait.sql(spark, text, watermark={"m": "1 second"})
    assert [s.delay for s in said.query.streams] == [SECOND, NEVER_LATE]


def test_a_join_of_joins_with_a_stream_that_is_idle(spark: SparkSession, tmp_path: Path) -> None:
    """The second join reads the results of the first, whose b falls silent after one batch."""
    rows = [[(10 * n + i, i % 2) for i in range(4)] for n in range(2)]
    a, c = stream(spark, tmp_path / "a", rows), stream(spark, tmp_path / "c", rows)
    b = stream(spark, tmp_path / "b", rows[:1])
    first = plait.join(a=a, b=b).idle(b="1 ms").on("a.k = b.k").within("2 s").select("a.ts", "a.k")
    first = first.watermark("0 seconds")
    second = (
        plait.join(ab=first.to_df(), c=c)
        .watermark("30 seconds")
        .on("ab.k = c.k")
        .within("1 s")
        .select("ab.ts", "c.ts AS other")
    )
    running = (
        second.to_df(name="second")
        .writeStream.format("memory")
        .queryName("joined")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    pairs = [(t, k) for t, k in rows[0] for u, j in rows[0] if k == j and abs(t - u) <= 2]
    expected = Counter((t, u) for t, k in pairs for u, j in rows[0] if k == j and abs(t - u) <= 1)
    found = spark.table("joined").selectExpr("unix_seconds(ts)", "unix_seconds(other)").collect()
    assert Counter(map(tuple, found)) == expected
    before, after = plait.attach(running).progress(), plait.attach(running, "second").progress()
    assert before.total.results == len(pairs)
    assert after.total.rows == {"ab": len(pairs), "c": 8}
    assert after.total.results == expected.total()
    assert before.watermarks == {"a": 13 * SECOND, "b": 13 * SECOND}, "b follows a"
    assert before.state_rows < 8, "and holds it back no longer"


def test_reports_that_travel_beside_the_results(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where driver and executors share no folder, Spark's `observe` carries the reports."""
    monkeypatch.setattr(frame, "_master", lambda _: "spark://far.away:7077")
    rows = [[(10 * n + i, i % 2) for i in range(4)] for n in range(2)]
    a, b, c = (stream(spark, tmp_path / name, rows) for name in "abc")
    first = plait.join(a=a, b=b).on("a.k = b.k").within("2 s").select("a.ts", "a.k").to_df()
    second = plait.join(ab=first, c=c).on("ab.k = c.k").within("1 s").select("ab.ts")
    with pytest.raises(DuplicateName, match="to_df\\(name="):
        second.to_df()
    running = (
        first.writeStream.format("memory")
        .queryName("observed")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    found = plait.attach(running).progress()
    assert found.processed == 2 and found.total.rows == {"a": 8, "b": 8}
    assert found.total.results == spark.table("observed").count() > 0
