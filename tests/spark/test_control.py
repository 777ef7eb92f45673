"""A control directory that is damaged, full or gone costs what it would tell, never results."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.test_frame import answer, asked, streams, written
from tests.spark.test_migrate import SECOND, THIRD, prompt, start

import plait
from plait.node.reports.progress import Progress

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


def told(query: StreamingQuery, said: Callable[[Progress], bool]) -> Progress:
    """The progress that says so; Spark tells it a moment after a batch is done."""
    until = time.monotonic() + 60
    while not said(found := plait.attach(query).progress()) and time.monotonic() < until:
        time.sleep(0.1)
    assert said(found), str(found)
    return found


def test_oracle_the_query_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    batches = prompt(batches=5, rows=60, seed=7)
    expected, late = answer(batches)
    assert not late and expected.total() > 100, "a history that shows something"
    coming: Iterator[int] = iter(range(1, len(batches) + 1))

    def arrive() -> dict[str, DataFrame]:
        return streams(spark, tmp_path / "in", batches[: next(coming)])

    question = asked(arrive()).adapt(plait.PlanPolicy())
    checkpoint = tmp_path / "checkpoint"
    query = start(question.to_df(checkpoint=str(checkpoint)), tmp_path)
    folder = checkpoint / "plait" / "join"
    reports = folder / "reports" / str(query.id)
    try:
        query.processAllAvailable()
        assert plait.attach(query).migrate(SECOND) == 1
        (folder / "epochs" / "000002.json").write_text('{"number": 2, "str')
        (folder / "epochs" / "000002.json~").write_text("a backup")
        (folder / "epochs" / "000003.json").mkdir()
        arrive()
        query.processAllAvailable()
        found = told(query, lambda now: set(now.plans.values()) == {SECOND})
        assert "000002.json was skipped: it is no JSON" in str(found)

        shutil.rmtree(reports)
        reports.write_text("a file where the folder was")
        arrive()
        query.processAllAvailable()
        reports.unlink()
        shutil.rmtree(folder / "events")
        (folder / "events").write_text("a file where the folder was")
        assert plait.attach(query).progress().unreported, (
            "what was removed, and what could not be written"
        )
        arrive()
        query.processAllAvailable()
        found = told(query, lambda now: bool(now.total.unwritten))
        assert found.total.unwritten["reports"] in (2, 4, 6), "one of each processor and batch"
        assert f"could not be written: {reports}" in str(found)
        unwritten = found.total.unwritten
        assert plait.attach(query).migrate(THIRD) == 4
        shutil.rmtree(reports)
        arrive()
        query.processAllAvailable()
        found = told(query, lambda now: set(now.plans.values()) == {THIRD})
        assert found.total.unwritten == unwritten
    finally:
        query.stop()
    assert written(spark, tmp_path, question.query.schema) == expected
