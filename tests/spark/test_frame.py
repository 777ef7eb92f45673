"""Queries on Spark give what the oracle says, across batches, plans, restarts and processors."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import plait
from plait.api.join import Join
from plait.errors import CheckpointMismatch, PlanError
from plait.node.reports.progress import Progress
from plait.spark.control.progress import reports_of
from plait.testing.oracle.answer import Result, multiset, oracle, split_late

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

Batches = Sequence[dict[str, pa.Table]]
SCHEMAS = {
    "trades": pa.schema([("ts", pa.timestamp("us")), ("sym", pa.string()), ("price", pa.int64())]),
    "quotes": pa.schema([("ts", pa.timestamp("us")), ("sym", pa.string()), ("venue", pa.int32())]),
    "fees": pa.schema([("ts", pa.timestamp("us")), ("venue", pa.int64()), ("fee", pa.float64())]),
}


def made(batches: int, rows: int, seed: int) -> Batches:
    """Rows of all streams, somewhat out of order, with nulls and a few rows that come too late."""
    rng = np.random.default_rng(seed)

    def column(field: pa.Field, times: list[int]) -> pa.Array:
        n = len(times)
        if pa.types.is_timestamp(field.type):
            return pa.array(times, field.type)
        values = rng.integers(0, 4, n).tolist()
        if pa.types.is_string(field.type):
            values = ["ABCD"[v] for v in values]
        nulls = rng.random(n) < 0.05
        return pa.array([None if x else v for v, x in zip(values, nulls, strict=True)], field.type)

    found = []
    for b in range(batches):
        tables = {}
        for name, schema in SCHEMAS.items():
            n = int(rng.integers(0, rows))
            times = (b * 10_000_000 + rng.integers(-8_000_000, 10_000_000, n)).tolist()
            tables[name] = pa.table([column(f, times) for f in schema], schema=schema)
        found.append(tables)
    return found


def streams(spark: SparkSession, where: Path, batches: Batches) -> dict[str, DataFrame]:
    """Streaming DataFrames that deliver one file of each stream in every batch.

    A query may be reading the folders already: a file appears in one step, with its final time.
    Spark would read a file half, or take one with an older time than it has seen for history.
    """
    for number, tables in enumerate(batches):
        for name, table in tables.items():
            (where / name).mkdir(parents=True, exist_ok=True)
            path = where / name / f"{number:03}.parquet"
            if not path.exists():
                new = where / f"new-{name}"
                pq.write_table(table, new)
                os.utime(new, (1_700_000_000 + number, 1_700_000_000 + number))
                new.rename(path)
    return {
        name: spark.readStream.schema(spark.read.parquet(str(where / name)).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(where / name))
        for name in SCHEMAS
    }


def asked(sources: Mapping[str, DataFrame | pa.Schema]) -> Join:
    """Trades and quotes share a symbol, quotes and fees a venue: two key classes."""
    return (
        plait.join(**sources)
        .watermark("5 seconds")
        .on("trades.sym = quotes.sym", "quotes.venue = fees.venue", "trades.price >= quotes.venue")
        .within("6 seconds")
        .select("trades.ts", "trades.sym", "price", "quotes.venue", "fee")
    )


def start(frame: DataFrame, where: Path) -> StreamingQuery:
    """Start a query that ends when the input is used up."""
    writer = frame.writeStream.format("parquet").option("path", str(where / "out"))
    writer = writer.option("checkpointLocation", str(where / "checkpoint"))
    return writer.trigger(availableNow=True).start()


def run(frame: DataFrame, where: Path) -> list[dict[str, object]]:
    """Run until the input is used up; the reports of all processors in all batches."""
    query = start(frame, where)
    query.awaitTermination()
    return [asdict(report) for event in query.recentProgress for report in reports_of(event)]


def written(spark: SparkSession, where: Path, schema: pa.Schema) -> Counter[Result]:
    return multiset(spark.read.parquet(str(where / "out")).toArrow().cast(schema))


def answer(batches: Batches) -> tuple[Counter[Result], int]:
    """By definition: the results, and how many rows are late."""
    query = asked(SCHEMAS).query
    rows = [{n: t.to_pylist() for n, t in tables.items()} for tables in batches]
    on_time, late = split_late(query, rows)
    return oracle(query, on_time), sum(map(len, late.values()))


@pytest.mark.parametrize("plan", [None, "((trades quotes) fees)", "teddies"])
def test_oracle_batches_and_a_restart(
    spark: SparkSession, tmp_path: Path, plan: str | None
) -> None:
    batches = made(batches=6, rows=60, seed=3)
    expected, late = answer(batches)
    assert late and expected.total() > 100, "a history that shows something"
    reports = []
    for arrived in (batches[:3], batches):
        frames = streams(spark, tmp_path / "in", arrived)
        question = asked(frames)
        if plan == "teddies":
            frame = question.engine("teddies", policy="lottery").to_df()
        else:
            frame = question.to_df(plan=plan)
        reports += run(frame, tmp_path)
    assert written(spark, tmp_path, question.query.schema) == expected
    assert any(report["rebuilt"] for report in reports), "the restart found its state"
    assert sum(int(str(report["results"])) for report in reports) == expected.total()


def test_a_checkpoint_of_another_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    batches = made(batches=2, rows=30, seed=5)
    run(asked(streams(spark, tmp_path / "in", batches[:1])).to_df(), tmp_path)
    other = asked(streams(spark, tmp_path / "in", batches)).within("3 seconds")
    with pytest.raises(StreamingQueryException) as refused:
        run(other.to_df(), tmp_path)
    reason = plait.spark.why(refused.value)
    assert isinstance(reason, CheckpointMismatch)
    assert "bounds was all within 6 s and is now all within 3 s; tell the query" in str(reason)
    with pytest.warns(UserWarning, match="4 processors, but spark.sql.shuffle.partitions is 2"):
        more = asked(streams(spark, tmp_path / "in", batches)).to_df(processors=4)
    with pytest.raises(StreamingQueryException, match="processors was 2 and is now 4"):
        run(more, tmp_path)


def test_oracle_the_session_keeps_its_number_of_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = made(batches=3, rows=60, seed=3)
    expected, _ = answer(batches)
    frames = streams(spark, tmp_path / "in", batches[:2])
    with pytest.raises(PlanError), pytest.warns(UserWarning, match="share 2 tasks"):
        asked(frames).to_df(processors=5, name="refused").selectExpr("1")
        asked(frames).to_df(plan="(trades quotes)", processors=5)
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    with plait.spark.partitions(spark, 3) as count:
        assert count == 3
        query = start(asked(frames).to_df(), tmp_path)
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    query.awaitTermination()
    state = tmp_path / "checkpoint" / "state" / "0"
    assert sorted(p.name for p in state.iterdir() if p.name.isdigit()) == ["0", "1", "2"]
    assert set(plait.attach(query).progress().plans) == {0, 1, 2}
    # It goes on with the number in the checkpoint, whatever the session says.
    question = asked(streams(spark, tmp_path / "in", batches))
    frame = question.to_df(processors=3, checkpoint=str(tmp_path / "checkpoint"))
    run(frame, tmp_path)
    assert written(spark, tmp_path, question.query.schema) == expected


def test_rows_set_aside_and_progress(spark: SparkSession, tmp_path: Path) -> None:
    batches = made(batches=3, rows=60, seed=3)
    first = batches[0]["trades"]
    timeless = first.slice(0, 2).set_column(0, "ts", pa.nulls(2, SCHEMAS["trades"][0].type))
    batches[0]["trades"] = pa.concat_tables([first, timeless])
    expected, late = answer(batches)
    question = asked(streams(spark, tmp_path / "in", batches))
    found: list[pa.Table] = []
    aside: list[dict[str, Any]] = []
    shown: list[tuple[str, Progress]] = []
    stop = plait.spark.listen(spark, lambda name, progress: shown.append((name, progress)))
    query = (
        question.to_df(late="rejected")
        .writeStream.foreachBatch(
            plait.spark.each_batch(
                lambda rows, _: found.append(rows.toArrow()),
                lambda rows, _: aside.extend(row.asDict(recursive=True) for row in rows.collect()),
                column="rejected",
            )
        )
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .queryName("watched")
        .start()
    )
    query.awaitTermination()
    deadline = time.monotonic() + 30
    while len(shown) < len(batches) and time.monotonic() < deadline:
        time.sleep(0.05)  # Spark tells listeners a little later
    stop()
    assert multiset(pa.concat_tables(found).cast(question.query.schema)) == expected
    reasons = Counter((row["stream"], row["reason"]) for row in aside)
    assert reasons["trades", "no event time"] == 2
    assert 0 < sum(n for (_, why), n in reasons.items() if why == "late") <= late
    nulls = [row for row in aside if row["reason"] == "null key" and row["stream"] == "fees"]
    assert nulls and all(row["fees"]["venue"] is None for row in nulls)
    assert all(row["trades"] is None and row["event_time"] == row["fees"]["ts"] for row in nulls)

    progress = plait.attach(query).progress()
    total = progress.total
    assert progress.processed == 3 and [batch.number for batch in progress.batches] == [0, 1, 2]
    assert total.results == expected.total()
    assert total.rows == {n: sum(len(b[n]) for b in batches) for n in SCHEMAS}
    for reason, counts in (
        ("late", total.late),
        ("no event time", total.null_times),
        ("null key", total.null_keys),
    ):
        assert counts == {s: n for (s, why), n in reasons.items() if why == reason}
    assert progress.state_rows and progress.state_bytes and total.written_bytes
    assert set(progress.plans) == set(total.routed) == {0, 1}
    assert [b.counted.results for b in progress.batches] == [table.num_rows for table in found]
    names, heard = zip(*shown, strict=True)
    assert set(names) == {"watched"} and heard[-1].total == total
