"""The strategy that nobody named: predicted from the windows, which stay as they are."""

from __future__ import annotations

import pytest

from plait.engine.migrate.strategy import migrate
from plait.errors import MigrationError
from plait.local.host import LocalRun
from plait.node.strategy_choice import choose_strategy, knowledge_of
from plait.optimize.costs import DEFAULT
from plait.optimize.model import Model
from plait.plan.jtree import Join, Leaf, parse_shape
from plait.plan.routed import Teddies
from plait_lab.workloads.keyed import keyed_query, keyed_tables

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


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["(s0 (s1 (s2 s3)))", "((s0 s1) (s2 s3))", "((s0 (s1 s2)) s3)"])
def test_estimates_are_near_what_recomputing_finds(shape: str) -> None:
    run = run_of()
    plan, running = parse_shape(run.query, shape), run.engine.plan
    assert isinstance(running, Join | Leaf)
    known = knowledge_of(run.engine, (running, plan), 512).statistics(run.query)
    model = Model(run.query, known, DEFAULT)
    new = [frozenset(s.streams) for s in run.engine.tactic.combined]
    done = run.migrate(plan)
    found = [s.streams for s in run.engine.tactic.combined if s.streams not in new]
    predicted = sum(model.stored(sum(1 << s for s in streams)) for streams in found)
    assert predicted == pytest.approx(done.recomputed, rel=0.4)


@pytest.mark.slow
def test_a_plan_with_the_same_states_has_nothing_to_recompute() -> None:
    run = run_of()
    way = choose_strategy(run.engine, parse_shape(run.query, "(s3 (s2 (s1 s0)))"), DEFAULT)
    assert way.strategy == "moving-state"
    assert way.reason == "every state of the new plan exists already"


def test_two_states_that_meet_and_must_both_be_computed_are_predicted() -> None:
    query = keyed_query([["k"]] * 5, 2 * SECOND)
    run = LocalRun(query, parse_shape(query, "(s0 s1 s2 s3 s4)"))
    run.push(keyed_tables(query, 200, 50, 1))
    way = choose_strategy(run.engine, parse_shape(query, "(((s0 s1) (s2 s3)) s4)"), DEFAULT)
    assert way.work > 0 and "running both plans" in way.reason


@pytest.mark.slow
def test_asking_leaves_the_engine_alone() -> None:
    run = run_of()

    def everything() -> object:
        sizes = [(s.streams, s.rows, s.bytes) for s in run.engine.sizes()]
        counters = [c.to_state() for c in run.engine.counters]
        return run.engine.nbytes, sizes, counters, run.engine.plan

    before = everything()
    for shape in ("(s0 (s1 (s2 s3)))", "(s0 s1 s2 s3)", "((s0 s1) (s2 s3))"):
        choose_strategy(run.engine, parse_shape(run.query, shape), DEFAULT)
    assert everything() == before


def test_auto_recomputes_little_and_runs_both_plans_when_there_is_much_to_recompute() -> None:
    """Few partners in the plan that runs, many in the one to come."""
    query = keyed_query([["k1"], ["k1", "k2"], ["k2"]], 2 * SECOND)
    for domain, strategy in ((4_000, "moving-state"), (20, "parallel-track")):
        tables = keyed_tables(query, 2_000, {"k1": 4_000, "k2": domain}, 1)
        run = LocalRun(query, parse_shape(query, "((s0 s1) s2)"))
        run.push(tables)
        done = run.migrate(parse_shape(query, "(s0 (s1 s2))"), "auto")
        assert done.strategy == strategy and "running both plans" in done.reason
        assert run.migrations[0].reason == done.reason and done.pause > 0


def test_of_empty_windows_nothing_is_observed() -> None:
    run = run_of(rows=10)
    empty = LocalRun(run.query, parse_shape(run.query, SHAPE))
    plan = parse_shape(run.query, "(s0 (s1 (s2 s3)))")
    assert not knowledge_of(empty.engine, (plan,), 512).heard
    assert empty.migrate(plan, "auto").recomputed == 0


@pytest.mark.slow
def test_routers_leave_no_choice() -> None:
    run = run_of()
    assert run.migrate(Teddies(), "auto").strategy == "moving-state"
    assert run.migrate(parse_shape(run.query, SHAPE), "auto").strategy == "moving-state"


def test_an_engine_is_told_the_strategy() -> None:
    run = run_of(rows=100)
    plan = parse_shape(run.query, "(s0 s1 s2 s3)")
    with pytest.raises(MigrationError, match="no migration strategy 'auto'"):
        migrate(run.engine, plan, "auto")  # type: ignore[arg-type] # the host decides
