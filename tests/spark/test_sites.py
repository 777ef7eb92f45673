"""Sites on Spark: the answer is that of the definition, in one application and in several."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.feeds import Feeds, found_in, placed_at

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


def test_oracle_all_sites_in_one_application(spark: SparkSession, tmp_path: Path) -> None:
    feeds = Feeds(tmp_path / "feeds")
    placed = placed_at(spark, feeds.folder, results="rome")
    query = placed.start(mailbox=tmp_path / "box", checkpoint=tmp_path / "checkpoint")
    for number in range(3):
        feeds.write(number)
    query.processAllAvailable()
    rest = query.lastProgress.batchId
    query.stop()
    found = found_in(spark, placed.to_df(tmp_path / "box"), tmp_path)
    assert found == feeds.wanted(placed)
    assert sum(found.values()) > 100
    progress = placed.progress(tmp_path / "box")
    print(progress, rest)
    assert progress.results == sum(found.values())
