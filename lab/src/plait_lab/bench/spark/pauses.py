"""The pause of a migration on Spark: the batch in which it happens against the median batch."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from plait.errors import PlaitError
from plait.plan.migration import STRATEGIES
from plait.spark.environment import java
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.run import RanJob, run_job
from plait_lab.bench.spark.systems import PLAIT
from plait_lab.reporting.report import Note, Report, Series, equal
from plait_lab.workloads.files import Workload, write_parquet

_KEYS = (("k1",), ("k1", "k2"), ("k2",))
_OLD, _NEW = "((s0 s1) s2)", "(s0 (s1 s2))"
_ROWS, _BATCHES, _DOMAIN = 240_000, 24, 4_000
_WINDOW = 20_000_000
_WARM = 4
_AFTER = 8
_LIMIT_SECONDS = 240.0


def pauses_on_spark(report: Report, note: Note) -> None:
    """Add what a migration by each strategy does to the batches of a query on Spark."""
    if problem := java.missing():
        report.systems["spark"] = {"left out": problem}
        return
    workload = Workload(_KEYS, _WINDOW, _ROWS, _DOMAIN, _BATCHES, 1)
    found: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory(prefix="plait-pauses-") as scratch:
        files = Path(scratch) / "in"
        write_parquet(workload.tables(), workload.batches, files)
        for strategy in STRATEGIES:
            ran = _run(strategy, workload, files, Path(scratch) / strategy, note)
            seconds = ran.seconds
            changes = [[m for r in reports for m in r["migrations"]] for reports in ran.reports]
            began = next((n for n, c in enumerate(changes) if c), None)
            if began is None:
                raise PlaitError("the query ended before it was told to migrate")
            others = [s for n, s in enumerate(seconds) if n >= _WARM and not changes[n]]
            report.systems[f"spark, {strategy}"] = {
                "batch of the migration, seconds": seconds[began],
                "median batch, seconds": statistics.median(others),
                "pause of the slowest processor, seconds": max(m["pause"] for m in changes[began]),
                "recomputed": sum(m["recomputed"] for m in changes[began]),
                "batches with both plans": sum(map(bool, changes)),
            }
            report.series.append(
                Series(f"spark, {strategy}", range(1, len(seconds) + 1), seconds, "s", "batch")
            )
            found.append(ran.results)
    report.claims.append(equal("spark-results", "on Spark both find the same results", found))


def _run(strategy: str, workload: Workload, files: Path, where: Path, note: Note) -> RanJob:
    job = Job(
        PLAIT,
        workload.keys,
        workload.window,
        files=str(files),
        plan=_OLD,
        migrate_to=_NEW,
        strategy=strategy,
        migrate_after=_AFTER,
    )
    name = f"on Spark, {strategy}"
    return run_job(name, job, where, workload.batches, _LIMIT_SECONDS, note, may_stop=False)
