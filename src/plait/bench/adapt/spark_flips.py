"""The flips on Spark: static plans and the adaptive run, each in a process of its own.

All read the same files, one of each stream per batch. Times are those of whole micro-batches by a
clock, as Spark tells them; much of a small one is Spark's own. The first batches, in which Spark
starts and becomes warm, do not count. A static plan that takes far too long is stopped; the one
that the adaptive run begins with is not.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from plait.bench.adapt.workloads import Batches, Regime, make_batches
from plait.bench.report import Claim, Note, Report, Series, at_least, at_most, equal
from plait.bench.spark.job import Job
from plait.bench.spark.launch import listen
from plait.bench.spark.systems import PLAIT
from plait.bench.spark.workload import EPOCH, write_batches
from plait.errors import PlaitError
from plait.plan.jtree import Node
from plait.plan.serde import dumps
from plait.query.query import Query
from plait.runtime.spark import java

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
    found: dict[str, OnSpark] = {}
    initial = f"spark, {given.initial}"
    systems = {OURS: (given.plans[given.initial], True)}
    systems |= {f"spark, {name}": (plan, False) for name, plan in given.plans.items()}
    with tempfile.TemporaryDirectory(prefix="plait-flips-") as scratch:
        files = Path(scratch) / "in"
        write_batches(given.batches, files)
        for number, (name, (plan, adapt)) in enumerate(systems.items()):
            limit = _LIMIT_SECONDS
            if name not in (OURS, initial):
                limit = _START_SECONDS + given.stop * sum(found[OURS].seconds)
            where = Path(scratch) / str(number)
            where.mkdir()
            job = Job(
                PLAIT,
                given.keys,
                given.query.bounds.widest,
                str(where),
                str(files),
                plan=dumps(plan),
                adapt=adapt,
            )
            found[name] = _run(name, job, where, given, limit, note)
    for name, run in found.items():
        report.systems[name] = _figures(run, given.flip, len(given.batches))
        report.series.append(
            Series(name, range(len(run.seconds)), [1000 * s for s in run.seconds], "ms", "batch")
        )
    moves = [m - given.flip for m in found[OURS].moves]
    report.systems[OURS]["batches of migrations, from the flip"] = moves
    report.claims += spark_claims(found, initial, given.flip)


def _figures(run: OnSpark, flip: int, batches: int) -> dict[str, Any]:
    if run.stopped:
        done = len(run.seconds)
        return {"seconds": f"stopped after {done} of {batches} batches, {sum(run.seconds):.3g} s"}
    before, after = run.phases(flip)
    return {
        "seconds": before + after,
        "phase 1": before,
        "phase 2": after,
        "results": run.results[0],
        "median batch of phase 1": statistics.median(run.seconds[run.warm : flip] or [0.0]),
        "median batch of phase 2": statistics.median(run.seconds[flip:]),
    }


def spark_claims(found: dict[str, OnSpark], initial: str, flip: int) -> list[Claim]:
    """What must hold on Spark, from the seconds of whole batches."""
    static = [name for name in found if name != OURS]
    best = [min(static, key=lambda name: found[name].phases(flip)[p]) for p in range(2)]
    hindsight = sum(found[name].phases(flip)[p] for p, name in enumerate(best))
    ours, stay = (sum(found[name].phases(flip)) for name in (OURS, initial))
    done = [run.results for run in found.values() if not run.stopped]
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
    def on_word(word: dict[str, Any]) -> None:
        if word["kind"] == "batch":
            note(f"{name}: batch {word['id'] + 1} of {len(given.batches)}")

    note(f"{name}: starting")
    command = [sys.executable, "-m", "plait.bench.spark.child", str(job.write(where / "job"))]
    heard = listen(command, where / "log", limit, on_word)
    if heard.error or (heard.over and limit >= _LIMIT_SECONDS):
        raise PlaitError(heard.error or f"{name} took more than {limit:g} s")
    told = heard.of("batch")
    return OnSpark(
        given.warm,
        tuple(b["durations"]["triggerExecution"] / 1000 for b in told),
        (sum(b["results"] for b in told), sum(int(b["checksum"]) for b in told)),
        tuple(b["id"] for b in told if any(json.loads(r)["migrations"] for r in b["reports"])),
        heard.over,
    )
