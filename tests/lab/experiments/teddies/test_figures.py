"""The experiments of seed 004 on small inputs: that they run, and what does not depend on time."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from plait.engine.tactics.policies import Random
from plait_lab.bench import registry as bench
from plait_lab.experiments import registry
from plait_lab.experiments.teddies.figures import Dear
from plait_lab.reporting.report import Report

pytestmark = pytest.mark.slow


def _run(name: str, options: Mapping[str, str]) -> Report:
    report = registry.run(name, options)
    assert report.name == name
    assert report.seed == "004"
    json.dumps(report.to_dict())
    return report


def _claims(report: Report) -> dict[str, bool]:
    return {claim.id: claim.holds for claim in report.claims}


def test_a_dear_decision_is_the_same_decision() -> None:
    plain, dear = Random(1), Dear(Random(1), 10)
    assert [plain.choose(1, [1, 2]) for _ in range(9)] == [dear.choose(1, [1, 2]) for _ in range(9)]
    assert dear.counter == 90


def test_fig6_compares_at_every_selectivity() -> None:
    report = _run("teddies/fig6", {"most": "64", "decisions": "200", "repeats": "1"})
    assert list(report.series[0].x) == [0.125 * 2**k for k in range(10)]
    assert set(_claims(report)) == {"low", "high", "falls", "crossover", "results"}
    assert _claims(report)["results"]
    assert [s.label for s in report.series[2:]] == ["Teddies, intake 24", "Teddies, intake 192"]


def test_fig7_input_metaqueues_are_flat_and_later_ones_grow() -> None:
    report = _run("teddies/fig7", {"most": "32", "decisions": "3000"})
    claims = _claims(report)
    assert claims["five"]
    assert all(claims[f"input-flat-{k}"] for k in range(3))
    later = {s.label: s.y for s in report.series if len(s.label) > len("metaqueue R")}
    assert set(later) == {"metaqueue RS", "metaqueue ST"}
    assert all(y[-1] > 4 * y[0] for y in later.values())
    assert report.systems["selectivity 1, metaqueue R"]["longest_rounds"] >= 0


def test_fig8_adds_instructions() -> None:
    report = _run("teddies/fig8", {"most": "128", "rows": "20", "repeats": "1"})
    assert list(report.series[0].x) == [0, 2, 8, 32, 128]
    assert _claims(report)["results"]
    dearest = report.systems["128 instructions"]
    assert dearest["teddies, decisions"] < dearest["eddies, decisions"]


@pytest.mark.slow
def test_drift_runs_every_plan() -> None:
    options = {"rows": "2000", "repeats": "1", "finals": "2", "window_seconds": "1"}
    report = _run("teddies/drift", options)
    assert _claims(report)["results"]
    assert len(report.series) == 11 + 3
    assert report.systems["hindsight"]["seconds"] > 0


@pytest.mark.slow
def test_overhead_reports_how_long_tuples_wait() -> None:
    report = bench.run("teddies-overhead", {"rows": "2000", "repeats": "1"})
    assert len(report.claims) == 8
    waits = report.systems["chain, few results: teddies, ordered"]["wait"]
    assert waits["longest_rounds"] <= waits["bound_rounds"]
    assert "counter_limit=16" in waits["bounded by"]
