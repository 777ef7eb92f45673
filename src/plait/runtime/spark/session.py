"""A Spark session on this machine, set up the way Plait likes it.

Nothing here is needed to use Plait: any session of Spark 4.3 will do. These settings are for
those who have none yet, and for the demo, the benchmarks and the tests. `SETTINGS` says what a
session of one's own should have.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

OLDEST_JAVA = 17
"""The oldest Java that Spark 4 runs on."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SETTINGS: Mapping[str, str] = {
    # transformWithState keeps its state in RocksDB and nowhere else. With changelogs, a batch
    # writes what it changed and not the whole state.
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Event times are instants; say so in the same way everywhere.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""What a session should have for Plait."""

_PRIVATE: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Nothing listens beyond this machine, and nothing draws on the terminal."""


def local_session(
    cores: int | None = None,
    *,
    name: str = "plait",
    memory: str = "2g",
    scratch: Path | None = None,
    log: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session in this process with one processor per core; all cores unless said otherwise.

    Temporary files go to `scratch`, what Spark has to say goes to the file `log` and not to the
    terminal, and `settings` override everything else.
    """
    count = cores or os.cpu_count() or 1
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    chosen = {
        **SETTINGS,
        **_PRIVATE,
        "spark.driver.memory": memory,
        "spark.pyspark.python": sys.executable,
        "spark.sql.shuffle.partitions": str(count),
    }
    if scratch is not None:
        chosen["spark.local.dir"] = str(scratch / "local")
        chosen["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
    builder = SparkSession.builder.master(f"local[{count}]").appName(name)
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    with _errors_to(log):
        session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR" if log is None else "WARN")
    return session


def java_version() -> int | None:
    """The version of the Java that Spark would start; None where there is none.

    Spark takes the one in JAVA_HOME, else the one on the PATH.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return None
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return parse_java_version(said.stderr)


def parse_java_version(text: str) -> int | None:
    """The version that `java -version` tells.

    >>> parse_java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_java_version('java version "1.8.0_402"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return None if found is None else int(found[1])


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
