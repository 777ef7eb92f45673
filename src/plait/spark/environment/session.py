"""A Spark session on this machine, set up the way Plait likes it.

Nothing here is needed to use Plait: any session of Spark 4.3 will do. These settings are for
those who have none yet, and for the demo, the benchmarks and the tests. `SETTINGS` says what a
session of one's own should have.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from plait.spark.environment.connect import refuse_remote
from plait.spark.environment.java import provide_java
from plait.spark.environment.settings import BYTECODE, REASONS

SETTINGS: Mapping[str, str] = {
    **{setting: value for setting, (value, _) in REASONS.items()},
    # Event times are instants; say so in the same way everywhere.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Python and Java wait for each other so long on a busy machine, instead of 15 seconds.
    "spark.python.authenticate.socketTimeout": "120s",
    # The process that sets up a stateful operator has 10 seconds to import pyspark, whatever is
    # set. Containers often forbid Python to keep bytecode, and then it compiles all of it first.
    f"spark.executorEnv.{BYTECODE}": "",
}
"""What a session should have for Plait."""

LOCAL: Mapping[str, str] = {
    # Without Hadoop's native library, Spark's usual way to rename a file on a local disk starts
    # `readlink` eight times, and a batch writes a file for every source, log and state store.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
}
"""What is right where checkpoints are on a local disk."""

_PRIVATE: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Nothing listens beyond this machine, and nothing draws on the terminal."""


def session(
    cores: int | None = None,
    *,
    name: str = "plait",
    memory: str = "2g",
    scratch: Path | None = None,
    log: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a local Spark session with one processor per core; all cores unless said otherwise.

        spark = plait.spark.session()

    Where no Java is installed it runs on the one that comes with `plait[java]`. Temporary files go
    to `scratch`, what Spark has to say goes to the file `log` and not to the terminal, and
    `settings` override everything else.
    """
    refuse_remote("plait.spark.session")
    provide_java()
    count = cores or os.cpu_count() or 1
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # `spark.pyspark.python` is not enough: the worker that sets up stateful operators ignores it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {
        **SETTINGS,
        **LOCAL,
        **_PRIVATE,
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(count),
    }
    if scratch is not None:
        chosen["spark.local.dir"] = str(scratch / "local")
        chosen["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
    builder = SparkSession.builder.master(f"local[{count}]").appName(name)
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    with _errors_to(log):
        started: SparkSession = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR" if log is None else "WARN")
    return started


@contextmanager
def _errors_to(log: Path | None) -> Iterator[None]:
    """While this lasts, processes that are started write their standard error to a file."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    before = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
