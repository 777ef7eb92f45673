"""An engine made from the description of another one goes on where that one stopped."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from plait.engine.driver import Engine
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.migrate.strategy import migrate
from plait.engine.saved import engine_from_state, engine_to_state
from plait.errors import MemoryExceeded
from plait.kernels.memory import NotSaved
from plait.plan.jtree import mjoin, parse_shape
from plait.plan.routed import Eddies, Plan, Teddies
from plait.testing.examples import clique
from plait.tuning import Tuning

QUERY = clique(3)
SECOND = 1_000_000
TREE, OTHER = (parse_shape(QUERY, shape) for shape in ("((a b) c)", "(a (b c))"))
PLANS: dict[str, Plan] = {
    "mjoin": mjoin(QUERY),
    "tree": TREE,
    "eddies": Eddies("lottery", intake=7),
    "teddies": Teddies(),
}
Results = Counter[tuple[object, ...]]


def push(engine: Engine, number: int, rows: int = 6, keys: int = 3) -> Results:
    """Two seconds of rows, of the ten that a window is."""
    times = np.arange(rows) * 2 * SECOND // rows + 2 * number * SECOND
    columns = [pa.array(times).cast(pa.timestamp("us")), pa.array(np.arange(rows) % keys)]
    batch = pa.RecordBatch.from_arrays(columns, names=["ts", "k"])
    arrivals = {s: engine.admit(s, batch, BEFORE_ALL_TIMES).arrivals for s in range(3)}
    found = list(engine.push(arrivals, [2 * (number + 1) * SECOND] * 3))
    table = pa.Table.from_batches(found, QUERY.schema)
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def again(engine: Engine) -> Engine:
    return engine_from_state(QUERY, engine_to_state(engine))


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("which", PLANS)
def test_differential_handed_over_after_some_batches(which: str, every: int) -> None:
    kept, read = Engine(QUERY, PLANS[which]), Engine(QUERY, PLANS[which])
    for number in range(9):
        assert push(kept, number) == push(read, number)
        if number % every == 0:
            read = again(read)
            assert read.plan == PLANS[which]
            assert read.sizes() == again(kept).sizes()
            wanted = [c.to_state() for c in again(kept).counters]
            assert [c.to_state() for c in read.counters] == wanted


def test_what_an_engine_was_made_with_goes_along() -> None:
    tuning = Tuning(slice_rows=3, portion_rows=5)
    engine = Engine(QUERY, TREE, hash_bits=7, memory_limit=10**7, tuning=tuning)
    found = again(engine)
    windows = found.windows
    assert (windows.tuning, windows.hash_bits) == (tuning, 7)
    assert windows.seed == engine.windows.seed and found.memory_limit == 10**7


def test_a_limit_is_kept_by_whoever_goes_on() -> None:
    engine = Engine(QUERY, TREE)
    push(engine, 0)
    engine.memory_limit = engine.nbytes
    read = again(engine)
    with pytest.raises(MemoryExceeded):
        push(read, 1, rows=50_000, keys=50_000)


@pytest.mark.slow
def test_differential_two_plans_beside_each_other() -> None:
    kept, read = Engine(QUERY, TREE), Engine(QUERY, TREE)
    for number in range(20):
        if number == 4:
            for engine in (kept, read):
                migrate(engine, OTHER, "parallel-track")
            assert kept.migrating
        assert push(kept, number) == push(read, number)
        read = again(read)
        assert read.migrating == kept.migrating and read.plan == kept.plan
    assert not kept.migrating and kept.plan == OTHER


def test_arrays_are_handed_over_and_not_copied() -> None:
    engine = Engine(QUERY, TREE)
    push(engine, 0)
    read = again(engine)
    for one, other in zip(engine.bases, read.bases, strict=True):
        assert np.shares_memory(one.window.latest, other.window.latest)


def test_engines_in_which_something_waits_are_not_described() -> None:
    holding = Engine(QUERY, TREE)
    push(holding, 0)
    migrate(holding, OTHER, "parallel-track", order="timestamp")
    assert holding.holding_back
    with pytest.raises(NotSaved, match="held back"):
        engine_to_state(holding)
    patient = Engine(QUERY, Teddies(counter_limit=1000, patience=50))
    for number, rows in enumerate((20, 20, 1)):
        push(patient, number, rows)
    assert patient.tactic.waiting
    with pytest.raises(NotSaved):
        engine_to_state(patient)


def test_only_trees_run_beside_each_other() -> None:
    saved = engine_to_state(Engine(QUERY, TREE))
    router = engine_to_state(Engine(QUERY, Eddies()))
    for plans in ([*saved["plans"], *router["plans"]], [*router["plans"], *saved["plans"]]):
        with pytest.raises(ValueError, match="only trees of joins"):
            engine_from_state(QUERY, {**saved, "plans": plans})


def test_a_description_for_another_query_is_refused() -> None:
    saved = engine_to_state(Engine(QUERY, TREE))
    with pytest.raises(ValueError, match="windows are of another query"):
        engine_from_state(clique(4), saved)
