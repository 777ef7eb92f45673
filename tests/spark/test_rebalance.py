"""A stopped query goes on with another number of processors, and nothing is lost or repeated."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from pyspark.sql import SparkSession
from tests.spark.interruption import interrupted
from tests.spark.test_moves import Story

import plait
from plait.errors import CheckpointDamaged, CheckpointMismatch, MoveError
from plait.spark.balance.moves import moves_of
from plait.spark.balance.rebalance import rebalance
from plait.spark.control.background import THREAD

COMPACT = "spark.sql.streaming.fileSink.log.compactInterval"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


def holders(story: Story) -> set[int]:
    return {p for place in moves_of(story.query).table.places for p in place}


def test_oracle_more_processors_then_fewer_in_the_middle_of_moves(
    spark: SparkSession, tmp_path: Path
) -> None:
    tmp_path /= "of the state"  # Spark reads and divides no state below a path with a space
    tmp_path.mkdir()
    story, checkpoint = Story(spark, tmp_path), str(tmp_path / "checkpoint")
    try:
        story.batch()
        with pytest.raises(MoveError, match="is running; stop it first"):
            rebalance(spark, checkpoint, 3, tmp_path / "out")
        story.query.stop()
        with pytest.raises(MoveError, match="is not the output of this query"):
            rebalance(spark, checkpoint, 3, tmp_path)
        assert rebalance(spark, checkpoint, 3, tmp_path / "out") == (2, 2)
        assert rebalance(spark, checkpoint, 3, tmp_path / "out") == (3, 2), "once more: it is done"
        assert story.found().total() > 0, "Spark reads what the file sink has logged"
        with pytest.raises(CheckpointMismatch, match="rebalanced to 3 processors, not to 5"):
            story.start(processors=5)
        story.query = story.start()
        story.until(lambda: len(holders(story)) == 3 and not moves_of(story.query).table.under_way)
        held = [place[0] for place in moves_of(story.query).table.places]
        assert sorted(held.count(p) for p in set(held)) == [42, 43, 43]
        # Groups are on their way when it stops again, and there is a batch without rows.
        moves_of(story.query).begin([g for g, p in enumerate(held) if p == held[0]][:5], [held[-1]])
        story.batch()
        story.batch()
        story.query.stop()
        assert rebalance(spark, checkpoint, 1, tmp_path / "out")[0] == 3
        story.query = story.start()
        story.until(lambda: len(holders(story)) == 1)
        story.batch()
        story.query.stop()
        assert story.found() == story.wanted() and story.found().total() > 500
        (tmp_path / "checkpoint" / "plait" / "join" / "rebalanced.json").write_text("{}")
        with pytest.raises(CheckpointDamaged, match=r"rebalanced\.json cannot be read"):
            story.start()
    finally:
        story.query.stop()


def partitions(checkpoint: Path) -> int:
    """How many Spark has in its newest batch."""
    newest = max((p for p in (checkpoint / "offsets").glob("[0-9]*")), key=lambda p: int(p.name))
    told = json.loads(newest.read_text().splitlines()[1])
    return int(told["conf"]["spark.sql.shuffle.partitions"])


@pytest.fixture
def compacting(spark: SparkSession) -> Iterator[None]:
    """The file sink compacts its log every third batch."""
    spark.conf.set(COMPACT, 3)
    yield
    spark.conf.unset(COMPACT)


@pytest.mark.usefixtures("compacting")
@pytest.mark.parametrize("then", ["the query starts", "it is run again"])
def test_oracle_interrupted_at_each_write(
    spark: SparkSession, tmp_path: Path, then: Literal["the query starts", "it is run again"]
) -> None:
    story, checkpoint, out = Story(spark, tmp_path), tmp_path / "checkpoint", tmp_path / "out"
    instants: list[str] = []
    try:
        story.batch()
        while "" not in instants:
            story.query.stop()
            other = 5 - partitions(checkpoint)
            with interrupted(checkpoint, instants) as found:
                rebalance(spark, str(checkpoint), other, out)
            instants.append(found.at)
            if then == "it is run again":
                rebalance(spark, str(checkpoint), other, out)
                assert partitions(checkpoint) == other, found.at
            story.query = story.start()
            story.batch()
            story.batch()
            assert story.found() == story.wanted(), found.at
    finally:
        story.query.stop()
    assert {"before the state is divided", "before commit N", "after commit N"} <= {*instants}
    assert len(list((out / "_spark_metadata").glob("*.compact"))) > 2
    assert story.found().total() > 500


@pytest.mark.usefixtures("compacting")
def test_oracle_killed_while_the_state_is_divided(spark: SparkSession, tmp_path: Path) -> None:
    story, checkpoint, out = Story(spark, tmp_path), tmp_path / "checkpoint", tmp_path / "out"
    story.batch()
    story.query.stop()
    THREAD.stop(str(checkpoint / "plait" / "join"))
    command = [sys.executable, "-m", "plait", "query", "rebalance", str(checkpoint)]
    command += ["--processors", "3", "--sink", str(out)]
    # Java is a child of the command: both are in a group of their own, and die together.
    killed = subprocess.Popen(command, start_new_session=True)
    try:
        while not (checkpoint / "offsets" / "2").exists():
            assert killed.poll() is None, "it ended before it began"
            time.sleep(0.01)
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    assert not (checkpoint / "commits" / "2").exists(), "it was killed in time"
    query = story.spark.readStream.schema("v LONG").parquet(str(tmp_path / "a"))
    untold = query.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    with pytest.raises(Exception, match="UNFINISHED_REPARTITION"):
        untold.processAllAvailable()
    assert "run plait query rebalance again" in str(plait.attach(untold).why())
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "has 3 partitions" in " ".join(again.stdout.split())
    assert (out / "_spark_metadata" / "2.compact").exists(), "as the query would have written it"
    try:
        story.query = story.start()
        story.until(lambda: len(holders(story)) == 3 and not moves_of(story.query).table.under_way)
        story.batch()
    finally:
        story.query.stop()
    assert story.found() == story.wanted() and story.found().total() > 100


def test_what_cannot_be_rebalanced_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    def refused(path: str, why: str) -> None:
        with pytest.raises((MoveError, CheckpointMismatch), match=why):
            rebalance(spark, path, 3, None)

    refused("s3://somewhere/checkpoint", "is not in the file system of this machine")
    refused(str(tmp_path / "nothing"), "is not the checkpoint of a query that has run")
    story, checkpoint = Story(spark, tmp_path), tmp_path / "checkpoint"
    story.batch()
    story.query.stop()
    unfinished = tmp_path / "unfinished"
    shutil.copytree(checkpoint, unfinished)
    for log in (unfinished / "commits").glob("*1*"):
        log.unlink()
    refused(str(unfinished), "was stopped in the middle of batch 1")
    untold = tmp_path / "untold"
    shutil.copytree(checkpoint, untold)
    shutil.rmtree(untold / "plait")
    refused(str(untold), "no join has reported")
