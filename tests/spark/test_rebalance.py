"""A stopped query goes on with another number of processors, and nothing is lost or repeated."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.test_moves import Story

from plait.errors import CheckpointDamaged, CheckpointMismatch, MoveError
from plait.hosts.spark.moves import moves_of
from plait.hosts.spark.rebalance import rebalance

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
