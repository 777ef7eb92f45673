"""Processors on Spark change their plans by themselves, say why, and lose and repeat nothing."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.adapt.conftest import QUERY, batches

import plait
from plait.adapt.replay import replay
from plait.api.join import Join
from plait.local.host import LocalRun
from plait.node.reports.event_log import read_events
from plait.testing.oracle.answer import Result, multiset

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

POLICY = plait.PlanPolicy(sampling=0.5, effort=1.0, confidence=0.7)
"""Batches are small here: a share of their time is not enough to learn anything."""


def asked(spark: SparkSession, where: Path, tables: list[dict[str, pa.Table]]) -> Join:
    for number, batch in enumerate(tables):
        for name, table in batch.items():
            path = where / name / f"{number:03}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    schemas = {"s0": "k long", "s1": "k long, m long", "s2": "m long"}
    frames = {
        name: spark.readStream.schema(f"{keys}, ts timestamp_ntz, v long")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(where / name))
        for name, keys in schemas.items()
    }
    return (
        plait.join(**frames)
        .time(s0="ts", s1="ts", s2="ts")
        .watermark("0 seconds")
        .on("s0.k = s1.k", "s1.m = s2.m")
        .within("4 seconds")
        .select("s0.k", "s0.ts", "s1.v", "s2.m")
    )


def test_oracle_processors_adapt_on_their_own(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(16, lambda s: "k" if s < 6 else "m")
    question = asked(spark, tmp_path / "in", tables).adapt(POLICY)
    checkpoint = tmp_path / "checkpoint"
    frame = question.to_df(checkpoint=str(checkpoint))
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out")).toArrow().cast(question.query.schema)
    run = LocalRun(question.query)
    wanted: Counter[Result] = Counter()
    for batch in tables:
        wanted += multiset(run.push(batch))
    assert multiset(rows) == wanted and wanted.total() > 1000
    events = read_events(checkpoint / "plait" / "join" / "events")
    moved = [event for event in events if event.kind == "migrated"]
    assert {event.processor for event in moved} == {0, 1}, "each processor decides for itself"
    assert max(event.batch for event in moved) > 6, "the flip was noticed"
    assert list(replay(events)), "the log can be decided on again"
    progress = plait.attach(query).progress()
    assert any(event.kind == "migrated" for event in progress.events)
    assert "is predicted to take" in str(progress)
    assert "(s0 (s1 s2))" not in progress.plans.values(), "the plan of the beginning is left"


def test_a_plan_that_is_given_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(6, lambda _: "k")
    question = asked(spark, tmp_path / "in", tables)
    frame = question.to_df(plan="((s0 s1) s2)", checkpoint=str(tmp_path / "checkpoint"))
    writer: Any = frame.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.awaitTermination()
    progress = plait.attach(query).progress()
    assert set(progress.plans.values()) == {"((s0 s1) s2)"} and not progress.events
    assert QUERY.names == question.query.names
