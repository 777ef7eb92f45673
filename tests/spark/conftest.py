"""One Spark session for all tests here; it wants Java 17 or newer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import plait


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores, two processors, nothing listens beyond this machine."""
    session = plait.spark.session(2, memory="1g", scratch=tmp_path_factory.mktemp("spark"))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
