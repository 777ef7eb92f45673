"""The flips on Spark: some static plans and the adaptive run, each in a process of its own.

All read the same files, one of each stream per batch. Times are those of whole micro-batches by a
clock, as Spark tells them; most of a small one is Spark's own. The first batches, in which Spark
starts, do not count.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from plait.bench.adapt.workloads import Regime, make_batches
from plait.bench.report import Claim, Note, Report, Series, at_least, at_most, equal
from plait.bench.spark.job import Job
from plait.bench.spark.launch import listen
from plait.bench.spark.systems import PLAIT
from plait.bench.spark.workload import EPOCH, write_batches
from plait.errors import PlaitError
from plait.query.query import Query
from plait.runtime.spark import java

_WARM = 4
_LIMIT_SECONDS = 900.0
_SECOND = 1_000_000
_HINDSIGHT, _STAY = 1.15, 3.0
OURS = "spark, adaptive"


@dataclass(frozen=True, slots=True)
class OnSpark:
    """One run: seconds of every batch, results, checksum, and the batches with a migration."""

    seconds: tuple[float, ...]
    results: tuple[int, int]
    moves: tuple[int, ...] = ()

    def phases(self, flip: int) -> tuple[float, float]:
        """Seconds before and after the flip, without the first batches."""
        return sum(self.seconds[_WARM:flip]), sum(self.seconds[flip:])


def flip_on_spark(
    report: Report,
    keys: tuple[tuple[str, ...], ...],
    regimes: tuple[Regime, Regime],
    query: Query,
    lengths: tuple[int, int],
    plans: Sequence[str],
    seed: int,
    note: Note,
) -> None:
    """Add runs on Spark to a report; the adaptive one begins with the first of the plans."""
    if problem := java.missing():
        report.systems["spark"] = {"left out": problem}
        return
    flip = lengths[0]
    found: dict[str, OnSpark] = {}
    with tempfile.TemporaryDirectory(prefix="plait-flips-") as scratch:
        files = Path(scratch) / "in"
        every = [r for r, n in zip(regimes, lengths, strict=True) for _ in range(n)]
        batches = make_batches(query, every, 1.0, seed, EPOCH * _SECOND)
        write_batches([{n: _instants(t) for n, t in batch.items()} for batch in batches], files)
        systems = {f"spark, {plan}": (plan, False) for plan in dict.fromkeys(plans)}
        systems[OURS] = (plans[0], True)
        for number, (name, (plan, adapt)) in enumerate(systems.items()):
            where = Path(scratch) / str(number)
            where.mkdir()
            job = Job(
                PLAIT, keys, query.bounds.widest, str(where), str(files), plan=plan, adapt=adapt
            )
            found[name] = _run(name, job, where, len(batches), note)
    for name, run in found.items():
        before, after = run.phases(flip)
        report.systems[name] = {
            "seconds": before + after,
            "phase 1": before,
            "phase 2": after,
            "results": run.results[0],
            "median batch of phase 1": statistics.median(run.seconds[_WARM:flip] or [0.0]),
            "median batch of phase 2": statistics.median(run.seconds[flip:]),
        }
        report.series.append(
            Series(name, range(len(run.seconds)), [1000 * s for s in run.seconds], "ms", "batch")
        )
    moves = [m - flip for m in found[OURS].moves]
    report.systems[OURS]["batches of migrations, from the flip"] = moves
    report.claims += spark_claims(found, f"spark, {plans[0]}", flip)


def spark_claims(found: dict[str, OnSpark], initial: str, flip: int) -> list[Claim]:
    """What must hold on Spark, from the seconds of whole batches."""
    static = [name for name in found if name != OURS]
    hindsight = sum(min(found[name].phases(flip)[p] for name in static) for p in range(2))
    ours, stay = (sum(found[name].phases(flip)) for name in (OURS, initial))
    return [
        at_most("spark-hindsight", f"on Spark within {_HINDSIGHT} times of the best of these plans "
                "of each phase", ours / hindsight, _HINDSIGHT),
        at_least("spark-stay", f"on Spark at least {_STAY:g} times faster than staying with "
                 f"{initial}", stay / ours, _STAY),
        equal("spark-results", "on Spark all find the same results",
              [run.results for run in found.values()]),
    ]  # fmt: skip


def _instants(table: pa.Table) -> pa.Table:
    """Spark's times are instants."""
    at = table.schema.get_field_index("ts")
    return table.set_column(at, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))


def _run(name: str, job: Job, where: Path, batches: int, note: Note) -> OnSpark:
    def on_word(word: dict[str, Any]) -> None:
        if word["kind"] == "batch":
            note(f"{name}: batch {word['id'] + 1} of {batches}")

    note(f"{name}: starting")
    command = [sys.executable, "-m", "plait.bench.spark.child", str(job.write(where / "job"))]
    heard = listen(command, where / "log", _LIMIT_SECONDS, on_word)
    if heard.over or heard.error:
        raise PlaitError(heard.error or f"{name} took more than {_LIMIT_SECONDS:g} s")
    told = heard.of("batch")
    return OnSpark(
        tuple(b["durations"]["triggerExecution"] / 1000 for b in told),
        (sum(b["results"] for b in told), sum(int(b["checksum"]) for b in told)),
        tuple(b["id"] for b in told if any(json.loads(r)["migrations"] for r in b["reports"])),
    )
