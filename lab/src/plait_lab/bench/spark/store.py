"""A checkpoint in an object store: what a batch costs more with Plait's control directory there.

The workload is that of `peers-tiny`: small batches, whose cost is what Spark and the operators cost
at all. Both systems are Plait, and Spark keeps both checkpoints in an S3-compatible store on this
machine. One is told its checkpoint and keeps its control directory there: in each batch a
processor asks for decisions and writes its report. The other is not told, so nothing of Plait's
is in the store. They take turns, a whole run each, because machines have slower and faster minutes.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from plait.spark.environment import java
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.run import RanJob, run_job
from plait_lab.bench.spark.systems import PLAIT, reference
from plait_lab.object_store import (
    BUCKET,
    environment,
    missing,
    object_store,
    requests_made,
    spark_settings,
)
from plait_lab.reporting.report import Note, Report, Series, at_most, equal, spread
from plait_lab.workloads.files import Workload, write_parquet

_KEYS = (("k",),) * 3
_WARM_UP = 2
"""Batches that do not count as steady: Spark starts, code is compiled, windows fill."""
_SLOWER = 1.15
_REQUESTS = 2.5
_OF_PROCESSORS = ("GET epochs", "PUT reports", "PUT events")
"""The other requests are the driver's, which reads the reports."""
_EACH = "requests of a processor in a batch"
_WITHOUT, _WITH = "without a control directory", "with a control directory"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What can be varied."""

    rows: int = 20_000
    keys: int = 1_000
    window_seconds: float = 5.0
    batches: int = 20
    repeats: int = 3
    limit_seconds: float = 420.0
    """What one run may take."""
    cores: int = os.cpu_count() or 2
    memory_mb: int = 2_000
    seed: int = 1


def store_overhead(options: StoreOptions, note: Note) -> Report:
    """What Plait's control directory costs a small batch whose checkpoint is in an object store."""
    report = Report("store-overhead", asdict(options), runtime="spark")
    if problem := java.missing() or missing():
        report.systems["object store"] = {"left out": problem}
        return report
    window = round(options.window_seconds * 1000) * 1000
    workload = Workload(_KEYS, window, options.rows, options.keys, options.batches, options.seed)
    steady: dict[str, list[float]] = {_WITHOUT: [], _WITH: []}
    found: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory(prefix="plait-store-") as scratch, object_store() as place:
        files = Path(scratch) / "in"
        note("generating the streams")
        write_parquet(workload.tables(), workload.batches, files)
        note("DuckDB joins everything at once, for the results to compare with")
        found.append(reference(workload, files, options.cores)[:2])
        job = Job(
            PLAIT,
            _KEYS,
            window,
            files=str(files),
            cores=options.cores,
            memory=f"{options.memory_mb}m",
            settings=dict(spark_settings(place)),
        )
        for turn in range(options.repeats):
            for told in (True, False) if turn % 2 else (False, True):
                title = f"{_WITH if told else _WITHOUT}, run {turn + 1}"
                name = f"{'with' if told else 'without'}-{turn}"
                mine = replace(job, checkpoint=f"s3a://{BUCKET}/{name}", told=told)
                before = requests_made(place)
                ran = run_job(
                    title,
                    mine,
                    Path(scratch) / name,
                    options.batches,
                    options.limit_seconds,
                    note,
                    may_stop=False,
                    environment=environment(place),
                )
                found.append(ran.results)
                steady[_WITH if told else _WITHOUT].append(_add(report, title, ran))
                made = requests_made(place) - before
                tasks = len(ran.seconds) * options.cores
                own = sum(made[kind] for kind in _OF_PROCESSORS) / tasks
                report.systems[title] |= {
                    "requests": dict(made),
                    _EACH: own,
                    "requests of anybody for each": made.total() / tasks,
                }
    asked = [figures[_EACH] for t, figures in report.systems.items() if t.startswith(_WITH)]
    ratio = statistics.median(
        w / without for w, without in zip(steady[_WITH], steady[_WITHOUT], strict=True)
    )
    report.ratios["with / without a control directory, steady batch"] = ratio
    text = f"a steady batch takes at most {_SLOWER} times as long with the control directory"
    report.claims = [
        equal("results", "all runs find what DuckDB finds", found),
        at_most("overhead", text, ratio, _SLOWER),
        at_most(
            "requests",
            "a processor makes two requests in a batch, and a few more when a plan changes",
            max(asked),
            _REQUESTS,
        ),
    ]
    report.systems["machine"] = {"load": os.getloadavg()}
    return report


def _add(report: Report, title: str, ran: RanJob) -> float:
    """Add a run to the report; its steady batch."""
    numbers = range(1, len(ran.seconds) + 1)
    report.series.append(Series(title, numbers, ran.seconds, "s", "batch"))
    report.systems[title] = {"steady_batch_s": spread(ran.seconds[_WARM_UP:])}
    return statistics.median(ran.seconds[_WARM_UP:])
