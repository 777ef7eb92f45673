"""Metaqueues: thresholds, counters, turns, and how long tuples wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.engine.driver import Engine
from plait.engine.intake.ingest import Arrivals
from plait.engine.tactics.routed import BLOCK, Station, TuplePacket
from plait.engine.tactics.teddy import Metaqueue, TeddyTactic
from plait.local.host import LocalRun
from plait.plan.routed import POLICIES, Teddies
from plait.query.bounds import Constraint
from plait.query.expr import Call, Column
from plait.query.query import Field, Query, Stream, make_query
from plait.testing.examples import chain, clique
from plait.tuning import USUAL, Tuning
from plait_lab.engine.longest_wait import longest_wait
from plait_lab.laws.strategies.histories import History, crowds


def packet(blocks: Sequence[int], earliest: int = 0) -> TuplePacket:
    columns = {0: np.arange(len(blocks)).astype(np.uint32), BLOCK: np.array(blocks, np.int32)}
    return TuplePacket(columns, min(blocks), earliest)


def test_a_metaqueue_hands_out_what_waited_longest() -> None:
    queue = Metaqueue(Station(1, (0,), (1,)))
    queue.put(packet([5, 5, 5], 9), 0, 0.0)
    queue.put(packet([3, 4], 2), 1, 1.0)
    queue.begin_turn(16)
    first = queue.take(2, now=2, clock=2.0)
    assert (len(first), first.oldest, first.earliest, queue.occupancy) == (2, 5, 9, 3)
    queue.begin_turn(16)
    second = queue.take(10, now=4, clock=5.0)
    assert second.columns[BLOCK].tolist() == [5, 3, 4]
    assert (second.oldest, second.earliest, queue.occupancy) == (3, 2, 0)
    told = queue.report(("a", "b"))
    assert (told.streams, told.packets, told.tuples, told.occupancy) == (("a",), 2, 5, 4.0)
    assert (told.longest_rounds, told.mean_rounds, told.most) == (4, 14 / 5, 5)
    assert (told.longest_seconds, told.mean_seconds) == (5.0, 17.0 / 5)


def batch(query: Query, rows: int, start: int) -> dict[int, Arrivals]:
    """Rows of every stream at the same instants, all with one key."""
    times = np.arange(start, start + rows, dtype=np.int64)
    payload = {"ts": pa.array(times).cast(pa.timestamp("us"))}
    zeros = np.zeros(rows, np.int64)
    return {
        s: Arrivals(times, dict.fromkeys(query.graph.classes_of(s), zeros), payload)
        for s in range(len(query.streams))
    }


def push(engine: Engine, arrivals: Mapping[int, Arrivals], reached: int) -> int:
    marks = [reached] * len(engine.query.streams)
    return sum(found.num_rows for found in engine.push(arrivals, marks))


def engine_of(
    query: Query, settings: Teddies, tuning: Tuning = USUAL
) -> tuple[Engine, TeddyTactic]:
    ticks = count()
    engine = Engine(query, settings, tuning=tuning)
    teddy = TeddyTactic(engine.windows, settings, clock=lambda: float(next(ticks)))
    engine.adopt(teddy)
    return engine, teddy


def test_the_threshold_of_a_busy_metaqueue_doubles_up_to_its_limit() -> None:
    engine, teddy = engine_of(clique(2), Teddies(threshold_limit=16))
    seen = []
    for turn in range(6):
        push(engine, batch(engine.query, 50, 100 * turn), 100 * turn)
        seen.append(teddy.metaqueues()[0].threshold)
    assert seen == [2, 4, 8, 16, 16, 16]


def test_the_threshold_doubles_at_twice_the_occupancy_only() -> None:
    engine, teddy = engine_of(clique(2), Teddies())
    for turn in range(5):
        push(engine, batch(engine.query, 7, 100 * turn), 100 * turn)
    # 7 is at least twice 1, 2 and 3, but not twice 4.
    assert teddy.metaqueues()[0].threshold == 4


def test_the_threshold_shrinks_past_the_counter_limit() -> None:
    engine, teddy = engine_of(clique(2), Teddies(counter_limit=3))
    for turn in range(6):
        push(engine, batch(engine.query, 50, 100 * turn), 100 * turn)
    assert [q.threshold for q in teddy.metaqueues()] == [32, 32]
    only_b = {1: batch(engine.query, 50, 1000)[1]}
    thresholds = []
    for _ in range(8):
        push(engine, only_b, 0)
        thresholds.append(teddy.metaqueues()[0].threshold)
    # One round of b each: a's counter passes 3 in the fourth of them (it began at 1).
    assert thresholds[-1] < 32
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] == 32


def test_a_batch_is_worked_off_unless_patience_says_otherwise() -> None:
    for patience, waits in ((0, False), (1, True)):
        engine, teddy = engine_of(chain(3), Teddies(patience=patience, counter_limit=1000))
        waited, results = [], 0
        for turn in range(10):
            rows = 8 if turn < 6 else 1
            results += push(engine, batch(engine.query, rows, 1000 * turn), 0)
            waited.append(teddy.under_way)
        assert any(waited) is waits
        results += sum(found.num_rows for found in engine.finish())
        assert teddy.under_way == 0
        n = 6 * 8 + 4
        assert results == n**3


@pytest.mark.slow
def test_memory_is_bounded_by_packets_not_by_the_result() -> None:
    """One key: every visit multiplies; what waits stays within a few packets a history."""
    settings = Teddies(packet_limit=8, intake=30)
    engine, teddy = engine_of(clique(4), settings, Tuning(portion_rows=16))
    found = push(engine, batch(engine.query, 12, 0), 0)
    assert found == 12**4
    most = max(q.most for q in teddy.metaqueues())
    # A portion may be exceeded by the chains under way when it is reached.
    assert most <= 4 * 8 + 16 + 64


@pytest.mark.slow
@settings(max_examples=40)
@given(
    crowds(streams=st.integers(2, 4)),
    st.builds(
        Teddies,
        policy=st.sampled_from(POLICIES),
        packet_limit=st.sampled_from((1, 2, 5, 1 << 16)),
        threshold_limit=st.sampled_from((1, 4, 64)),
        counter_limit=st.sampled_from((0, 2, 5)),
        patience=st.sampled_from((0, 2, 1000)),
        intake=st.sampled_from((1, 3, None)),
    ),
)
def test_no_tuple_waits_longer_than_the_bound(history: History, settings: Teddies) -> None:
    """Every tuple leaves its metaqueue within the bound, and nothing stays in the end."""
    run = LocalRun(history.query, settings)
    teddy = run.engine.tactic
    assert isinstance(teddy, TeddyTactic)
    for tables in history.tables():
        run.push(tables)
        if settings.patience == 0:
            assert teddy.under_way == 0
        _check_waits(teddy, settings)
    list(run.finish())
    assert teddy.under_way == 0


def _check_waits(teddy: TeddyTactic, settings: Teddies) -> None:
    queues = teddy.metaqueues()
    if queues:
        bound = longest_wait(settings, len(queues), max(q.most for q in queues))
        assert max(q.longest_rounds for q in queues) <= bound


def test_a_waiting_tuple_outlives_every_watermark() -> None:
    """b comes 1 to 3 after a; nothing to come could join the waiting b, but a is there already."""
    fields = (Field("ts", pa.timestamp("us")), Field("k", pa.int64()))
    bounds = (Constraint(0, 1, 3), Constraint(1, 0, -1))
    keys = [Call("eq", (Column("a", "k"), Column("b", "k")))]
    query = make_query([Stream(n, fields, "ts") for n in "ab"], keys, bounds)
    engine, teddy = engine_of(query, Teddies(patience=100, counter_limit=1000))
    for turn in range(6):
        push(engine, batch(query, 20, 1000 * turn), 1000 * turn)
    push(engine, {0: batch(query, 1, 8008)[0]}, 8008)
    list(engine.finish())
    assert push(engine, {1: batch(query, 1, 8010)[1]}, 8008) == 0
    assert teddy.under_way == 1
    assert push(engine, {}, 9000) == 0
    assert sum(found.num_rows for found in engine.finish()) == 1
