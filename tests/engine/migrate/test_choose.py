"""The choice of a strategy: estimates near the truth, and a decision from values alone."""

from __future__ import annotations

import pytest

from plait.bench.workloads import keyed_query, keyed_tables
from plait.engine.migrate.choose import Situation, moving_unless_dearer, situation
from plait.engine.migrate.moving_state import move_state
from plait.engine.tree import TreeEngine
from plait.plan.jtree import parse_shape
from plait.plan.migration import Strategy
from plait.plan.routed import Teddies
from plait.runtime.local import LocalRun

SECOND = 1_000_000
SHAPE = "(((s0 s1) s2) s3)"


def run_of(domain: int = 200, rows: int = 2_000) -> LocalRun:
    query = keyed_query([["k1"], ["k1", "k2"], ["k2", "k3"], ["k3"]], 2 * SECOND)
    tables = keyed_tables(query, rows, domain, 1)
    run = LocalRun(query, parse_shape(query, SHAPE))
    for b in range(10):
        size = rows // 10
        run.push({name: table.slice(b * size, size) for name, table in tables.items()})
    return run


def given(run: LocalRun, shape: str) -> tuple[Situation, TreeEngine]:
    assert isinstance(run.engine, TreeEngine)
    return situation(run.engine, parse_shape(run.query, shape)), run.engine


@pytest.mark.parametrize("shape", ["(s0 (s1 (s2 s3)))", "((s0 s1) (s2 s3))", "((s0 (s1 s2)) s3)"])
def test_estimates_are_near_what_recomputing_takes(shape: str) -> None:
    run = run_of()
    found, engine = given(run, shape)
    moved = move_state(engine, parse_shape(run.query, shape))
    rows = sum(moved.recomputed.values())
    assert found.recomputed is not None and found.recomputing is not None
    assert found.recomputed == pytest.approx(rows, rel=0.3)
    assert found.recomputing == pytest.approx(
        moved.work.probes + moved.work.visited + rows, rel=0.3
    )
    assert found.shared == sum(moved.shared.values())
    assert found.base_rows == sum(len(base) for base in engine.bases)


def test_a_plan_with_the_same_states_has_nothing_to_recompute() -> None:
    found, _ = given(run_of(), "(s3 (s2 (s1 s0)))")
    assert found.recomputed == 0 and found.shared > 0
    assert moving_unless_dearer(found)[0] == "moving-state"


def test_nothing_is_claimed_about_a_join_of_two_states_to_compute() -> None:
    query = keyed_query([["k"]] * 5, 2 * SECOND)
    tables = keyed_tables(query, 200, 50, 1)
    run = LocalRun(query, parse_shape(query, "(s0 s1 s2 s3 s4)"))
    run.push(tables)
    found, _ = given(run, "(((s0 s1) (s2 s3)) s4)")
    assert found.recomputed is None and found.recomputing is None
    assert moving_unless_dearer(found)[0] == "moving-state"


def test_the_estimate_leaves_the_states_alone() -> None:
    run = run_of()
    before = [(s.streams, s.rows) for s in run.engine.sizes()]
    given(run, "(s0 (s1 (s2 s3)))")
    assert [(s.streams, s.rows) for s in run.engine.sizes()] == before


def test_auto_recomputes_little_and_runs_both_plans_when_there_is_much_to_recompute() -> None:
    """Few partners in the plan that runs, many in the one to come."""
    query = keyed_query([["k1"], ["k1", "k2"], ["k2"]], 2 * SECOND)
    for domain, strategy in ((4_000, "moving-state"), (20, "parallel-track")):
        tables = keyed_tables(query, 2_000, {"k1": 4_000, "k2": domain}, 1)
        run = LocalRun(query, parse_shape(query, "((s0 s1) s2)"))
        run.push(tables)
        done = run.migrate(parse_shape(query, "(s0 (s1 s2))"), "auto")
        assert done.strategy == strategy and "operations" in done.reason


def test_another_chooser_can_decide() -> None:
    asked: list[Situation] = []

    def choose(found: Situation) -> tuple[Strategy, str]:
        asked.append(found)
        return "parallel-track", "because"

    run = run_of()
    done = run.migrate(parse_shape(run.query, "(s0 s1 s2 s3)"), "auto", choose=choose)
    assert (done.strategy, done.reason, done.status) == ("parallel-track", "because", "under way")
    assert run.migrations[0].reason == "because" and run.migrations[0].pause > 0
    assert len(asked) == 1


def test_routers_leave_no_choice() -> None:
    run = run_of()
    assert run.migrate(Teddies(), "auto").strategy == "moving-state"
    assert run.migrate(parse_shape(run.query, SHAPE), "auto").strategy == "moving-state"
