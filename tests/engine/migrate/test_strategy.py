"""Changing the plan of an engine: what is refused, and what is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plait.engine.driver import Engine
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.migrate.strategy import check_request, migrate
from plait.errors import MemoryExceeded, MigrationError, PlanError
from plait.plan.jtree import mjoin, parse_shape
from plait.plan.migration import STRATEGIES
from plait.plan.routed import Eddies, Plan, Teddies
from plait.testing.examples import clique

QUERY = clique(3)
SECOND = 1_000_000
TREE, OTHER = (parse_shape(QUERY, shape) for shape in ("((a b) c)", "(a (b c))"))


def push(engine: Engine, number: int, rows: int = 12) -> int:
    """Two seconds of rows, of the ten that a window is; how many results they complete."""
    times = np.arange(rows) * 2 * SECOND // rows + 2 * number * SECOND
    columns = [pa.array(times).cast(pa.timestamp("us")), pa.array(np.arange(rows) % 3)]
    batch = pa.RecordBatch.from_arrays(columns, names=["ts", "k"])
    arrivals = {s: engine.admit(s, batch, BEFORE_ALL_TIMES).arrivals for s in range(3)}
    found = engine.push(arrivals, [2 * (number + 1) * SECOND] * 3)
    return sum(results.num_rows for results in found)


def running(plan: Plan = TREE, batches: int = 3) -> Engine:
    engine = Engine(QUERY, plan)
    for number in range(batches):
        push(engine, number)
    return engine


def test_moving_state_is_done_at_once_and_says_what_it_took() -> None:
    engine = running()
    done = migrate(engine, OTHER, start=7, reason="it is cheaper")
    record = done.record
    assert engine.plan == OTHER and not engine.migrating and not done.waited
    assert (record.old, record.new, record.strategy) == (TREE, OTHER, "moving-state")
    assert (record.start, record.end, record.reason) == (7, 7, "it is cheaper")
    combined = engine.sizes()[3]
    assert combined.streams == ("b", "c") and record.recomputed == combined.rows > 0
    assert record.discarded > 0 and record.shared == 0 and record.pause > 0


def test_a_state_that_both_plans_have_is_shared() -> None:
    query = clique(4)
    old, new = (parse_shape(query, shape) for shape in ("(((a b) c) d)", "((a b) c d)"))
    engine = Engine(query, old)
    batch = pa.record_batch({"ts": pa.array([1, 2]).cast(pa.timestamp("us")), "k": [1, 1]})
    arrivals = {s: engine.admit(s, batch, BEFORE_ALL_TIMES).arrivals for s in range(4)}
    list(engine.push(arrivals, [0] * 4))
    record = migrate(engine, new).record
    assert (record.shared, record.recomputed, record.discarded) == (4, 0, 8)


def test_a_parallel_track_is_under_way_until_old_rows_are_gone() -> None:
    engine = running()
    record = migrate(engine, OTHER, "parallel-track", start=3).record
    assert engine.plan == OTHER and record.status == "under way"
    ended = []
    for number in range(3, 20):
        push(engine, number)
        ended += [(number, m.status) for m in engine.ended()]
    ((last, status),) = ended
    assert status == "done" and not engine.migrating
    assert 5 <= last + 1 - 3 <= 12, "a window is five batches"


@pytest.mark.parametrize(("batches", "plan"), [(0, OTHER), (3, TREE)], ids=["no rows", "the same"])
def test_a_track_with_nothing_to_wait_for_ends_at_once(batches: int, plan: Plan) -> None:
    engine = running(batches=batches)
    record = migrate(engine, plan, "parallel-track", start=3).record
    assert not engine.migrating and record.end == 3 and engine.plan == plan


def test_results_in_timestamp_order_are_held_back() -> None:
    engine = running()
    migrate(engine, OTHER, "parallel-track", order="timestamp")
    assert engine.holding_back
    plain = running()
    migrate(plain, OTHER, "parallel-track")
    assert not plain.holding_back


def test_what_waits_in_a_router_is_handed_out() -> None:
    engine = running(Teddies(counter_limit=1000, patience=50), batches=0)
    plain = running(batches=0)
    sizes = (20, 20, 1)
    found = sum(push(engine, number, rows) for number, rows in enumerate(sizes))
    wanted = sum(push(plain, number, rows) for number, rows in enumerate(sizes))
    done = migrate(engine, TREE)
    waited = sum(results.num_rows for results in done.waited)
    assert waited > 0 and found + waited == wanted
    assert done.record.boxes == (), "between a router and a tree no part stays"
    assert migrate(engine, OTHER).record.boxes


def test_during_a_migration_another_one_is_refused() -> None:
    engine = running()
    migrate(engine, OTHER, "parallel-track")
    for strategy in STRATEGIES:
        with pytest.raises(MigrationError, match=r"a migration to \(a \(b c\)\) is under way"):
            migrate(engine, TREE, strategy)
    assert engine.plan == OTHER


def test_a_plan_that_does_not_fit_leaves_the_engine_as_it_was() -> None:
    engine = running()
    engine.memory_limit = engine.windows.nbytes
    with pytest.raises(MemoryExceeded):
        migrate(engine, OTHER)
    engine.memory_limit = None
    assert engine.plan == TREE and push(engine, 3) == push(running(), 3)


BAD: list[tuple[Any, str, str, type[Exception], str]] = [
    (OTHER, "teleport", "any", MigrationError, "no migration strategy 'teleport'"),
    (OTHER, "moving-stat", "any", MigrationError, "did you mean 'moving-state'"),
    (OTHER, "auto", "size", MigrationError, "cannot be ordered by 'size'"),
    ("(a b c)", "auto", "any", MigrationError, "a str is not a plan"),
    (mjoin(clique(4)), "auto", "any", PlanError, "'d'"),
    (Eddies(), "parallel-track", "any", MigrationError, "cannot run beside another plan"),
]


@pytest.mark.parametrize(("plan", "strategy", "order", "error", "said"), BAD)
def test_requests_that_can_never_be_met_are_refused_by_name(
    plan: Any, strategy: str, order: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        check_request(QUERY, TREE, plan, strategy, order)


def test_a_router_that_runs_cannot_be_one_of_two_either() -> None:
    with pytest.raises(MigrationError, match=r"teddies .* cannot run beside"):
        check_request(QUERY, Teddies(), TREE, "parallel-track", "any")
    check_request(QUERY, Teddies(), TREE, "moving-state", "any")
    check_request(QUERY, TREE, Teddies(), "auto", "any")


def test_an_engine_does_not_choose_its_strategy() -> None:
    auto: Any = "auto"
    check_request(QUERY, TREE, OTHER, auto, "any")
    with pytest.raises(MigrationError, match="no migration strategy 'auto'"):
        migrate(running(), OTHER, auto)
