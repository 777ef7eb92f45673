"""One Spark session for all tests here; it wants Java 17 or newer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from plait.spark.environment.session import local_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores, two processors, nothing listens beyond this machine."""
    session = local_session(2, memory="1g", scratch=tmp_path_factory.mktemp("spark"))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
