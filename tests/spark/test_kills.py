"""Laws 1 and 5 on Spark: parts of a running query are killed with signal 9, and nothing is lost.

A driver process (see `driver.py`) runs the query; its parts die on order at each point of a batch,
and the whole of it at random times. It is started again until all input is used up. What the sink
has then is what the definition says.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.test_frame import answer, asked, made, streams, written

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

_ROOT = Path(__file__).parents[2]
_MOST_STARTS = 8
_LONGEST_SECONDS = 400.0


class Drivers:
    """Starts driver processes, and ends what it started."""

    def __init__(self, master: str, where: Path) -> None:
        self._master = master
        self._where = where
        self.starts = 0

    def run(self, killed_after: float | None = None) -> None:
        """Run a driver until it ends, or until it is killed some time after it began a batch."""
        self.starts += 1
        with (self._where / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.driver", self._master, str(self._where)],
                cwd=_ROOT,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ
                | {
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_WORKER_DIR": str(self._where / "executors"),
                },
            )
        try:
            if killed_after is not None:
                self._await_driver(process)
                time.sleep(killed_after)
            else:  # one that takes too long is one more to be killed and started again
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LONGEST_SECONDS)
        finally:
            # Its process group: the driver, its JVM, executors and workers.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)

    def _await_driver(self, process: subprocess.Popen[bytes]) -> None:
        mark = self._where / "drivers" / str(process.pid)
        until = time.monotonic() + _LONGEST_SECONDS
        while not mark.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("master", "deaths"),
    [
        (
            "local[2,4]",
            ["begun-worker-1", "joined-worker-2", "written-worker-3", "joined-executor-4"],
        ),
        (
            "local-cluster[2,1,1024]",
            ["begun-executor-1", "joined-worker-2", "joined-executor-3", "written-executor-5"],
        ),
    ],
)
def test_oracle_killed_at_every_point(
    spark: SparkSession, tmp_path: Path, master: str, deaths: list[str]
) -> None:
    chance = random.Random(master)
    batches = made(batches=8, rows=60, seed=11)
    expected, late = answer(batches)
    assert late and expected.total() > 100, "a history that shows something"
    streams(spark, tmp_path / "in", batches)
    (tmp_path / "orders").mkdir()
    for order in deaths:
        (tmp_path / "orders" / order).touch()
    drivers = Drivers(master, tmp_path)
    drivers.run(killed_after=chance.uniform(2.0, 8.0))
    while not (tmp_path / "done").exists() and drivers.starts < _MOST_STARTS:
        drivers.run()
    log = (tmp_path / "log").read_text(errors="replace")
    assert (tmp_path / "done").exists(), log[-3000:]
    assert not list((tmp_path / "orders").iterdir()), "every order was obeyed"
    question = asked({name: spark.read.parquet(str(tmp_path / "in" / name)) for name in batches[0]})
    assert written(spark, tmp_path, question.query.schema) == expected
