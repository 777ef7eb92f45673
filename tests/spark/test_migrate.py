"""Law 3 on Spark: a running query goes on with other plans, and nothing is lost or repeated."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.test_frame import Batches, answer, asked, made, streams, written

import plait
from plait.errors import MigrationError, UnknownStream
from plait.node.reports.progress import Progress

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

FIRST, SECOND, THIRD = "(trades quotes fees)", "((trades quotes) fees)", "(trades (quotes fees))"


def prompt(batches: int, rows: int, seed: int) -> Batches:
    """Rows that are never late, however the files of the streams come to be batches."""
    tables = made(batches, rows, seed)
    return [
        {
            name: table.filter(pa.compute.greater_equal(table["ts"].cast(pa.int64()), least))
            for name, table in batch.items()
        }
        for batch, least in zip(
            tables, [b * 10_000_000 - 4_000_000 for b in range(batches)], strict=True
        )
    ]


def start(frame: DataFrame, where: Path) -> StreamingQuery:
    writer = frame.writeStream.format("parquet").option("path", str(where / "out"))
    return writer.option("checkpointLocation", str(where / "checkpoint")).start()


def progress(query: StreamingQuery, batches: int) -> Progress:
    """The progress after so many batches; Spark tells it a moment after it has done them."""
    until = time.monotonic() + 60
    while (
        found := plait.attach(query).progress()
    ).processed < batches and time.monotonic() < until:
        time.sleep(0.1)
    return found


def test_oracle_plans_change_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    batches = prompt(batches=9, rows=60, seed=3)
    expected, late = answer(batches)
    assert not late and expected.total() > 100, "a history that shows something"
    coming: Iterator[int] = iter(range(1, len(batches) + 1))

    def arrive() -> dict[str, DataFrame]:
        return streams(spark, tmp_path / "in", batches[: next(coming)])

    question = asked(arrive())
    checkpoint = str(tmp_path / "checkpoint")
    query = start(question.to_df(plan=FIRST, checkpoint=checkpoint), tmp_path)
    try:
        query.processAllAvailable()
        assert plait.attach(query).migrate(SECOND) == 1
        for _ in range(2):
            arrive()
            query.processAllAvailable()
        found = progress(query, 3)
        assert set(found.plans.values()) == {SECOND} and set(found.epochs.values()) == {1}
        assert {m["status"] for _, m in found.migrations} == {"done"}
        assert plait.attach(query).migrate(THIRD, "parallel-track") == 2
        for _ in range(3):
            arrive()
            query.processAllAvailable()
        found = progress(query, 6)
        assert set(found.plans.values()) == {THIRD} and set(found.epochs.values()) == {2}
        tracks = [m for _, m in found.migrations if m["strategy"] == "parallel-track"]
        assert tracks and {m["status"] for m in tracks} == {"done"}
        assert "by parallel track: done" in str(found)
        with pytest.raises(UnknownStream, match="news"):
            plait.attach(query).migrate("((trades news) fees)")
        with pytest.raises(MigrationError, match=r"'moving'.*did you mean 'moving-state'"):
            plait.attach(query).migrate(FIRST, "moving")  # type: ignore[arg-type]  # wrong on purpose
        arrive()
        query.processAllAvailable()
    finally:
        query.stop()
    with pytest.raises(MigrationError, match="has stopped"):
        plait.attach(query).migrate(FIRST)
    again = start(asked(arrive()).to_df(plan=FIRST, checkpoint=checkpoint), tmp_path)
    try:
        arrive()
        again.processAllAvailable()
        found = progress(again, 9)
        assert set(found.plans.values()) == {THIRD}, "a restart goes on with the last plan"
    finally:
        again.stop()
    assert written(spark, tmp_path, question.query.schema) == expected


def test_oracle_a_restart_with_a_new_control_directory_obeys(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Without `checkpoint`, every start has a directory of its own, whose numbers begin anew."""
    batches = prompt(batches=6, rows=60, seed=5)
    expected, late = answer(batches)
    assert not late and expected.total() > 100, "a history that shows something"
    coming: Iterator[int] = iter(range(1, len(batches) + 1))

    def arrive() -> dict[str, DataFrame]:
        return streams(spark, tmp_path / "in", batches[: next(coming)])

    question = asked(arrive())
    query = start(question.to_df(), tmp_path)
    try:
        query.processAllAvailable()
        assert [plait.attach(query).migrate(plan) for plan in (SECOND, FIRST, SECOND)] == [1, 2, 3]
        arrive()
        query.processAllAvailable()
        found = progress(query, 2)
        assert set(found.plans.values()) == {SECOND} and set(found.epochs.values()) == {3}
    finally:
        query.stop()
    again = start(asked(arrive()).to_df(), tmp_path)
    try:
        again.processAllAvailable()
        found = progress(again, 3)
        assert set(found.plans.values()) == {SECOND} and not found.events, "it is still held"
        assert plait.attach(again).migrate(THIRD) == 4, "the number goes on from what was reported"
        arrive()
        again.processAllAvailable()
        found = progress(again, 4)
        assert set(found.plans.values()) == {THIRD} and set(found.epochs.values()) == {4}
        assert plait.attach(again).release() == 5
        for _ in range(2):
            arrive()
            again.processAllAvailable()
        assert set(progress(again, 6).epochs.values()) == {5}
    finally:
        again.stop()
    assert written(spark, tmp_path, question.query.schema) == expected
