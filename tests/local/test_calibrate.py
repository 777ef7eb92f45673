"""Calibration: the fit finds what is there, and the workloads run."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from plait.local.calibrate import Workload, calibrate, fit
from plait.optimize.costs import DEFAULT, Costs
from plait.optimize.model import Operations


def test_the_prior_fills_in_what_the_runs_do_not_say() -> None:
    true = Costs(insert=1e-7)
    runs = [Operations(inserts=n) for n in (1e5, 1e6)]
    found = fit([(o, o.seconds(true)) for o in runs], DEFAULT).costs
    assert found.insert == pytest.approx(1e-7, rel=0.01)
    assert found.call == pytest.approx(DEFAULT.call)


def test_costs_are_never_negative() -> None:
    runs = [
        (Operations(inserts=1e6, deletes=1e6), 0.1),
        (Operations(inserts=1e6, deletes=2e6), 0.05),
    ]
    found = fit(runs).costs
    # Both runs at once would need deletes that take less than no time.
    assert found.delete == 0
    assert found.insert == pytest.approx(6e-8), "what is nearest to both runs without them"


def test_a_small_calibration_runs() -> None:
    workloads = [Workload("(a b)", 500, (50,), 5), Workload("((a b) c)", 300, (30, 30), 5)]
    notes: list[str] = []
    found = calibrate(2, workloads, notes.append)
    sizes = ("(a b), 500", "((a b) c), 300")
    assert notes == [f"round {n} of 2: {size} rows each" for n in (1, 2) for size in sizes]
    assert found.runs == 2, "of each workload the fastest"
    assert found.costs != DEFAULT, "the runs had a say"
    assert all(0 <= cost < 1 for cost in asdict(found.costs).values())
