"""The systems that are compared: how each is run, and what it found.

Each gets a process of its own, the same cores and the same memory, and the same number of
partitions. What differs in their settings is where their state is.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from plait.errors import PlaitError, did_you_mean
from plait_lab.bench.spark.flink_job import flink_job, flink_python
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.launch import Heard, listen
from plait_lab.reporting.report import Note, spread
from plait_lab.workloads.files import Workload, owners, result_columns, row_checksum

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"

PLAIT, NATIVE, ROCKSDB, ROCKSDB_4, FLINK, FLINK_ROCKSDB = (
    "plait",
    "native-hdfs",
    "native-rocksdb",
    "native-rocksdb-4",
    "flink",
    "flink-rocksdb",
)
DEFAULT = (PLAIT, NATIVE, ROCKSDB, ROCKSDB_4, FLINK)
SETUP: dict[str, str] = {
    PLAIT: "Spark's transformWithState, RocksDB state with changelogs",
    NATIVE: "Spark's chained joins, HDFS-backed state, join state format 2",
    ROCKSDB: "Spark's chained joins, RocksDB state with changelogs, join state format 2 (default)",
    ROCKSDB_4: "Spark's chained joins, RocksDB state with changelogs, join state format 4",
    FLINK: "Flink's interval joins, heap state, from CSV",
    FLINK_ROCKSDB: "Flink's interval joins, RocksDB state, from CSV",
}
SETTINGS: dict[str, dict[str, str]] = {
    NATIVE: {_PROVIDER: _HDFS, _JOIN_FORMAT: "2"},
    ROCKSDB: {_JOIN_FORMAT: "2"},
    ROCKSDB_4: {_JOIN_FORMAT: "4"},
}
_WARM_UP = 2
"""Batches that do not count as steady: Spark starts, code is compiled, windows fill."""


def chosen_systems(text: str) -> tuple[str, ...]:
    """The systems that an option names, separated by commas.

    >>> chosen_systems("plait,flink"), chosen_systems("all") == DEFAULT
    (('plait', 'flink'), True)
    """
    if text == "all":
        return DEFAULT
    found = tuple(name.strip() for name in text.split(","))
    for name in found:
        if name not in SETUP:
            raise PlaitError(f"there is no system {name!r}", remedy=did_you_mean(name, SETUP))
    return found


@dataclass(frozen=True, slots=True)
class Machine:
    """What each system gets."""

    cores: int
    memory: str
    limit: float
    """Seconds that one system may take in all."""


@dataclass(slots=True)
class SystemOutcome:
    """What one system did with one workload."""

    system: str
    batches: list[dict[str, Any]]
    seconds: float
    """Of the query alone, without starting the process; the limit if it was over."""
    results: int | None
    checksum: int | None
    over: bool = False
    missing: str = ""
    """Why there are no figures."""
    waiting: float = 0.0
    """Seconds since the last finished batch, if it was over its limit."""

    @property
    def batch_seconds(self) -> list[float]:
        """Of every batch, in order."""
        return [b["durations"]["triggerExecution"] / 1000 for b in self.batches]

    @property
    def steady(self) -> float | None:
        """The median batch after the first ones; where none was finished, at least so long."""
        seconds = self.batch_seconds[_WARM_UP:]
        if seconds:
            return statistics.median(seconds)
        return self.waiting if self.over and self.waiting else None

    @property
    def bounded(self) -> bool:
        """Whether `steady` is only a lower bound."""
        return self.over and len(self.batches) <= _WARM_UP

    def figures(self, workload: Workload) -> dict[str, Any]:
        """For a report."""
        if self.missing:
            return {"not_run": self.missing, "set_up": SETUP[self.system]}
        found: dict[str, Any] = {
            "seconds": self.seconds,
            "results": self.results,
            "checksum": self.checksum,
        }
        if self.over:
            found["ended"] = f"after {len(self.batches)} batches, over {self.seconds:.0f} s"
        if self.batches:
            found["first_batch_s"] = self.batch_seconds[0]
        if self.bounded:
            found["steady_batch_s_over"] = self.waiting
        elif self.steady:
            found["steady_batch_s"] = spread(self.batch_seconds[_WARM_UP:])
            found["last_batch_s"] = self.batch_seconds[-1]
            found["steady_rows_per_s"] = workload.total_rows / workload.batches / self.steady
        return found | _inside(self.batches[_WARM_UP:]) | {"set_up": SETUP[self.system]}


def run_spark(
    system: str, workload: Workload, files: Path, scratch: Path, machine: Machine, note: Note
) -> SystemOutcome:
    """One of the systems on Spark."""
    scratch.mkdir(parents=True)
    job = Job(
        system,
        workload.keys,
        workload.window,
        str(scratch),
        files=str(files),
        aggregate=workload.many_results,
        cores=machine.cores,
        memory=machine.memory,
        settings=SETTINGS.get(system, {}),
    )
    command = [
        sys.executable,
        "-m",
        "plait_lab.bench.spark.child",
        str(job.write(scratch / "job")),
    ]
    note(f"{system}: starting Spark")

    def on_word(word: dict[str, Any]) -> None:
        if word["kind"] == "batch":
            seconds = word["durations"]["triggerExecution"] / 1000
            done = f"batch {word['id'] + 1} of {workload.batches}"
            note(f"{system}: {done} took {seconds:.1f} s, {word['results']:,} results")

    return _outcome(system, listen(command, scratch / "log", machine.limit, on_word))


def run_flink(
    system: str, workload: Workload, files: Path, scratch: Path, machine: Machine, note: Note
) -> SystemOutcome:
    """Flink, if its environment is there."""
    python = flink_python()
    if python is None:
        return _absent(system, "its environment is not installed: ./dev setup --peers makes it")
    scratch.mkdir(parents=True)
    asked = flink_job(workload, files, machine.cores, rocksdb=system == FLINK_ROCKSDB)
    job = scratch / "job"
    job.write_text(json.dumps(asked))
    note(f"{system}: running")
    program = str(Path(__file__).with_name("flink.py"))
    heard = listen([str(python), program, str(job)], scratch / "log", machine.limit)
    return _outcome(system, heard)


def _absent(system: str, why: str) -> SystemOutcome:
    return SystemOutcome(system, [], 0.0, None, None, missing=why)


def _outcome(system: str, heard: Heard) -> SystemOutcome:
    if heard.error:
        if system == PLAIT:
            raise PlaitError(f"Plait on Spark failed: {heard.error}")
        return _absent(system, f"failed: {heard.error}")
    batches = heard.of("batch")
    if heard.over:
        return SystemOutcome(
            system, batches, heard.seconds, None, None, over=True, waiting=heard.silent
        )
    end = heard.of("end")[0]
    results = end.get("results", sum(b["results"] for b in batches))
    checksum = end.get("checksum", sum(b["checksum"] for b in batches))
    return SystemOutcome(system, batches, end["seconds"], results, checksum)


def _inside(batches: list[dict[str, Any]]) -> dict[str, Any]:
    """Where a steady batch of Plait spends its time, as the slowest processor of each tells."""
    told = [[json.loads(text) for text in b["reports"]] for b in batches if b["reports"]]
    if not told:
        return {}
    slowest = [max(reports, key=lambda r: sum(r["seconds"].values())) for reports in told]
    parts = {
        part: statistics.median(r["seconds"].get(part, 0.0) for r in slowest)
        for part in slowest[0]["seconds"]
    }
    rebuilt = sum(bool(r["rebuilt"]) for reports in told for r in reports)
    return {
        "inside_the_operator_s": {k: round(v, 3) for k, v in parts.items()},
        "engines_rebuilt": f"{rebuilt} of {sum(map(len, told))}",
    }


def reference(workload: Workload, files: Path, threads: int) -> tuple[int, int, float]:
    """Number and checksum of the results by DuckDB, over all files at once, and its seconds."""
    keys = workload.keys
    values = []
    for name in result_columns(keys):
        stream, _, column = name.partition("_")
        if column == "ts":
            values.append(f"{stream}.us")
        elif column:
            values.append(f"{stream}.{column}")
        else:
            values.append(f"s{owners(keys, name)[0]}.{name}")
    conditions = []
    for k in dict.fromkeys(k for own in keys for k in own):
        first, *others = owners(keys, k)
        conditions += [f"s{first}.{k} = s{other}.{k}" for other in others]
    conditions += [
        f"s{j}.us - s{i}.us BETWEEN {-workload.window} AND {workload.window}"
        for j in range(len(keys))
        for i in range(j)
    ]
    with closing(duckdb.connect(config={"threads": str(threads)})) as connection:
        for stream in workload.streams:
            connection.execute(
                f"CREATE TABLE {stream} AS SELECT *, epoch_us(ts) AS us "
                f"FROM read_parquet('{files / stream}/*.parquet')"
            )
        began = time.perf_counter()
        found = connection.execute(
            f"SELECT count(*), sum({row_checksum(values)}) FROM {', '.join(workload.streams)} "
            f"WHERE {' AND '.join(conditions)}"
        ).fetchone()
        assert found is not None
        return int(found[0]), int(found[1] or 0), time.perf_counter() - began
