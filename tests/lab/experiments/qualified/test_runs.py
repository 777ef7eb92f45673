"""The sets of table 2: what the equations say, and the limits at work."""

from __future__ import annotations

import pytest

from plait_lab.experiments.qualified.parameter_sets import (
    SETS,
    TUPLE_BYTES,
    VISIBLE_2,
    VISIBLE_4,
    by_equations,
    cheapest,
    run,
)
from plait_lab.experiments.qualified.runs import Options, fig7, fig8


def test_the_equations_with_the_values_of_tables_2_and_3() -> None:
    given = SETS[0]
    cost = by_equations(given, given.plans()["mjoin"])
    assert cost.tuples == pytest.approx(300)
    assert cost.cpu == pytest.approx(60 * 4e-7 + (20 * 20 * 0.5 + 40 * 20 * 0.05) * 5 * 2.2e-6
                                     + 3 * 20**3 * 0.025 * 25 * 2.2e-6)  # fmt: skip


def test_the_sets_are_those_of_table_2() -> None:
    assert [s.memory_mb for s in SETS] == [300, 300, 30, 30]
    assert [s.selectivities for s in SETS] == [
        (0.05, 0.5),
        (0.02, 0.5),
        (0.1, 0.15, 0.1),
        (0.02, 0.2, 0.05),
    ]
    assert {s.cpu for s in SETS} == {1.0}
    assert TUPLE_BYTES * 600 == 12_000_000 and SETS[2].room == 1500


def test_by_the_equations_table_2_does_not_have_the_plans_that_are_reported() -> None:
    both = [by_equations(SETS[1], plan) for plan in SETS[1].plans().values()]
    assert all(cost.cpu < 0.35 and cost.tuples < SETS[1].room for cost in both)
    assert cheapest(SETS[3]).cost.cpu > 35


def test_in_the_disclosed_settings_a_plan_must_trade() -> None:
    for given, fits in ((VISIBLE_2, "binary tree"), (VISIBLE_4, "jtree")):
        costs = {label: by_equations(given, plan) for label, plan in given.plans().items()}
        qualified = {
            label
            for label, cost in costs.items()
            if cost.cpu <= given.cpu and cost.tuples <= given.room
        }
        assert qualified == {fits}
        assert costs["mjoin"].tuples < costs[fits].tuples, "it takes more memory"
        assert costs["mjoin"].cpu > costs[fits].cpu, "to save CPU"


@pytest.mark.slow
def test_a_plan_beyond_its_memory_crashes_and_one_beyond_its_cpu_falls_behind() -> None:
    plans = VISIBLE_4.plans()
    tree = run(VISIBLE_4, plans["binary tree"], 120.0, 1, 10)
    assert tree.crashed is not None and tree.crashed < 120
    assert tree.throughput == tree.results(tree.crashed) < tree.trace.results
    mjoin, jtree = (run(VISIBLE_4, plans[k], 120.0, 1, 10) for k in ("mjoin", "jtree"))
    assert mjoin.crashed is None and jtree.crashed is None
    assert mjoin.queued > jtree.queued
    assert mjoin.throughput < jtree.throughput


@pytest.mark.slow
def test_figure_7() -> None:
    report = fig7(Options(windows=3.0, seeds=1), lambda _: None)
    assert {s.unit for s in report.series} == {
        "results so far", "tuples in states", "tuples in queues",
    }  # fmt: skip
    claims = {c.id: c.verdict for c in report.claims}
    assert claims["memory"] == claims["throughput"] == claims["recompute-maintain"] == "reproduced"


@pytest.mark.slow
def test_figure_8_says_what_table_2_does_not_have() -> None:
    report = fig8(Options(windows=2.5, seeds=1, slices=10), lambda _: None)
    claims = {c.id: c.verdict for c in report.claims}
    assert report.holds
    assert claims["set-2-unqualified"] == claims["set-4-cpu"] == "contradicted"
    assert claims["set-3-memory"] == claims["visible-2-throughput"] == "reproduced"
