"""The demo's runs on Spark: two queries over the same files, one batch of one of them at a time.

The streams are cut along the time of their arrival, so that each batch has what a live system would
have seen in the same seconds. `foreachBatch` lets the queries take turns: what one of them takes
for a batch is not disturbed by the other, and both meet the same noise of the machine.
"""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Semaphore
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import plait
from plait.adapt.events import Event
from plait.cli.demo.batches import DemoBatch, RunBatch, changes_of, moves_of
from plait.cli.demo.outage import cut_arrivals
from plait.cli.live import waiting
from plait.errors import PlaitError

if TYPE_CHECKING:
    from plait.api.sql import Sql

_EPOCH = 1_700_000_000
"""The modification time of the first file: Spark reads files in this order."""
_LOOK = 0.02
_PATIENCE = 10.0
"""Seconds to wait for what Spark says of a batch after its end."""


@dataclass(slots=True)
class _Runner:
    """A query that waits before each of its batches until it is told to go on."""

    name: str
    query: Any = None
    _gate: Semaphore = field(default_factory=lambda: Semaphore(0))
    _done: queue.Queue[tuple[int, float]] = field(default_factory=queue.Queue)
    _over: bool = False
    _streams: Sequence[str] = ()
    _seen: Sequence[Event] = ()
    """The decisions about moves that have been shown; only the last ones are kept."""

    def start(self, asked: Sql, plan: str, scratch: Path) -> None:
        """Start the query; its results go to a folder per batch."""
        self._streams = asked.query.names
        checkpoint, out = scratch / f"checkpoint-{self.name}", scratch / f"out-{self.name}"

        def each(results: Any, batch: int) -> None:
            self._gate.acquire()
            if not self._over:
                begin = time.perf_counter()
                results.write.mode("overwrite").parquet(str(out / f"{batch:04}"))
                self._done.put((batch, time.perf_counter() - begin))

        frame = asked.to_df(plan=plan, checkpoint=checkpoint)
        writer = frame.writeStream.foreachBatch(each).trigger(availableNow=True)
        self.query = writer.option("checkpointLocation", str(checkpoint)).start()

    def turn(self, number: int) -> DemoBatch:
        """Let the query run one batch."""
        self._gate.release()
        while True:
            try:
                batch, seconds = self._done.get(timeout=0.2)
                break
            except queue.Empty:
                self._check(number)
        assert batch == number
        progress = self._progress(number)
        from plait.spark.control.progress import reports_of

        reports = sorted(reports_of(progress), key=lambda r: r.processor)
        balance = plait.attach(self.query).progress().balance
        fresh, self._seen = [e for e in balance if e not in self._seen], balance
        return DemoBatch(
            number=number + 1,
            rows=progress.numInputRows,
            results=sum(r.results for r in reports),
            late=sum(sum(r.late.values()) for r in reports),
            seconds=seconds,
            routed=tuple(sum(r.routed.values()) for r in reports),
            loads=tuple(sum(r.cpu.values()) for r in reports),
            changes=changes_of(event for r in reports for event in r.events),
            moves=moves_of(fresh, self._streams),
        )

    def _progress(self, number: int) -> Any:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            for found in reversed(self.query.recentProgress):
                if found.batchId == number and "addBatch" in found.durationMs:
                    return found
            time.sleep(_LOOK)
        raise PlaitError(f"Spark tells nothing of batch {number}", remedy="try plait demo --local")

    def _check(self, number: int) -> None:
        if not self.query.isActive:
            # What comes after the first part is the whole plan.
            why = str(self.query.exception()).partition("=== Streaming Query ===")[0].strip()
            raise PlaitError(
                f"the query ended in batch {number + 1}: {why}",
                remedy="plait demo --local needs no Spark",
            )

    def end(self) -> None:
        """Let a query that waits go, and stop it."""
        self._over = True
        for _ in range(1000):
            self._gate.release()
        if self.query is not None:
            self.query.stop()


@contextmanager
def running_on_spark(
    tables: Mapping[str, pa.Table],
    asks: Mapping[str, Callable[[Mapping[str, Any]], Sql]],
    plan: str,
    batch_seconds: float,
    limits: Mapping[str, int],
    scratch: Path,
) -> Iterator[dict[str, RunBatch]]:
    """Queries on a Spark of their own, by name, each ready to take turns; all end with the context.

    `asks` make them from DataFrames. `limits` says how many batches those have that do not go on to
    the end.
    """
    write_arrivals(tables, batch_seconds, scratch / "in")
    with waiting("Starting Spark ..."):
        spark = plait.spark.session(name="plait demo", scratch=scratch, log=scratch / "spark.log")
    runners = []
    try:
        for name, ask in asks.items():
            files = scratch / "in"
            if name in limits:
                files = scratch / f"in-{name}"
                _link_first(scratch / "in", files, limits[name])
            runners.append(_Runner(name))
            runners[-1].start(ask(_frames(spark, tables, files)), plan, scratch)
        yield {runner.name: runner.turn for runner in runners}
    finally:
        for runner in runners:
            runner.end()
        spark.stop()


def _frames(spark: Any, tables: Mapping[str, pa.Table], files: Path) -> dict[str, Any]:
    """The streams as DataFrames, a file of each per batch."""
    frames = {}
    for name in tables:
        where = str(files / name)
        schema = spark.read.parquet(where).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frames[name] = reader.parquet(where)
    return frames


def write_arrivals(tables: Mapping[str, pa.Table], batch_seconds: float, where: Path) -> int:
    """A file for each stream and batch, cut where streams have come to the same time; how many."""
    batches = cut_arrivals(tables, batch_seconds)
    for name in tables:
        (where / name).mkdir(parents=True)
    for b, batch in enumerate(batches):
        for name, rows in batch.items():
            path = where / name / f"{b:03}.parquet"
            pq.write_table(rows, path)
            os.utime(path, (_EPOCH + b, _EPOCH + b))
    return len(batches)


def _link_first(files: Path, where: Path, number: int) -> None:
    """The first files of every stream once more, without copying them."""
    for folder in sorted(files.iterdir()):
        (where / folder.name).mkdir(parents=True)
        for path in sorted(folder.glob("*.parquet"))[:number]:
            os.link(path, where / folder.name / path.name)
