"""A long run at a steady rate: does memory stay where it is?

Rows come from Spark's rate source in real time. Every few seconds the resident memory of the
driver (its JVM and its Python) and of the Python workers is read, and with every batch the state
that the processors hold, and what is alive on the driver's heap after a collection. After the
windows are full and the JVM is warm, all of it should be level: growth is the median slope between
any two samples (Theil and Sen), times the time, relative to the median level.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from plait.errors import PlaitError
from plait_lab.bench.spark.job import FIRST_WARM, Job
from plait_lab.bench.spark.launch import listen
from plait_lab.bench.spark.systems import PLAIT
from plait_lab.reporting.report import Claim, Note, Report, Series, at_most

_MOST_GROWTH = 0.10
_MOST_SAMPLES = 400
_STARTING = 240.0
"""Seconds that starting and ending may take, on top of the run itself."""


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    minutes: float = 30.0
    rate: int = 2_000
    """Rows per second of each of the three streams."""
    keys: int = 20_000
    window_seconds: float = 10.0
    trigger_seconds: float = 1.0
    warm_up: float = 0.25
    """The share of the time that does not count; at least two windows."""
    sample_seconds: float = 2.0
    cores: int = os.cpu_count() or 2
    memory_mb: int = 1_000
    """The driver's heap: small, so that it is soon as large as it gets."""


@dataclass(slots=True)
class Samples:
    """A quantity over time."""

    at: list[float] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)

    def add(self, at: float, value: float) -> None:
        """One more sample."""
        self.at.append(at)
        self.bytes.append(value)

    def after(self, begin: float) -> Samples:
        """Only what was sampled later."""
        kept = [(t, b) for t, b in zip(self.at, self.bytes, strict=True) if t >= begin]
        return Samples([t for t, _ in kept], [b for _, b in kept])


def soak(options: Options, note: Note) -> Report:
    """A long run at a steady rate: memory of driver and workers, and the state, stay level."""
    report = Report("spark-soak", asdict(options), runtime="spark")
    found, figures = _run(options, note)
    begin = max(2 * options.window_seconds, options.warm_up * options.minutes * 60)
    for name, samples in found.items():
        level = samples.after(begin)
        if len(level.at) < 2:
            raise PlaitError(
                f"there are only {len(level.at)} samples of {name} after the first {begin:.0f} s",
                remedy="run for more minutes, or with a smaller window_seconds",
            )
        report.series.append(Series(name, *_thinned(samples), "B", "s"))
        report.claims.append(_level(name, level))
    report.systems["plait"] = figures
    return report


def _level(name: str, samples: Samples) -> Claim:
    id_ = name.replace(" ", "-")
    text = f"{name} is level, {np.median(samples.bytes) / 1e6:,.1f} MB in the middle"
    return at_most(id_, text, growth(samples.at, samples.bytes), _MOST_GROWTH)


def growth(at: Sequence[float], values: Sequence[float]) -> float:
    """How much a quantity grows over all samples, relative to its median.

    >>> growth([0, 1, 2, 3], [100, 110, 120, 130])
    0.26...
    >>> growth([0, 1, 2, 3], [100, 100, 900, 100])
    0.0
    """
    x, y = np.asarray(at, float), np.asarray(values, float)
    step = max(1, len(x) // _MOST_SAMPLES)
    x, y = x[::step], y[::step]
    i, j = np.triu_indices(len(x), 1)
    apart = x[j] > x[i]
    slopes = (y[j] - y[i])[apart] / (x[j] - x[i])[apart]
    level = float(np.median(y))
    if not len(slopes) or not level:
        return 0.0
    return float(np.median(slopes)) * float(x[-1] - x[0]) / level


def _thinned(samples: Samples) -> tuple[list[float], list[float]]:
    """Some fifty of the samples, for a figure."""
    step = max(1, len(samples.at) // 50)
    return [round(t, 1) for t in samples.at[::step]], samples.bytes[::step]


def _run(options: Options, note: Note) -> tuple[dict[str, Samples], dict[str, Any]]:
    driver, workers, state, heap = Samples(), Samples(), Samples(), Samples()
    began, sampled = 0.0, 0.0
    rows, results, busy = 0, 0, []

    def on_tick(pid: int) -> None:
        nonlocal sampled
        now = time.monotonic()
        if began and now - sampled >= options.sample_seconds:
            sampled = now
            ours, theirs = resident(pid)
            if ours and theirs:  # else it is about to end
                driver.add(now - began, ours)
                workers.add(now - began, theirs)

    def on_word(word: dict[str, Any]) -> None:
        nonlocal began, rows, results
        if word["kind"] != "batch" or word["id"] < FIRST_WARM:
            return
        began = began or time.monotonic()
        now = time.monotonic() - began
        reports = [json.loads(text) for text in word["reports"]]
        rows, results = rows + word["rows"], results + word["results"]
        busy.append(word["durations"]["triggerExecution"] / 1000)
        if reports:
            state.add(now, sum(r["state_bytes"] for r in reports))
        if word["heap"]:
            heap.add(now, word["heap"])
        level = f"state {sum(r['state_rows'] for r in reports):,} rows"
        memory = f"driver {driver.bytes[-1] / 1e6:,.0f} MB" if driver.bytes else "driver starting"
        note(f"{now / 60:.1f} of {options.minutes:g} min: {rows:,} rows, {level}, {memory}")

    with tempfile.TemporaryDirectory(prefix="plait-soak-") as scratch:
        where = Path(scratch)
        job = Job(
            PLAIT,
            (("k",),) * 3,
            round(options.window_seconds * 1e6),
            scratch,
            rate=options.rate,
            domain=options.keys,
            seconds=options.minutes * 60,
            trigger_seconds=options.trigger_seconds,
            cores=options.cores,
            memory=f"{options.memory_mb}m",
            # Files of old versions are of no use to a run that does not go back.
            settings={"spark.sql.streaming.minBatchesToRetain": "10"},
        )
        note("starting Spark")
        command = [
            sys.executable,
            "-m",
            "plait_lab.bench.spark.child",
            str(job.write(where / "job")),
        ]
        limit = options.minutes * 60 + _STARTING
        heard = listen(command, where / "log", limit, on_word, on_tick)
        if heard.over or heard.error:
            raise PlaitError(f"the run failed: {heard.error or 'it did not end in time'}")
    found = {"driver memory": driver, "worker memory": workers, "state": state}
    if any(heap.bytes):
        found["live heap of the driver"] = heap
    figures = {
        "seconds": heard.of("end")[0]["seconds"],
        "batches": len(busy),
        "rows": rows,
        "results": results,
        "median_batch_s": float(np.median(busy)) if busy else 0.0,
        "slowest_batch_s": max(busy[1:], default=0.0),
    }
    return found, figures


def resident(pid: int) -> tuple[int, int]:
    """The resident memory of a driver (a Python and the JVM below it), and of its workers."""
    ours = theirs = 0
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0, 0
    for process in family:
        try:
            size = process.memory_info().rss
            is_driver = process.pid == pid or "java" in process.name()
        except psutil.NoSuchProcess:
            continue
        if is_driver:
            ours += size
        else:
            theirs += size
    return ours, theirs
