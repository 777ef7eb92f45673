"""Where results go: a Delta table that processors write, beside Spark's own Parquet sink.

The workload is that of `peers-output`: three streams on one key, and about 74 results for each row
of a stream. Both systems are Plait and read the same files; one hands its results to Spark, which
writes them with `to_df().writeStream.format("parquet")`, the other writes them itself with
`write_delta`. They take turns, a whole run each, because machines have slower and faster minutes.
What they have written is read afterwards, through the table's log or the sink's, and compared with
what DuckDB finds.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import duckdb

from plait.spark.environment import java
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.run import run_job
from plait_lab.bench.spark.systems import PLAIT, reference
from plait_lab.reporting.report import Note, Report, Series, at_least, equal, spread
from plait_lab.torture.spark.campaign import sink_files, table_files
from plait_lab.workloads.files import Workload, result_columns, row_checksum, write_parquet

_KEYS = (("k",),) * 3
_WARM_UP = 2
"""Batches that do not count as steady: Spark starts, code is compiled, windows fill."""
_FASTER = 1.4
_SINKS: dict[str, Callable[[Path], list[Path]]] = {"parquet": sink_files, "delta": table_files}
"""What is compared, and where each says which files count."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What can be varied."""

    rows: int = 200_000
    keys: int = 1_000
    window_seconds: float = 5.0
    batches: int = 10
    repeats: int = 2
    limit_seconds: float = 420.0
    """What one run may take."""
    cores: int = os.cpu_count() or 2
    memory_mb: int = 3_000
    seed: int = 1


def sink_delta(options: SinkOptions, note: Note) -> Report:
    """Many results to a Delta table by `write_delta`, beside Spark's own Parquet sink."""
    report = Report("sink-delta", asdict(options), runtime="spark")
    if problem := java.missing():
        report.systems["spark"] = {"left out": problem}
        return report
    window = round(options.window_seconds * 1000) * 1000
    workload = Workload(
        _KEYS, window, options.rows, options.keys, options.batches, options.seed, True
    )
    steady: dict[str, list[float]] = {sink: [] for sink in _SINKS}
    found: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory(prefix="plait-sinks-") as scratch:
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
        )
        for turn in range(options.repeats):
            for sink, named in _SINKS.items():
                title, where = f"{sink}, run {turn + 1}", Path(scratch) / f"{sink}-{turn}"
                mine = replace(job, sink=sink)
                ran = run_job(
                    title,
                    mine,
                    where,
                    options.batches,
                    options.limit_seconds,
                    note,
                    may_stop=False,
                )
                steady[sink] += ran.seconds[_WARM_UP:]
                numbers = range(1, len(ran.seconds) + 1)
                report.series.append(Series(title, numbers, ran.seconds, "s", "batch"))
                written = named(where / "out")
                found.append(_written(written))
                report.systems[title] = {
                    "steady_batch_s": spread(ran.seconds[_WARM_UP:]),
                    "results": found[-1][0],
                    "checksum": found[-1][1],
                    "files": len(written),
                    "bytes": sum(path.stat().st_size for path in written),
                }
    report.claims.append(equal("results", "both sinks have what DuckDB finds", found))
    ratio = statistics.median(steady["parquet"]) / statistics.median(steady["delta"])
    report.ratios["parquet / delta, steady batch"] = ratio
    text = f"a steady batch to Spark's Parquet sink takes at least {_FASTER} times as long"
    report.claims.append(at_least("faster", text, ratio, _FASTER))
    report.systems["machine"] = {"load": os.getloadavg()}
    return report


def _written(files: Sequence[Path]) -> tuple[int, int]:
    """Number and checksum of the results in files."""
    values = [f"epoch_us({c})" if c.endswith("_ts") else c for c in result_columns(_KEYS)]
    if not files:
        return 0, 0
    with closing(duckdb.connect()) as connection:
        names = ", ".join(f"'{path}'" for path in files)
        row = connection.execute(
            f"SELECT count(*), sum({row_checksum(values)}) FROM read_parquet([{names}])"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1] or 0)
