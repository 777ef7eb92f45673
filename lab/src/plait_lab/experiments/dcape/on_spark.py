"""D-CAPE on Spark: both adaptations, each alone, and none, by the clock of whole micro-batches.

Three streams share one key. Two of them are fast and match each other often; the third is slow, so
a plan that joins the fast ones first does much work for nothing. All runs begin with that plan, and
with almost all partition groups on the first of two processors. *LM* lets each processor change its
own plan, *LB* lets groups move between them. Then the same with one hot key instead of the skew:
it has most of the rows, and no move of groups helps. Of a thousand combinations of rows with equal
keys one becomes a result, so that the work is Plait's: Spark takes in results on the other core,
and where they are many, one processor keeps both cores busy.

The paper has ten machines and one that begins with half of the load. With two processors half is
even, so the first one begins with more. Batches are compared within one run, before and after, and
between the runs at the end of each. Runs follow each other, so the noise of the machine is in them.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow as pa

from plait.spark.environment import java
from plait_lab.bench.adapt.spark_flips import spark_batches
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.run import run_job
from plait_lab.bench.spark.systems import PLAIT
from plait_lab.reporting.report import (
    Claim,
    Note,
    Report,
    Series,
    at_most,
    equal,
)
from plait_lab.workloads.changing import Key, Regime
from plait_lab.workloads.files import write_batches
from plait_lab.workloads.keyed import keyed_query

_LIMIT_SECONDS = 900.0
_SECOND = 1_000_000
_NONE, _LM, _LB, _BOTH = "No-Adapt", "LM-only", "LB-only", "LM and LB"
_HOT, _HOT_LB = "hot key, groups stay", "hot key, balanced"


@dataclass(frozen=True, slots=True)
class Options:
    """The streams, and how long they run."""

    batches: int = 16
    warm: int = 4
    """Batches at the beginning that do not count: Spark starts, and windows fill."""
    last: int = 5
    """Batches at the end that count as after."""
    batch_seconds: float = 10.0
    window_seconds: float = 10.0
    fast: float = 10_000.0
    """Rows per second of the two fast streams."""
    slow: float = 4_000.0
    keys: int = 5_000
    skew: float = 0.94
    """The share of the groups that the first processor begins with."""
    hot: float = 0.6
    """The share of the rows that have the hot key, in the second part."""
    hot_rate: float = 64.0
    """Rows per second of each stream, in the second part."""
    parts: str = "skew,hot"
    """What is run: streams whose groups are skewed at the start, a hot key, or both."""
    memory: str = "3g"
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: seconds of each batch, results with their checksum, and what moved."""

    seconds: tuple[float, ...]
    results: tuple[int, int]
    sent: int
    """Bytes that were exported."""
    tables: int
    """Routing tables that the batches went by."""

    def before(self, options: Options) -> float:
        """The median batch of the beginning, by the first table and after the warm-up."""
        return statistics.median(self.seconds[options.warm : options.warm + 3])

    def after(self, options: Options) -> float:
        """The median batch of the end."""
        return statistics.median(self.seconds[-options.last :])


def spark(options: Options, note: Note) -> Report:
    """No-Adapt, LM-only, LB-only and both on Spark, skewed at the start; and a hot key."""
    report = Report("dcape/spark", asdict(options), seed="002")
    if problem := java.missing():
        report.systems["spark"] = {"left out": problem}
        return report
    found: dict[str, Ran] = {}
    if "skew" in options.parts:
        found |= _runs(_skewed_jobs(options), _skewed_batches(options), options, note)
    if "hot" in options.parts:
        found |= _runs(_hot_jobs(options), _hot_batches(options), options, note)
    for name, ran in found.items():
        report.systems[name] = {
            "median batch, before": ran.before(options),
            "median batch, after": ran.after(options),
            "results": ran.results[0],
            "bytes moved": ran.sent,
            "routing tables": ran.tables,
        }
        x = range(len(ran.seconds))
        report.series.append(Series(name, x, ran.seconds, "seconds", "batch"))
    report.claims += claims(found, options)
    return report


def claims(found: Mapping[str, Ran], options: Options) -> list[Claim]:
    """What must hold."""
    after = {name: ran.after(options) for name, ran in found.items()}
    before = {name: ran.before(options) for name, ran in found.items()}
    said: list[Claim] = []
    if _BOTH in found:
        alone = min(after[_LM], after[_LB])
        said += [
            at_most("rebalanced", "with groups that move, a batch at the end takes at most 0.65 of "
                    "one at the beginning", after[_LB] / before[_LB], 0.65),
            at_most("both", "both adaptations take less time for a batch at the end than either "
                    "alone", after[_BOTH] / alone, 1.0),
            at_most("lm", "changing plans alone takes less than doing nothing",
                    after[_LM] / after[_NONE], 1.0),
            at_most("lb", "moving groups alone takes less than doing nothing",
                    after[_LB] / after[_NONE], 1.0),
            equal("results", "all find the same results", [found[n].results for n in _SKEWED]),
        ]  # fmt: skip
    if _HOT in found:
        said += [
            at_most("hot", f"with one key that has {options.hot:.0%} of the rows, a batch at the "
                    "end takes at most 0.7 of what it takes where groups stay",
                    after[_HOT_LB] / after[_HOT], 0.7),
            equal("hot-results", "all find the same results with the hot key",
                  [found[n].results for n in (_HOT, _HOT_LB)]),
        ]  # fmt: skip
    return said


_SKEWED = (_NONE, _LM, _LB, _BOTH)


def _runs(
    wanted: Mapping[str, Job],
    batches: Sequence[Mapping[str, pa.Table]],
    options: Options,
    note: Note,
) -> dict[str, Ran]:
    found = {}
    with tempfile.TemporaryDirectory(prefix="plait-dcape-") as scratch:
        files = Path(scratch) / "in"
        write_batches(batches, files)
        for number, (name, job) in enumerate(wanted.items()):
            mine = replace(job, files=str(files))
            found[name] = _run(name, mine, Path(scratch) / str(number), options.batches, note)
    return found


def _run(name: str, job: Job, where: Path, batches: int, note: Note) -> Ran:
    ran = run_job(name, job, where, batches, _LIMIT_SECONDS, note, may_stop=False)
    reports = [report for batch in ran.reports for report in batch]
    return Ran(
        ran.seconds,
        ran.results,
        sum(answer.get("bytes", 0) for report in reports for answer in report["moves"]),
        len({report["table"] for report in reports}),
    )


def _job(options: Options) -> Job:
    window = round(options.window_seconds * _SECOND)
    return Job(
        PLAIT,
        (("k",),) * 3,
        window,
        plan="((s0 s1) s2)",
        condition="(s0.v + s1.v + s2.v) % 1000 = 0",
        memory=options.memory,
    )


def _skewed_jobs(options: Options) -> dict[str, Job]:
    job = replace(_job(options), skew=options.skew)
    return {
        _NONE: replace(job, adapt=False, balance=False),
        _LM: replace(job, adapt=True, balance=False),
        _LB: replace(job, adapt=False, balance=True),
        _BOTH: replace(job, adapt=True, balance=True),
    }


def _skewed_batches(options: Options) -> list[dict[str, pa.Table]]:
    """Two fast streams that match each other often, and a slow one."""
    return _batches(Regime((options.fast, options.fast, options.slow), {"k": Key(options.keys)}),
                    options, options.seed)  # fmt: skip


def _hot_jobs(options: Options) -> dict[str, Job]:
    job = replace(_job(options), plan="mjoin", adapt=False, skew=0.5)
    return {_HOT: replace(job, balance=False), _HOT_LB: replace(job, balance=True)}


def _hot_batches(options: Options) -> list[dict[str, pa.Table]]:
    """Few rows, most of them with one key; they match each other in great numbers."""
    regime = Regime((options.hot_rate,) * 3, {"k": Key(1, share=options.hot)})
    return _batches(regime, options, options.seed + 1)


def _batches(regime: Regime, options: Options, seed: int) -> list[dict[str, pa.Table]]:
    query = keyed_query([["k"]] * 3, round(options.window_seconds * _SECOND))
    return spark_batches(query, [regime] * options.batches, options.batch_seconds, seed)
