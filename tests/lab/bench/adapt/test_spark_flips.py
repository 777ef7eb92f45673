"""Flips on Spark: what is claimed follows from the seconds of whole batches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.adapt.conftest import QUERY

from plait.plan.jtree import mjoin, parse_shape
from plait.plan.serde import loads
from plait.spark.environment import java
from plait_lab.bench.adapt.spark_flips import (
    OURS,
    FlipOnSpark,
    OnSpark,
    flip_on_spark,
    spark_batches,
    spark_claims,
)
from plait_lab.bench.spark import run as spark_run
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.launch import Heard
from plait_lab.reporting.report import Report
from plait_lab.workloads.changing import Key, Regime

FLIP = 6
FIRST, SECOND = (parse_shape(QUERY, shape) for shape in ("(s0 (s1 s2))", "((s0 s1) s2)"))


def run(before: float, after: float, results: tuple[int, int] = (10, 77)) -> OnSpark:
    """Four batches in which Spark starts, two before the flip, four after it."""
    return OnSpark(4, (9.0,) * 4 + (before,) * 2 + (after,) * 4, results)


def test_the_first_batches_do_not_count() -> None:
    assert run(1.0, 2.0).phases(FLIP) == (2.0, 8.0)


def test_claims_compare_with_the_best_of_each_phase_and_with_staying() -> None:
    static = {
        "spark, old": [run(1.0, 8.0)],
        "spark, new": [run(5.0, 1.0), run(5.0, 9.0), run(5.0, 1.0)],
    }
    claims = spark_claims(static | {OURS: [run(1.0, 1.1)]}, "spark, old", FLIP)
    assert [(c.id, c.holds) for c in claims] == [
        ("spark-hindsight", True),
        ("spark-stay", True),
        ("spark-results", True),
    ]
    assert claims[0].value == (2 + 4.4) / (2 + 4) and claims[1].value == (2 + 32) / (2 + 4.4)
    claims = spark_claims(static | {OURS: [run(1.0, 4.0, (10, 78))]}, "spark, old", FLIP)
    assert [c.holds for c in claims] == [False, False, False]


def test_every_system_gets_the_same_files_and_slow_ones_are_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs: list[Job] = []

    def listen(
        command: list[str], _log: Path, limit: float, _on_word: object, environment: None
    ) -> Heard:
        job = Job.read(Path(command[-1]))
        jobs.append(job)
        plan = str(loads(job.plan))
        assert limit >= 600 if plan == str(FIRST) else limit < 300
        slow = plan == "(s0 s1 s2)"
        seconds = 9.0 if plan == str(FIRST) and not job.adapt else 1.0
        said = [
            {
                "kind": "batch",
                "id": b,
                "durations": {"triggerExecution": 1000 * (seconds if b >= FLIP else 1.0)},
                "results": 3,
                "checksum": "5",
                "reports": [f'{{"migrations": {[1] if job.adapt and b == FLIP else []}}}'],
            }
            for b in range(5 if slow else 10)
        ]
        return Heard(said, over=slow)

    monkeypatch.setattr(spark_run, "listen", listen)
    monkeypatch.setattr(java, "missing", lambda: "")
    regime = Regime((20.0,) * 3, {"k": Key(10), "m": Key(10)})
    plans = {str(plan): plan for plan in (FIRST, SECOND, mjoin(QUERY))}
    tables = spark_batches(QUERY, [regime] * 10, 2.0, seed=1)
    assert tables[0]["s0"].schema.field("ts").type == pa.timestamp("us", "UTC")
    report = Report("flips", {})
    keys = (("k",), ("k", "m"), ("m",))
    flip_on_spark(
        report,
        FlipOnSpark(keys, QUERY, tables, 2, FLIP, plans, str(FIRST), str(SECOND), 2, stop=5.0),
        lambda _: None,
    )
    assert [job.adapt for job in jobs] == [True, False, False, False, True, False]
    assert jobs[-1].plan == jobs[2].plan and jobs[-1].plan != jobs[1].plan
    assert len({job.files for job in jobs}) == 1 and len({job.scratch for job in jobs}) == 6
    assert report.systems[OURS]["batches of migrations, from the flip"] == [[0], [0]]
    assert report.systems["spark, (s0 s1 s2)"] == {"seconds": "stopped after 5 of 10 batches, 5 s"}
    assert [claim.holds for claim in report.claims] == [True, True, True]
    assert report.claims[1].value == (4 + 36) / (4 + 4)
