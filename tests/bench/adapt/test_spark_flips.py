"""Flips on Spark: what is claimed follows from the seconds of whole batches."""

from __future__ import annotations

from plait.bench.adapt.spark_flips import OURS, OnSpark, spark_claims

FLIP = 6


def run(before: float, after: float, results: tuple[int, int] = (10, 77)) -> OnSpark:
    """Four batches in which Spark starts, two before the flip, four after it."""
    return OnSpark(4, (9.0,) * 4 + (before,) * 2 + (after,) * 4, results)


def test_the_first_batches_do_not_count() -> None:
    assert run(1.0, 2.0).phases(FLIP) == (2.0, 8.0)


def test_claims_compare_with_the_best_of_each_phase_and_with_staying() -> None:
    static = {"spark, old": run(1.0, 8.0), "spark, new": run(5.0, 1.0)}
    claims = spark_claims(static | {OURS: run(1.0, 1.1)}, "spark, old", FLIP)
    assert [(c.id, c.holds) for c in claims] == [
        ("spark-hindsight", True),
        ("spark-stay", True),
        ("spark-results", True),
    ]
    assert claims[0].value == (2 + 4.4) / (2 + 4) and claims[1].value == (2 + 32) / (2 + 4.4)
    claims = spark_claims(static | {OURS: run(1.0, 4.0, (10, 78))}, "spark, old", FLIP)
    assert [c.holds for c in claims] == [False, False, False]
