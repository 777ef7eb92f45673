"""The plan-quality benchmark, small."""

from __future__ import annotations

import pytest

from plait_lab.bench.plan_quality import Options, plan_quality


@pytest.mark.slow
def test_it_measures_every_shape_and_explains_the_worst() -> None:
    report = plan_quality(
        Options(queries=2, repeats=1, most_work=12_000, windows=2.0), lambda _: None
    )
    worst = report.systems["plait"]["worst"]
    assert worst["ratio"] >= 1 and worst["reason"] and worst["plans"] >= 3
    assert [claim.id for claim in report.claims] == ["median-ratio"]
