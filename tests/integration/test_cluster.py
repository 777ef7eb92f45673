"""A join on several hosts that have nothing in common but an object store and Kafka.

Hosts are network namespaces of this machine (`namespaces`, `cluster`). Their processes are killed
and their network is cut while a query runs from Kafka to Kafka, with its checkpoint in the store;
its results are what DuckDB computes. Spark's sink for Kafka writes the messages of a task that is
repeated once more, so after kills those who read the topic drop what they have seen; Plait itself
has counted each result once, and files have each once, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.integration import cluster as clusters
from tests.integration.cluster import BROKER, DRIVER, KAFKA, STORE, Cluster
from tests.spark.three_streams import SECOND, Rows, joined

_MISSING = clusters.missing()
pytestmark = [
    pytest.mark.integration,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING)),
]

_STREAMS = ("a", "b", "c")
_PROCESSORS = 3
_ROWS, _KEYS = 40, 40
"""Rows of a stream in a batch, and their keys."""
_SPAN = 2 * SECOND
"""Of event time in a batch: a parallel track goes on for some of them."""
_SLOW = 4.0
"""Seconds by which every task of a join is longer, so that hosts die in its middle."""
_CUT_SECONDS = 20.0


class DriverProcess:
    """The driver: `tests/integration/cluster_driver.py` on its host."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.disk = cluster.place / DRIVER
        shutil.copy(Path(__file__).with_name("cluster_driver.py"), self.disk / "driver.py")
        archives = ":".join(f"/srv/spark/python/lib/{name}" for name in _libraries())
        command = cluster.command(["environment/bin/python", "driver.py"], {"PYTHONPATH": archives})
        self._log = (self.disk / "driver.log").open("wb")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        settings = {
            **clusters.settings(),
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": str(_PROCESSORS),
            "spark.sql.session.timeZone": "UTC",
        }
        self._write(settings)
        assert self._read() == "ready"

    def ask(self, do: str, **arguments: Any) -> Any:
        """What the driver answers."""
        self._write({"do": do, **arguments})
        told = self._read()
        assert "error" not in told, told["error"]
        return told["answer"]

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()

    def _write(self, value: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, (self.disk / "driver.log").read_text(encoding="utf-8")[-4000:]
        return json.loads(line)


def _libraries() -> list[str]:
    import pyspark

    return os.listdir(Path(pyspark.__file__).parent / "python" / "lib")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverProcess]:
    """A cluster, and a session on it."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster") / "hosts")
    try:
        cluster.start()
        process = DriverProcess(cluster)
        yield process
        process.close()
    finally:
        cluster.stop()


class Story:
    """A query whose input is in Kafka, batch by batch."""

    def __init__(self, driver: DriverProcess, name: str, batches: int, sink: str = "kafka") -> None:
        self.driver, self.name, self.sink = driver, name, sink
        self.last = batches - 1
        chance = Random(name)
        self.rows: Rows = {s: [] for s in _STREAMS}
        for stream in _STREAMS:
            for batch in range(batches):
                self.rows[stream] += sorted(
                    (batch * _SPAN + chance.randrange(_SPAN), chance.randrange(_KEYS))
                    for _ in range(_ROWS)
                )
        topics = {
            f"{name}-{stream}": [{"ts": _iso(ts), "k": k} for ts, k in rows]
            for stream, rows in self.rows.items()
        }
        driver.cluster.messages({"send": {**topics, f"{name}-results": []}})

    def start(self, slow: float = _SLOW) -> None:
        """The query begins."""
        self.driver.ask(
            "start",
            place=f"s3a://bucket/{self.name}",
            topics=self.name,
            rows=_ROWS,
            slow=slow,
            broker=BROKER,
            sink=self.sink,
        )

    def check(self, repeats: bool = False) -> dict[str, Any]:
        """All input is used up, and each result is there once; the progress at the end.

        With `repeats`, messages may have been sent again.
        """
        assert self.driver.ask("wait_for", batch=self.last)["ended"] == self.last
        told: dict[str, Any] = self.driver.ask("progress")
        self.driver.ask("stop")
        found, answer = self._results(), joined(self.rows)
        assert answer.total() > 1000 and max(answer.values()) == 1, "a history that shows something"
        assert found == answer or (repeats and set(found) == set(answer))
        assert told["results"] == answer.total()
        assert told["processed"] == self.last + 1 and told["processors"] == _PROCESSORS
        return told

    def _results(self) -> Counter[tuple[int, ...]]:
        if self.sink != "kafka":
            return Counter(tuple(row) for row in self.driver.ask("results"))
        sent = json.loads(self.driver.cluster.messages({"receive": f"{self.name}-results"}))
        return Counter((v["ts"], v["k"], v["bts"], v["cts"]) for v in sent)


def _iso(micros: int) -> str:
    return datetime.fromtimestamp(micros / SECOND, UTC).isoformat()


def _kill_in(story: Story, batch: int, worker: str) -> None:
    """Kill a host in the middle of a batch: it has begun, and it has not ended."""
    story.driver.ask("wait_in", batch=batch)
    time.sleep(_SLOW / 2)
    story.driver.cluster.hosts[worker].kill()
    told = story.driver.ask("logged")
    assert told["begun"] > told["ended"], "the batch was under way"
    story.driver.cluster.start_worker(worker)


def _under_way(progress: dict[str, Any]) -> bool:
    """Whether a processor is in the middle of a migration."""
    return any(m["start"] is not None and m["end"] is None for m in progress["migrations"])


def test_workers_have_nothing_but_what_was_shipped(driver: DriverProcess) -> None:
    told = driver.ask("workers")
    assert {host for host, *_ in told} == set(driver.cluster.workers)
    for _, python, plait, _ in told:
        assert python.endswith("/environment/bin/python") and python.startswith("/srv/disk/work/")
        assert plait.startswith(python.removesuffix("bin/python"))
    found = driver.ask("check")
    assert found["ok"], found["text"]


def test_oracle_a_plan_migrates_on_all_hosts(driver: DriverProcess) -> None:
    story = Story(driver, "migrated", 6)
    story.start(slow=0.0)
    driver.ask("wait_for", batch=1)
    assert driver.ask("migrate", plan="((a b) c)") == 1
    told = story.check()
    assert told["plans"] == ["((a b) c)"] and told["epochs"] == [1]
    assert told["rebuilt"] <= _PROCESSORS, "engines stay where they are"


@pytest.mark.parametrize("sink", ["kafka", pytest.param("parquet", marks=pytest.mark.campaign)])
def test_oracle_hosts_are_killed(driver: DriverProcess, sink: str) -> None:
    """One in the middle of a batch, and one in the middle of a migration."""
    story = Story(driver, f"hosts-killed-{sink}", 10, sink)
    story.start()
    _kill_in(story, 2, "worker2")
    ended = driver.ask("wait_for", batch=3)["ended"]
    assert driver.ask("migrate", plan="((b c) a)", strategy="parallel-track") == 1
    while not _under_way(driver.ask("progress")):
        ended = driver.ask("wait_for", batch=ended + 1)["ended"]
    _kill_in(story, ended + 1, "worker3")
    told = story.check(repeats=sink == "kafka")
    assert told["plans"] == ["((b c) a)"] and told["epochs"] == [1]


@pytest.mark.parametrize("other", [DRIVER, STORE, pytest.param(KAFKA, marks=pytest.mark.campaign)])
def test_oracle_the_network_is_cut(driver: DriverProcess, other: str) -> None:
    """For 20 seconds, in the middle of a batch."""
    story = Story(driver, f"cut-from-{other}", 5)
    story.start()
    driver.ask("wait_in", batch=1)
    driver.cluster.cut("worker1", other)
    try:
        time.sleep(_CUT_SECONDS)
    finally:
        driver.cluster.mend("worker1", other)
    story.check(repeats=True)
