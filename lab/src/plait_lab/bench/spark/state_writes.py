"""What a batch writes to durable state, with a window and with one many times as large.

Each batch should write its own rows and drop what has expired, however much is live. Measured on
the files that Spark's state store leaves in the checkpoint, one changelog per batch and partition,
and on what the processors report. Snapshots, which RocksDB uploads in the background and which
hold no new rows, are reported apart.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plait.errors import PlaitError
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.launch import listen
from plait_lab.bench.spark.systems import PLAIT
from plait_lab.reporting.report import Claim, Note, Report, Series, at_least, at_most
from plait_lab.workloads.files import Workload, write_parquet
from plait_lab.workloads.keyed import RATE

_CHANGELOG = re.compile(r"(\d+)(?:_[^.]*)?\.changelog")
_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied; the defaults are about two minutes of work."""

    rows: int = 60_000
    keys: int = 50_000
    window_seconds: float = 1.0
    factor: int = 30
    """How much larger the other window is."""
    batches: int = 30
    limit_seconds: float = 420.0
    cores: int = os.cpu_count() or 2
    memory_mb: int = 2_000
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Written:
    """What one run wrote, batch by batch."""

    changelogs: list[int]
    reported: list[int]
    state_rows: list[int]
    all_files: int


def state_writes(options: Options, note: Note) -> Report:
    """What a batch writes to durable state does not depend on the window."""
    report = Report("spark-state-writes", asdict(options), runtime="spark")
    windows = [options.window_seconds * f for f in (1, options.factor)]
    found = []
    with tempfile.TemporaryDirectory(prefix="plait-writes-") as scratch:
        for window in windows:
            found.append(_run(options, window, Path(scratch) / f"{window:g}", note))
    # From here on both windows are full, so that both drop as much as they write.
    full = _full_after(options)
    for window, w in zip(windows, found, strict=True):
        name = f"window {window:g} s"
        report.systems[name] = {
            "changelog_bytes_per_batch": statistics.median(w.changelogs[full:]),
            "reported_bytes_per_batch": statistics.median(w.reported[full:]),
            "state_rows": w.state_rows[-1],
            "all_state_files_bytes": w.all_files,
        }
        numbers = list(range(1, len(w.changelogs) + 1))
        report.series.append(Series(f"{name}: changelogs", numbers, w.changelogs, "B", "batch"))
        report.series.append(Series(f"{name}: state", numbers, w.state_rows, "rows", "batch"))
    small, large = found
    report.claims = [
        _same("changelogs", "its changelogs", small.changelogs[full:], large.changelogs[full:]),
        _same("reported", "its reports", small.reported[full:], large.reported[full:]),
        at_least(
            "larger-state",
            "the larger window really holds more rows, by a third of the factor at least",
            large.state_rows[-1] / max(1, small.state_rows[-1]),
            options.factor / 3,
        ),
    ]
    return report


def _same(id_: str, what: str, small: list[int], large: list[int]) -> Claim:
    ratio = statistics.median(large) / statistics.median(small)
    text = f"a batch writes as many bytes with the larger window as with the smaller, by {what}"
    return at_most(id_, text, abs(ratio - 1), _TOLERANCE)


def _full_after(options: Options) -> int:
    """The first batch in which both windows are full and dropping."""
    batch_seconds = options.rows / RATE / options.batches
    full = int(options.window_seconds * options.factor / batch_seconds) + 2
    if full > options.batches - 3:
        raise PlaitError(
            f"the larger window is full only in batch {full} of {options.batches}",
            remedy="give more rows, or a smaller window_seconds or factor",
        )
    return full


def _run(options: Options, window: float, scratch: Path, note: Note) -> Written:
    micros = round(window * 1000) * 1000
    workload = Workload(
        (("k",),) * 3, micros, options.rows, options.keys, options.batches, options.seed
    )
    note(f"window {window:g} s: starting")
    write_parquet(workload.tables(), workload.batches, scratch / "in")
    job = Job(
        PLAIT,
        workload.keys,
        micros,
        str(scratch),
        files=str(scratch / "in"),
        cores=options.cores,
        memory=f"{options.memory_mb}m",
    )

    def on_word(word: dict[str, Any]) -> None:
        if word["kind"] == "batch":
            note(f"window {window:g} s: batch {word['id'] + 1} of {workload.batches}")

    command = [
        sys.executable,
        "-m",
        "plait_lab.bench.spark.child",
        str(job.write(scratch / "job")),
    ]
    heard = listen(command, scratch / "log", options.limit_seconds, on_word)
    if heard.over or heard.error:
        raise PlaitError(
            heard.error or f"it took more than {options.limit_seconds:g} s",
            remedy="with fewer rows and batches, or a higher limit_seconds, it may come to its end",
        )
    reports = [[json.loads(r) for r in b["reports"]] for b in heard.of("batch")]
    state = scratch / "checkpoint" / "state"
    return Written(
        changelog_bytes((p.name, p.stat().st_size) for p in state.rglob("*.changelog")),
        [sum(r["written_bytes"] for r in batch) for batch in reports],
        [sum(r["state_rows"] for r in batch) for batch in reports],
        sum(p.stat().st_size for p in state.rglob("*") if p.is_file()),
    )


def changelog_bytes(files: Iterable[tuple[str, int]]) -> list[int]:
    """Bytes per batch from names and sizes of changelogs; versions count from 1.

    >>> changelog_bytes([("2_ab.changelog", 20), ("1_cd.changelog", 10), ("1.changelog", 5)])
    [15, 20]
    """
    versions: dict[int, int] = {}
    for name, size in files:
        if (found := _CHANGELOG.fullmatch(name)) is not None:
            version = int(found[1])
            versions[version] = versions.get(version, 0) + size
    return [versions[v] for v in sorted(versions)]
