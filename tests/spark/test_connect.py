"""Spark Connect: clients without a JVM, and a server in a process of its own on loopback."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from tests.spark.three_streams import joined, results_of, write_streams

import plait
from plait.spark.environment.java import provide_java
from plait_lab.torture.spark.campaign import sink_files

pytestmark = [
    pytest.mark.integration,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(find_spec("grpc") is None, reason="pip install 'plait[connect]'"),
]

_CLIENT = Path(__file__).with_name("connect_client.py")
_SPARK = Path(pyspark.__file__).parent
_ONLY_WITH_A_JVM = {"bin", "core", "jars", "mllib", "python", "sbin"}
"""Parts of pyspark that `pyspark-client` does not have."""
_PATIENCE = 300.0
_SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Connect server; its URL."""
    where = tmp_path_factory.mktemp("server")
    provide_java()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = _SETTINGS | {
        "spark.connect.grpc.binding.port": str(port),
        "spark.local.dir": str(where / "local"),
        "spark.sql.warehouse.dir": str(where / "warehouse"),
    }
    command = [str(_SPARK / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--driver-memory", "1g"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"},
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(_SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (where / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "spark-internal"],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=where,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + _PATIENCE
        while not _answers(port):
            assert process.poll() is None and time.monotonic() < end, (where / "log").read_text()
            time.sleep(0.3)
        yield f"sc://127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, SIGKILL)
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def client(server: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a client: no Java, no py4j, and no more of pyspark than clients have."""
    where = tmp_path_factory.mktemp("client")
    (where / "pyspark").mkdir()
    for part in _SPARK.iterdir():
        if part.name not in _ONLY_WITH_A_JVM:
            (where / "pyspark" / part.name).symlink_to(part)
    (where / "py4j").mkdir()
    (where / "py4j" / "__init__.py").write_text("raise ImportError('a client has no py4j')\n")
    packages = [str(where), str(Path(plait.__file__).parents[1])]
    kept = {n: v for n, v in os.environ.items() if n not in ("JAVA_HOME", "SPARK_HOME")}
    return kept | {
        "PATH": str(Path(sys.executable).parent),
        "PYTHONPATH": os.pathsep.join(packages),
        "SPARK_REMOTE": server,
    }


def _run(client: Mapping[str, str], *command: str) -> dict[str, Any]:
    done = subprocess.run(
        command, env=client, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def _written(out: Path) -> Counter[tuple[int, ...]]:
    """What the file sink's log says is there."""
    read = [pq.read_table(path, partitioning=None) for path in sink_files(out)]
    return results_of(pa.concat_tables([t.cast(read[0].schema) for t in read]))


def test_oracle_a_client_without_a_jvm_does_everything_with_a_query(
    client: Mapping[str, str], tmp_path: Path
) -> None:
    first = write_streams(tmp_path, range(2), 1)
    later = write_streams(tmp_path / "later", range(2, 5), 2)
    told = _run(client, sys.executable, str(_CLIENT), str(tmp_path), "steps")
    assert not told["jvm"] and not told["py4j"]
    assert told["check"], "plait.spark.doctor finds nothing wrong"
    assert told["epoch"] == 1 and told["released"] == 2 and told["move"] == 1
    answer = joined(first, later)
    assert answer.total() > 100
    assert _written(tmp_path / "out") == answer
    assert told["total"] == told["heard"] == answer.total()
    assert told["delta"] == 0, "tasks of write_delta are not told of which query they are"
    from deltalake import DeltaTable

    table = results_of(DeltaTable(str(tmp_path / "table")).to_pyarrow_table())
    assert table == answer + answer, "of two queries, neither takes the other's batches for its own"
    refused = told["refused"]
    assert refused["session"].startswith("MissingRequirement: plait.spark.session starts")
    assert "SparkSession.builder.getOrCreate()" in refused["session"]
    assert refused["column"].startswith("QueryError: a Column of Spark Connect cannot be read")
    assert refused["other schema"].startswith(f"TableMismatch: the Delta table {tmp_path}/table")


def test_what_a_client_leaves_is_shown_and_rebalanced_only_with_a_spark_here(
    client: Mapping[str, str], tmp_path: Path
) -> None:
    """The console and reports read files; `plait query rebalance` needs a Spark in its process."""
    write_streams(tmp_path, range(4), 4)
    told = _run(client, sys.executable, str(_CLIENT), str(tmp_path), "elsewhere")
    assert told["sees"] and not told["migrate"]
    check, page = str(tmp_path / "check"), tmp_path / "page.html"
    command = [sys.executable, "-m", "plait", "query", "report", check, "--out", str(page)]
    subprocess.run(command, env=client, check=True, capture_output=True, timeout=120)
    assert "((a b) c)" in page.read_text(encoding="utf-8")
    command = [sys.executable, "-m", "plait", "query", "rebalance", check]
    command += ["-p", "3", "--sink", "none"]
    done = subprocess.run(
        command, env=client, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0 and "SPARK_REMOTE" in done.stderr, done.stderr


def test_oracle_a_client_that_does_not_see_the_checkpoint_goes_on_from_it(
    client: Mapping[str, str], tmp_path: Path
) -> None:
    """Another host: the client has an empty file system over the server's folder."""
    unshare = shutil.which("unshare")
    hidden = f"mount -t tmpfs none {tmp_path}"
    if unshare is None or os.system(f"{unshare} -m sh -c '{hidden}' 2>/dev/null"):
        pytest.skip("this user cannot make a mount namespace")
    mount = shutil.which("mount")
    rows = write_streams(tmp_path, range(3), 3)
    script = f'{mount} -t tmpfs none "$1" && exec "$0" "{_CLIENT}" "$1" elsewhere'
    command = [unshare, "-m", "/bin/sh", "-c", script, sys.executable, str(tmp_path)]
    for turn in range(2):
        told = _run(client, *command)
        assert not told["sees"]
        assert "and with Spark Connect the client too" in told["migrate"]
        if turn == 0:
            more = write_streams(tmp_path, range(3, 6), 5)
    answer = joined(rows, more)
    assert _written(tmp_path / "out") == answer and answer.total() > 100
