"""What moving partition groups costs on Spark, and what a second processor gains.

*Moves.* Three streams share one key. When their windows are full, half of the first processor's
groups go to the second one, by PTLB or by MSLB. What counts is the longest batch from then on
beside the median batch of the same run.

*Processors.* The same rows with one processor and with two; and with further processors that hold
no group, which says what an idle one costs in each batch. Most combinations of rows that match are
looked at and few become results, so that the work is Plait's: Spark takes in the results of one
processor on the other core, and where they are many, one processor keeps both cores busy. And
batches are long, because every batch has a fixed price that no number of processors changes: about
0.8 s on two cores, for Spark's bookkeeping and for packing the rows, which uses all cores anyway.

Times are those of whole micro-batches. The first batches, in which Spark starts and windows fill,
do not count.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

from plait.groups.moves.move import Protocol
from plait.spark.environment import java
from plait.spark.environment.partitions import SETTING
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.run import RanJob, run_job
from plait_lab.bench.spark.systems import PLAIT
from plait_lab.reporting.report import Note, Report, Series, at_least, at_most, equal
from plait_lab.workloads.files import Workload, write_parquet
from plait_lab.workloads.keyed import RATE

_KEYS = (("k",),) * 3
_LIMIT_SECONDS = 900.0
_LONGEST = {"PTLB": 2.0, "MSLB": 3.0}
_FASTER = 1.7
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """What can be varied."""

    stored: int = 1_000_000
    """Rows in the windows of all streams together."""
    window_batches: int = 8
    """Batches in which a window passes."""
    keys: int = 1_600_000
    warm: int = 14
    """Batches that do not count."""
    batches: int = 44
    memory: str = "3g"
    seed: int = 1


def move_pause(options: MoveOptions, note: Note) -> Report:
    """The longest batch while partition groups move on Spark, beside the median batch."""
    report = Report("move-pause", asdict(options))
    per_batch = options.stored // len(_KEYS) // options.window_batches
    rows = per_batch * options.batches
    window = per_batch * options.window_batches * _SECOND // RATE
    workload = Workload(_KEYS, window, rows, options.keys, options.batches, options.seed)
    job = Job(PLAIT, _KEYS, window, memory=options.memory, adapt=False, balance=False)
    jobs = {"groups stay": job} | {
        protocol: replace(job, move_by=protocol, move_after=options.warm)
        for protocol in get_args(Protocol)
    }
    found = _run(report, workload, jobs, note)
    for name, ran in found.items():
        seconds, moved = ran.seconds[options.warm :], _moved(ran)
        median, longest = statistics.median(seconds), max(seconds)
        report.systems[name] = {
            "median batch, seconds": median,
            "longest batch, seconds": longest,
            "batches with groups on their way": len(moved),
            "rows moved": sum(rows for rows, _ in moved),
            "bytes moved": sum(size for _, size in moved),
        }
        if name in _LONGEST:
            limit = _LONGEST[name]
            report.claims.append(
                at_most(
                    name.lower(),
                    f"with {options.stored:,} stored rows, no batch is longer than {limit:g} "
                    f"times the median while groups move by {name}",
                    longest / median,
                    limit,
                )
            )
    return report


def _moved(ran: RanJob) -> list[tuple[int, int]]:
    """Rows and bytes that were exported in each batch with a move under way."""
    found = []
    for reports in ran.reports:
        answers = [answer for report in reports for answer in report["moves"]]
        if answers:
            sent = [answer for answer in answers if answer["what"] == "sent"]
            found.append((sum(a["rows"] for a in sent), sum(a["bytes"] for a in sent)))
    return found


@dataclass(frozen=True, slots=True)
class ProcessorOptions:
    """What can be varied."""

    rows: int = 640_000
    """Rows per stream."""
    keys: int = 1_600
    """Enough for both processors to have about as many rows."""
    one_of: int = 1_000
    """How many combinations of rows with equal keys there are for each result."""
    window_seconds: int = 96
    batches: int = 16
    warm: int = 10
    """Batches that do not count: in these Java's compiler takes up to a fifth of a core, which only
    one processor has to spare."""
    idle: int = 6
    """Further processors without a group."""
    memory: str = "3g"
    seed: int = 1


def processors(options: ProcessorOptions, note: Note) -> Report:
    """How much faster two processors are than one on Spark, and what idle ones cost."""
    report = Report("processors", asdict(options))
    window = options.window_seconds * _SECOND
    workload = Workload(_KEYS, window, options.rows, options.keys, options.batches, options.seed)
    job = Job(
        PLAIT,
        _KEYS,
        window,
        memory=options.memory,
        plan="mjoin",
        adapt=False,
        balance=False,
        condition=f"(s0.v + s1.v + s2.v) % {options.one_of} = 0",
    )
    more = 2 + options.idle
    one, two, idle = "one processor", "two processors", f"two of {more} processors"
    jobs = {
        one: replace(job, settings={SETTING: "1"}),
        two: replace(job, settings={SETTING: "2"}),
        idle: replace(job, settings={SETTING: str(more)}, holders=2),
    }
    found = _run(report, workload, jobs, note)
    if not found:
        return report
    medians = {n: statistics.median(ran.seconds[options.warm :]) for n, ran in found.items()}
    for name, median in medians.items():
        joining = statistics.median(_joining(found[name])[options.warm :])
        report.systems[name] = {
            "median batch, seconds": median,
            "of these the longest processor joins, seconds": joining,
        }
    each = (medians[idle] - medians[two]) / options.idle
    report.systems[idle]["an idle processor adds to a batch, seconds"] = each
    report.claims.append(
        at_least(
            "two",
            "two processors on two cores take in at least 1.7 times as many rows as one",
            medians[one] / medians[two],
            _FASTER,
        )
    )
    return report


def _joining(ran: RanJob) -> list[float]:
    """How long the processor that took longest has joined, in each batch."""
    return [max(r["seconds"]["join"] for r in reports) for reports in ran.reports]


def _run(
    report: Report, workload: Workload, jobs: Mapping[str, Job], note: Note
) -> dict[str, RanJob]:
    """Each job on the same files, one after the other; none without Java."""
    if problem := java.missing():
        report.systems["spark"] = {"left out": problem}
        return {}
    found: dict[str, RanJob] = {}
    with tempfile.TemporaryDirectory(prefix="plait-moves-") as scratch:
        files = Path(scratch) / "in"
        write_parquet(workload.tables(), workload.batches, files)
        for number, (name, job) in enumerate(jobs.items()):
            mine, where = replace(job, files=str(files)), Path(scratch) / str(number)
            found[name] = run_job(
                name, mine, where, workload.batches, _LIMIT_SECONDS, note, may_stop=False
            )
    for name, ran in found.items():
        report.series.append(Series(name, range(len(ran.seconds)), ran.seconds, "s", "batch"))
    results = [ran.results for ran in found.values()]
    report.claims.append(equal("results", "all find the same results", results))
    return found
