"""The demo's run on Spark: files arrive, one of each stream per batch, and results go to Parquet.

The streams are cut along the time of their arrival, so that each batch has what a live system
would have seen in the same seconds. Spark's own sink writes the results, exactly once; the answer
is read back from its files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import plait
from plait.cli.show import console, count, moment, on_terminal, say
from plait.errors import PlaitError
from plait.node.report import Report

if TYPE_CHECKING:
    from plait.api import Sql

_LOOK = 0.1
_EPOCH = 1_700_000_000
"""The modification time of the first file: Spark reads files in this order."""
_HEADER = ("batch", "watermark", "rows", "results", "state", "late", "seconds", "rows/s")
_WIDTHS = (5, 12, 9, 9, 9, 5, 7, 9)


@dataclass(frozen=True, slots=True)
class ShownBatch:
    """One batch as Spark's progress and the processors' reports tell it."""

    number: int
    reached: int | None
    """The oldest of the streams' watermarks, in microseconds."""
    rows: int
    results: int
    state_rows: int
    state_bytes: int
    late: int
    seconds: float

    def cells(self) -> list[str]:
        """For the table of batches."""
        figures = [f"{n:,}" for n in (self.rows, self.results, self.state_rows, self.late)]
        rate = f"{self.rows / max(self.seconds, 1e-9):,.0f}"
        time_ = moment(self.reached)[11:] or "-"
        return [str(self.number), time_, *figures, f"{self.seconds:.1f}", rate]


@dataclass(frozen=True, slots=True)
class Ran:
    """The batches of a run, and the results in their files."""

    batches: list[ShownBatch]
    files: list[str]
    seconds: float
    """From the start of the query to its end."""


@contextmanager
def run_on_spark(
    tables: Mapping[str, pa.Table], text: str, watermark: str, batch_seconds: float, scratch: Path
) -> Iterator[Ran]:
    """Run a query on a Spark of its own, showing its progress; Spark ends with the context."""
    from plait.hosts.spark.session import local_session

    number = write_arrivals(tables, batch_seconds, scratch / "in")
    log = scratch / "spark.log"
    with _status("Starting Spark ..."):
        spark = local_session(name="plait demo", scratch=scratch, log=log)
    try:
        frames = {}
        for name in tables:
            where = str(scratch / "in" / name)
            schema = spark.read.parquet(where).schema
            reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
            frames[name] = reader.parquet(where)
        asked = plait.sql(frames, text, watermark=watermark)
        batches, seconds = _run(asked, number, scratch)
        files = spark.read.parquet(str(scratch / "out")).inputFiles()
        yield Ran(batches, [f.removeprefix("file://") for f in files], seconds)
    finally:
        spark.stop()


def write_arrivals(tables: Mapping[str, pa.Table], batch_seconds: float, where: Path) -> int:
    """A file for each stream and batch, cut where streams have come to the same time; how many."""
    width = round(batch_seconds * 1e6)
    clocks = {
        name: np.maximum.accumulate(table.column("ts").cast(pa.int64()).to_numpy())
        for name, table in tables.items()
    }
    first = min(int(clock[0]) for clock in clocks.values() if len(clock))
    last = max(int(clock[-1]) for clock in clocks.values() if len(clock))
    ends = np.arange(first + width, last + width + 1, width)
    for name, table in tables.items():
        (where / name).mkdir(parents=True)
        stops = np.searchsorted(clocks[name], ends)
        starts = np.concatenate([[0], stops[:-1]])
        for b, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            path = where / name / f"{b:03}.parquet"
            pq.write_table(table.slice(int(start), int(stop - start)), path)
            os.utime(path, (_EPOCH + b, _EPOCH + b))
    return len(ends)


def _run(asked: Sql, number: int, scratch: Path) -> tuple[list[ShownBatch], float]:
    writer = asked.to_df().writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(scratch / "checkpoint"))
    began = time.perf_counter()
    query = writer.start(str(scratch / "out"))
    batches: list[ShownBatch] = []
    say(_line(_HEADER), style="bold")
    with _status("batch 1, while Spark gets going ...") as update:
        try:
            while query.isActive:
                time.sleep(_LOOK)
                _show_new(query, batches)
                if batches:
                    update(f"batch {min(len(batches) + 1, number)} of {number} ...")
        finally:
            query.stop()
    seconds = time.perf_counter() - began
    _show_new(query, batches)
    if (failed := query.exception()) is not None:
        raise PlaitError(f"the query failed: {failed}", remedy="plait demo --local needs no Spark")
    return batches, seconds


def _show_new(query: Any, batches: list[ShownBatch]) -> None:
    from plait.hosts.spark.progress import reports_of

    for progress in query.recentProgress:
        reports = reports_of(progress)
        if progress.batchId >= len(batches) and reports:
            batches.append(batch_of(progress.numInputRows, progress.durationMs, reports, batches))
            say(_line(batches[-1].cells()))


def batch_of(
    rows: int, durations: Mapping[str, int], reports: Sequence[Report], before: list[ShownBatch]
) -> ShownBatch:
    """A batch from Spark's progress and the reports of the processors."""
    marks = [w for r in reports for w in r.watermarks.values()]
    return ShownBatch(
        len(before) + 1,
        min(marks) if marks else None,
        rows,
        sum(r.results for r in reports),
        sum(r.state_rows for r in reports),
        sum(r.state_bytes for r in reports),
        sum(sum(r.late.values()) for r in reports),
        durations["triggerExecution"] / 1000,
    )


def summary(batches: list[ShownBatch], seconds: float) -> None:
    """How fast it was: the first batch, which pays for the start, and the others."""
    rows, results = sum(b.rows for b in batches), sum(b.results for b in batches)
    say(
        f"{count(rows, 'row')} and {count(results, 'result')} in {seconds:.1f} s and "
        f"{count(len(batches), 'batch', 'batches')}."
    )
    if steady := batches[1:]:
        busy = sum(b.seconds for b in steady)
        say(
            f"The first batch took {batches[0].seconds:.1f} s, because Spark and its workers start "
            f"in it. After that: {sum(b.rows for b in steady) / busy:,.0f} rows/s, "
            f"{sum(b.results for b in steady) / busy:,.0f} results/s."
        )


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=True))


@contextmanager
def _status(text: str) -> Iterator[Any]:
    """Says on a terminal what is going on; what it yields changes the text."""
    if not on_terminal():
        yield lambda _: None
        return
    with console(stderr=True).status(text) as status:
        yield status.update
