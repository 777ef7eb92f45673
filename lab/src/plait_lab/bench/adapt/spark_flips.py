"""The flips on Spark: static plans and the adaptive run, each in a process of its own.

All read the same files, one of each stream per batch. Times are those of whole micro-batches by a
clock, as Spark tells them; much of a small one is Spark's own. The first batches, in which Spark
starts and becomes warm, do not count. A static plan that takes far too long is stopped; the one
that the adaptive run begins with is not. Where a system runs several times, medians count.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from plait.plan.jtree import Node
from plait.plan.serde import dumps
from plait.query.query import Query
from plait.spark.environment import java
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.run import run_job
from plait_lab.bench.spark.systems import PLAIT
from plait_lab.reporting.report import (
    Claim,
    Note,
    Report,
    Series,
    at_least,
    at_most,
    equal,
    spread,
)
from plait_lab.workloads.changing import Batches, Regime, make_batches
from plait_lab.workloads.files import EPOCH, write_batches

_START_SECONDS = 60.0
"""What Spark may take to start and to stop."""
_LIMIT_SECONDS = 1200.0
_SECOND = 1_000_000
_HINDSIGHT, _STAY = 1.15, 3.0
OURS = "spark, adaptive"


@dataclass(frozen=True, slots=True)
class FlipOnSpark:
    """What runs on Spark."""

    keys: tuple[tuple[str, ...], ...]
    query: Query
    batches: Batches
    warm: int
    """Batches that do not count."""
    flip: int
    """The first batch after the flip."""
    plans: Mapping[str, Node]
    initial: str
    """The plan that the adaptive run begins with."""
    then: str
    """The plan that is expected to be best after the flip."""
    rounds: int
    """Runs of the adaptive system, and of that plan."""
    stop: float
    """Another static plan is stopped when it has taken so many times the time of the adaptive run,
    beside what Spark takes to start."""


@dataclass(frozen=True, slots=True)
class OnSpark:
    """One run: seconds of every batch, results, checksum, and the batches with a migration.

    The first `warm` batches do not count.
    """

    warm: int
    seconds: tuple[float, ...]
    results: tuple[int, int]
    moves: tuple[int, ...] = ()
    stopped: bool = False

    def phases(self, flip: int) -> tuple[float, float]:
        """Seconds before and after the flip; infinite if it was stopped."""
        before, after = sum(self.seconds[self.warm : flip]), sum(self.seconds[flip:])
        if self.stopped:
            return before if len(self.seconds) > flip else math.inf, math.inf
        return before, after


def spark_batches(
    query: Query, regimes: Sequence[Regime], seconds: float, seed: int
) -> list[dict[str, pa.Table]]:
    """One batch per regime; Spark's times are instants."""
    batches = make_batches(query, regimes, seconds, seed, EPOCH * _SECOND)
    return [{name: _instants(table) for name, table in batch.items()} for batch in batches]


def flip_on_spark(report: Report, given: FlipOnSpark, note: Note) -> None:
    """Add runs on Spark to a report."""
    if problem := java.missing():
        report.systems["spark"] = {"left out": problem}
        return
    found: dict[str, list[OnSpark]] = {}
    initial, then = f"spark, {given.initial}", f"spark, {given.then}"
    systems = {OURS: (given.plans[given.initial], True)}
    systems |= {f"spark, {name}": (plan, False) for name, plan in given.plans.items()}
    names = [*systems, *[OURS, then] * (given.rounds - 1)]
    with tempfile.TemporaryDirectory(prefix="plait-flips-") as scratch:
        files = Path(scratch) / "in"
        write_batches(given.batches, files)
        for number, name in enumerate(names):
            plan, adapt = systems[name]
            limit = _LIMIT_SECONDS
            if name not in (OURS, initial):
                limit = _START_SECONDS + given.stop * sum(found[OURS][0].seconds)
            where = Path(scratch) / str(number)
            job = Job(
                PLAIT,
                given.keys,
                given.query.bounds.widest,
                files=str(files),
                plan=dumps(plan),
                adapt=adapt,
            )
            found.setdefault(name, []).append(_run(name, job, where, given, limit, note))
    for name, runs in found.items():
        report.systems[name] = _figures(runs, given.flip, len(given.batches))
        seconds = runs[-1].seconds
        report.series.append(
            Series(name, range(len(seconds)), [1000 * s for s in seconds], "ms", "batch")
        )
    report.systems[OURS]["batches of migrations, from the flip"] = [
        [move - given.flip for move in run.moves] for run in found[OURS]
    ]
    report.claims += spark_claims(found, initial, given.flip)


def phases(runs: Sequence[OnSpark], flip: int) -> tuple[float, float]:
    """The medians of several runs."""
    before, after = zip(*(run.phases(flip) for run in runs), strict=True)
    return statistics.median(before), statistics.median(after)


def _figures(runs: Sequence[OnSpark], flip: int, batches: int) -> dict[str, Any]:
    run = runs[-1]
    if run.stopped:
        done = len(run.seconds)
        return {"seconds": f"stopped after {done} of {batches} batches, {sum(run.seconds):.3g} s"}
    before, after = phases(runs, flip)
    found = {"spread": spread([sum(r.phases(flip)) for r in runs])} if len(runs) > 1 else {}
    return found | {
        "seconds": before + after,
        "phase 1": before,
        "phase 2": after,
        "results": run.results[0],
        "median batch of phase 1": statistics.median(run.seconds[run.warm : flip] or [0.0]),
        "median batch of phase 2": statistics.median(run.seconds[flip:]),
    }


def spark_claims(found: Mapping[str, Sequence[OnSpark]], initial: str, flip: int) -> list[Claim]:
    """What must hold on Spark, from the seconds of whole batches."""
    took = {name: phases(runs, flip) for name, runs in found.items()}
    static = [name for name in found if name != OURS]
    best = [min(static, key=lambda name: took[name][p]) for p in range(2)]
    hindsight = sum(took[name][p] for p, name in enumerate(best))
    ours, stay = (sum(took[name]) for name in (OURS, initial))
    done = [run.results for runs in found.values() for run in runs if not run.stopped]
    return [
        at_most("spark-hindsight", f"on Spark within {_HINDSIGHT} times of the best of these plans "
                f"of each phase ({', '.join(best)})", ours / hindsight, _HINDSIGHT),
        at_least("spark-stay", f"on Spark at least {_STAY:g} times faster than staying with "
                 f"{initial}", stay / ours, _STAY),
        equal("spark-results", "on Spark all find the same results", done),
    ]  # fmt: skip


def _instants(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("ts")
    return table.set_column(at, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))


def _run(name: str, job: Job, where: Path, given: FlipOnSpark, limit: float, note: Note) -> OnSpark:
    may_stop = limit < _LIMIT_SECONDS
    ran = run_job(name, job, where, len(given.batches), limit, note, may_stop=may_stop)
    moved = [n for n, reports in enumerate(ran.reports) if any(r["migrations"] for r in reports)]
    return OnSpark(
        given.warm,
        ran.seconds,
        ran.results,
        tuple(ran.batches[n]["id"] for n in moved),
        ran.stopped,
    )
