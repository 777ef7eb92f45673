"""The driver: one loop for every tactic, limits, and changes of tactic."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from plait.engine.driver import Engine
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.migrate.strategy import migrate
from plait.errors import MemoryExceeded, PlanError
from plait.plan.jtree import mjoin, parse_shape
from plait.plan.routed import Eddies, Plan, Teddies
from plait.testing.examples import clique
from plait.tuning import Tuning

QUERY = clique(3)
SECOND = 1_000_000
PLANS: dict[str, Plan] = {
    "mjoin": mjoin(QUERY),
    "tree": parse_shape(QUERY, "((a b) c)"),
    "eddies": Eddies(intake=7),
    "teddies": Teddies(),
    "patient teddies": Teddies(patience=3, counter_limit=1000, threshold_limit=1 << 16),
}


def batch(number: int, rows: int = 20) -> pa.RecordBatch:
    """Rows over two seconds of the ten that a window is."""
    times = np.arange(rows) * 2 * SECOND // rows + 2 * number * SECOND
    columns = [pa.array(times).cast(pa.timestamp("us")), pa.array(np.arange(rows) % 10)]
    return pa.RecordBatch.from_arrays(columns, names=["ts", "k"])


def push(
    engine: Engine, number: int, *, size: int = 20, restore: bool = False
) -> Counter[tuple[object, ...]]:
    rows = batch(number, size)
    arrivals = {s: engine.admit(s, rows, BEFORE_ALL_TIMES).arrivals for s in range(3)}
    reached = [2 * (number + 1) * SECOND] * 3
    if restore:
        engine.restore(arrivals, reached)
        return Counter()
    return results(engine.push(arrivals, reached))


def results(found: object) -> Counter[tuple[object, ...]]:
    table = pa.Table.from_batches(list(found), QUERY.schema)  # type: ignore[call-overload]  # batches
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def answers(engine: Engine, batches: range) -> Counter[tuple[object, ...]]:
    found = sum((push(engine, number) for number in batches), Counter[tuple[object, ...]]())
    return found + results(engine.finish())


@pytest.mark.slow
@pytest.mark.parametrize("which", PLANS)
def test_differential_every_tactic_finds_the_same(which: str) -> None:
    wanted = answers(Engine(QUERY, mjoin(QUERY)), range(9))
    for slice_rows in (1, 32_768):
        engine = Engine(QUERY, PLANS[which], tuning=Tuning(slice_rows=slice_rows))
        assert answers(engine, range(9)) == wanted
        assert engine.plan == PLANS[which] and not engine.migrating
    assert wanted.total() > 500


@pytest.mark.slow
@pytest.mark.parametrize("which", PLANS)
def test_what_was_restored_is_found_but_finds_nothing(which: str) -> None:
    whole, again = (Engine(QUERY, PLANS[which]) for _ in range(2))
    for number in range(6):
        push(whole, number)
        push(again, number, restore=True)
    list(whole.finish())
    assert results(again.finish()).total() == 0
    assert answers(again, range(6, 9)) == answers(whole, range(6, 9))


@pytest.mark.slow
@pytest.mark.parametrize("which", PLANS)
def test_rows_older_than_the_cutoff_are_gone(which: str) -> None:
    engine = Engine(QUERY, PLANS[which])
    for number in range(9):
        push(engine, number)
    list(engine.finish())
    push(engine, 9)
    marks = [20 * SECOND] * 3
    for stream, base in enumerate(engine.bases):
        assert engine.cutoff(stream, marks) <= 10 * SECOND
        assert base.older_than(engine.cutoff(stream, marks)) == 0
        assert len(base) >= 100


def test_tuples_that_wait_hold_the_cutoff_back() -> None:
    engine = Engine(QUERY, PLANS["patient teddies"])
    held = []
    for number in range(9):
        push(engine, number, size=20 if number < 6 else 1)
        reached = [2 * (number + 1) * SECOND] * 3
        held.append(engine.windows.cutoff(0, reached) - engine.cutoff(0, reached))
    assert max(held) > 0 and min(held) >= 0
    waited = [engine.tactic.waiting, bool(list(engine.finish())), engine.tactic.waiting]
    assert waited == [True, True, False]
    assert engine.cutoff(0, reached) == engine.windows.cutoff(0, reached)


def test_a_limit_is_kept_between_the_slices_of_a_batch() -> None:
    plan = parse_shape(QUERY, "((a b) c)")
    free = Engine(QUERY, plan)
    push(free, 0)
    tight = Engine(QUERY, plan, memory_limit=free.nbytes - 1)
    with pytest.raises(MemoryExceeded, match="the largest state is"):
        push(tight, 0)


@pytest.mark.parametrize("plan", [Eddies(), Teddies()], ids=str)
def test_routers_run_without_a_limit(plan: Plan) -> None:
    with pytest.raises(PlanError, match="cannot run within a memory limit"):
        Engine(QUERY, plan, memory_limit=10**6)


def test_a_router_is_there_if_one_is_at_work() -> None:
    assert Engine(QUERY, mjoin(QUERY)).router is None
    assert Engine(QUERY, mjoin(QUERY)).operators
    engine = Engine(QUERY, Eddies())
    assert engine.router is engine.tactic and not engine.operators


@pytest.mark.slow
def test_the_driver_replaces_a_track_that_has_ended() -> None:
    """Nobody has to ask: from one batch to the next the old plan is gone."""
    old, new = (parse_shape(QUERY, shape) for shape in ("((a b) c)", "(a (b c))"))
    engine, alone = Engine(QUERY, old), Engine(QUERY, new)
    windows = engine.windows
    for number in range(6):
        push(engine, number), push(alone, number)
    migrate(engine, new, "parallel-track", start=6)
    under_way = []
    for number in range(6, 16):
        assert push(engine, number) == push(alone, number)
        under_way.append(engine.migrating)
        assert (engine.migration is not None) == engine.migrating
        assert engine.plan == new and engine.windows is windows
    assert under_way == sorted(under_way, reverse=True) and under_way[0] and not under_way[-1]
    (record,) = engine.ended()
    assert record.status == "done" and record.end == 6 + under_way.count(True) + 1
    assert engine.ended() == [] and engine.last_ended == record
    assert [s.streams for s in engine.sizes()] == [s.streams for s in alone.sizes()]
