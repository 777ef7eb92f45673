"""The sets of table 2: what the equations say, and the limits at work."""

from __future__ import annotations

import pytest

from plait.errors import MemoryExceeded
from plait.optimize.layer_one import best_binary
from plait.workshop.experiments.qualified_runs import Options, fig7
from plait.workshop.experiments.qualified_sets import SETS, by_equations, need, paced


def test_the_equations_with_the_values_of_tables_2_and_3() -> None:
    given = SETS[0]
    joins = given.paper_joins()
    cost = by_equations(given, joins.plan(joins.mjoin()))
    assert cost.tuples == pytest.approx(300)
    assert cost.cpu == pytest.approx(60 * 4e-7 + (20 * 20 * 0.5 + 40 * 20 * 0.05) * 5 * 2.2e-6
                                     + 3 * 20**3 * 0.025 * 25 * 2.2e-6)  # fmt: skip


def test_a_plan_beyond_its_memory_fails_and_one_beyond_its_cpu_falls_behind() -> None:
    given = SETS[0]
    tables = given.tables(10.0, 1)
    joins = given.joins()
    tree = joins.plan(best_binary(joins))
    wanted = need(given, tree, tables, 10.0)
    failed = paced(given, tree, tables, 10.0, 1.0, wanted.bytes // 2)
    assert isinstance(failed.failure, MemoryExceeded)
    slow = paced(given, tree, tables, 10.0, 4 / wanted.cpu, 2 * wanted.bytes)
    assert slow.failure is None and slow.queued[-1] > 0
    fine = paced(given, tree, tables, 10.0, 0.1 / wanted.cpu, 2 * wanted.bytes)
    assert fine.failure is None and fine.queued[-1] == 0
    assert fine.throughput > slow.throughput


@pytest.mark.slow
def test_figure_7() -> None:
    report = fig7(Options(windows=3.0), lambda _: None)
    assert {s.unit for s in report.series} == {
        "results so far", "tuples in states", "tuples in queues",
    }  # fmt: skip
    assert any(c.id == "set-1-memory" and c.holds for c in report.claims)
