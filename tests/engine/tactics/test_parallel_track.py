"""Parallel track: who finds what, when the old plan goes, and what remains."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plait.engine.counters import InputCounters
from plait.engine.driver import Engine
from plait.engine.migrate.moving_state import all_tuples
from plait.engine.migrate.strategy import migrate
from plait.engine.tactics.operators import Operator
from plait.engine.tactics.parallel_track import ParallelTrack
from plait.engine.tactics.tree import TreeTactic
from plait.errors import MemoryExceeded, MigrationError
from plait.kernels.ring import ids_of
from plait.local.host import LocalRun
from plait.plan.boxes import boxes
from plait.plan.jtree import joins, parse_shape
from plait.query.query import Query
from plait.testing.oracle.checksum import checksum
from plait_lab.workloads.keyed import keyed_query, keyed_tables

SECOND = 1_000_000
OLD, NEW = "((s0 s1) s2)", "(s0 (s1 s2))"
ROWS, BATCHES, START = 800, 16, 6
Batches = list[dict[str, pa.Table]]


def workload(*, domain: int = 10, window: int = SECOND // 5) -> tuple[Query, Batches]:
    """Four windows' worth of rows; a window passes in four batches."""
    query = keyed_query([["k1"], ["k1", "k2"], ["k2"]], window)
    tables = keyed_tables(query, ROWS, domain, 5)
    size = ROWS // BATCHES
    return query, [
        {name: table.slice(b * size, size) for name, table in tables.items()}
        for b in range(BATCHES)
    ]


def started(query: Query, batches: Batches, **settings: Any) -> LocalRun:
    run = LocalRun(query, parse_shape(query, OLD))
    for batch in batches[:START]:
        run.push(batch)
    run.migrate(parse_shape(query, NEW), "parallel-track", **settings)
    return run


def track(run: LocalRun) -> ParallelTrack:
    assert isinstance(run.engine.tactic, ParallelTrack)
    return run.engine.tactic


def boxes_of(found: ParallelTrack) -> tuple[list[Operator], list[Operator]]:
    """The joins of the old and of the new box of a track with one box."""
    (replaced,) = found.replaced
    return list(replaced.old.values()), list(replaced.joins.values())


def inputs_of(operators: list[Operator], streams: int) -> list[InputCounters]:
    """The counters of the inputs that are streams."""
    found = {
        stream: operator.counters.inputs[c]
        for operator in operators
        for c, state in enumerate(operator.states)
        for stream in state.streams
        if len(state.streams) == 1
    }
    return [found[stream] for stream in range(streams)]


def test_differential_the_engine_that_remains_is_that_of_the_new_plan() -> None:
    query, batches = workload()
    run, other = started(query, batches), LocalRun(query, parse_shape(query, NEW))
    windows = run.engine.windows
    for batch in batches[START:]:
        run.push(batch)
    for batch in batches:
        other.push(batch)
    assert isinstance(run.engine.tactic, TreeTactic) and not run.engine.migrating
    assert run.engine.windows is windows and str(run.engine.plan) == NEW
    for mine, theirs in zip(run.engine.states(), other.engine.states(), strict=True):
        assert set(mine.window.indexes) == set(theirs.window.indexes)
    (mine,), (theirs,) = run.engine.tactic.combined, other.engine.tactic.combined
    found = []
    for engine, state in ((run.engine, mine), (other.engine, theirs)):
        tuples = all_tuples(state)
        keep = state.alive(tuples, engine.windows.watermarks).astype(bool)
        ids = [ids_of(engine.bases[s].window.ring.header, tuples[s][keep]) for s in (1, 2)]
        found.append(Counter(zip(*(i.tolist() for i in ids), strict=True)))
    assert found[0] == found[1] and found[0]


def test_the_old_plan_goes_with_the_last_old_tuple_and_no_earlier() -> None:
    """The windows and the old plan's states have no old tuple from then on, and had one before."""
    query, batches = workload()
    run = started(query, batches)
    first_new = [base.window.ring.next_id for base in run.engine.bases]
    for number, batch in enumerate(batches[START:], START):
        migrating = run.engine.migrating
        engine = run.engine
        run.push(batch)
        heads = [int(base.window.ring.header[0]) for base in engine.bases]
        old = [h < f for h, f in zip(heads, first_new, strict=True)]
        assert run.engine.migrating == any(old)
        if migrating and not run.engine.migrating:
            (done,) = run.migrations
            assert (done.start, done.end, done.status) == (START, number + 1, "done")
    assert not run.engine.migrating
    assert done.end is not None and done.end - START == 5, "a window of four batches, and one more"


def test_old_combinations_are_dead_when_the_old_plan_goes() -> None:
    query, batches = workload()
    run = started(query, batches)
    first_new = [base.window.ring.next_id for base in run.engine.bases]
    old, _ = boxes_of(track(run))
    for batch in batches[START:]:
        if not run.engine.migrating:
            break
        run.push(batch)
    (state,) = (operator.kept for operator in old if operator.kept is not None)
    tuples = all_tuples(state)
    alive = state.alive(tuples, run.engine.windows.watermarks).astype(bool)
    for s, positions in tuples.items():
        ids = ids_of(run.engine.bases[s].window.ring.header, positions[alive])
        assert np.all(ids >= first_new[s])
    assert len(state) and alive.any()


@pytest.mark.slow
@pytest.mark.parametrize("order", ["any", "timestamp"])
def test_each_plan_finds_its_own_results(order: str) -> None:
    """The old plan all with an old tuple, the new plan all without; together each once."""
    query, batches = workload()
    run = started(query, batches, order=order)
    alone = LocalRun(query, parse_shape(query, OLD))
    wanted = [alone.push(batch) for batch in batches]
    found = pa.concat_tables([run.push(batch) for batch in batches[START:]])
    rest = pa.concat_tables(wanted[START:])
    assert (len(found), checksum(found)) == (len(rest), checksum(rest))
    (done,) = run.migrations
    assert done.end is not None
    staged = pa.concat_tables(wanted[START : done.end])
    assert done.old_results + done.new_results == len(staged)
    last_old = [batches[START - 1][name]["ts"][-1].value for name in query.names]
    new = sum(
        all(t > last for t, last in zip(stamps, last_old, strict=True))
        for stamps in zip(
            *(staged[f"{n}_ts"].cast(pa.int64()).to_pylist() for n in query.names), strict=True
        )
    )
    assert done.new_results == new > 0
    assert done.old_results == len(staged) - new > 0


@pytest.mark.slow
def test_results_of_the_new_plan_wait_until_the_old_one_is_gone() -> None:
    query, batches = workload()
    run, eager = started(query, batches, order="timestamp"), started(query, batches)
    late = 0
    for batch in batches[START:]:
        held, emitted = run.push(batch), eager.push(batch)
        late += len(emitted) - len(held)
        if run.engine.migrating:
            record = run.migrations[-1]
            assert late == record.new_results
            assert run.engine.nbytes >= eager.engine.nbytes + (late > 0)
            times = np.max([held[f"{n}_ts"].cast(pa.int64()) for n in query.names], axis=0)
            assert np.all(np.diff(times) >= 0), "in the order of their latest time"
    assert late == 0


def test_what_is_held_back_comes_at_the_end_of_the_run() -> None:
    query, batches = workload()
    run, eager = started(query, batches, order="timestamp"), started(query, batches)
    found = [run.push(batch) for batch in batches[START : START + 2]]
    wanted = [eager.push(batch) for batch in batches[START : START + 2]]
    found.append(pa.Table.from_batches(list(run.finish()), query.schema))
    assert checksum(pa.concat_tables(found)) == checksum(pa.concat_tables(wanted))
    assert len(found[-1]) > 0 and not list(run.engine.finish())


def test_a_stream_that_stands_still_keeps_the_old_plan() -> None:
    """Nothing says that its tuples will not join old ones."""
    query, batches = workload()
    run = started(query, batches)
    for batch in batches[START:]:
        run.push({name: table for name, table in batch.items() if name != "s2"})
    assert run.engine.migrating and run.migrations[0].status == "under way"
    assert any(track(run).mark.old)


def test_without_old_tuples_there_is_nothing_to_wait_for() -> None:
    query, batches = workload()
    run = LocalRun(query, parse_shape(query, OLD))
    done = run.migrate(parse_shape(query, NEW), "parallel-track")
    assert done.status == "done" and done.end == 0
    assert isinstance(run.engine.tactic, TreeTactic) and run.plan == parse_shape(query, NEW)
    assert run.engine.ended() == [] and len(run.migrations) == 1
    assert sum(len(run.push(batch)) for batch in batches)


def test_tuples_are_stored_once_and_operations_are_told_apart() -> None:
    query, batches = workload()
    run = started(query, batches)
    engine = run.engine
    old, new = boxes_of(track(run))
    before = sum(i.inserts for i in inputs_of(old, 3))
    rows = [len(base) for base in engine.bases]
    run.push(batches[START])
    taken = sum(len(t) for t in batches[START].values())
    assert sum(i.inserts for i in inputs_of(old, 3)) - before == taken
    assert sum(i.inserts for i in inputs_of(new, 3)) == 0
    assert sum(i.arrivals for i in inputs_of(new, 3)) == taken
    deletes = sum(i.deletes for i in inputs_of(old, 3))
    assert sum(len(b) for b in engine.bases) <= sum(rows) + taken and deletes
    assert engine.counters == [operator.counters for operator in (*new, *old)]
    (inner,) = (o for o in new if o.counters.operator == "(s1 s2)")
    assert inner.kept is not None
    assert inner.counters.outputs == len(inner.kept), "only new tuples were combined"
    streams = [size.streams for size in engine.sizes()]
    assert streams == [("s0",), ("s1",), ("s2",), ("s1", "s2"), ("s0", "s1")]


@pytest.mark.slow
def test_lookups_of_the_new_plan_do_not_walk_over_old_rows() -> None:
    """Its first batch looks at about as few rows as the first batch of a run."""
    query, batches = workload(domain=2)
    run = started(query, batches)
    run.push(batches[START])
    first = LocalRun(query, parse_shape(query, NEW))
    first.push(batches[START])
    visits = [
        sum(step.visited for op in counters for i in op.inputs for step in i.steps)
        for counters in ([o.counters for o in boxes_of(track(run))[1]], first.engine.counters)
    ]
    assert visits[0] <= 1.1 * visits[1]


@pytest.mark.slow
def test_both_plans_count_towards_the_memory_limit() -> None:
    query, batches = workload(domain=5)
    plans = [parse_shape(query, shape) for shape in (OLD, NEW)]
    most = []
    for plan in plans:
        run = LocalRun(query, plan)
        peak = 0
        for batch in batches:
            run.push(batch)
            peak = max(peak, run.engine.nbytes)
        most.append(peak)
    run = LocalRun(query, plans[0], memory_limit=int(1.2 * max(most)))
    for batch in batches[:START]:
        run.push(batch)
    run.migrate(plans[1], "parallel-track")
    with pytest.raises(MemoryExceeded):
        for batch in batches[START:]:
            run.push(batch)


def test_an_engine_in_the_middle_of_a_migration_is_not_migrated_again() -> None:
    query, batches = workload()
    run = started(query, batches)
    plan = parse_shape(query, "(s0 s1 s2)")
    with pytest.raises(MigrationError, match=r"a migration to \(s0 \(s1 s2\)\) is under way"):
        migrate(run.engine, plan)
    assert run.engine.migrating


def test_a_track_that_has_ended_is_migrated_like_its_new_plan() -> None:
    query, batches = workload()
    run = LocalRun(query, parse_shape(query, OLD))
    for batch in batches[:START]:
        run.push(batch)
    engine = run.engine
    assert migrate(engine, parse_shape(query, NEW), "parallel-track").record.status == "under way"
    push_all(engine, batches[START:])
    assert isinstance(engine.tactic, TreeTactic) and engine.migration is None
    (ended,) = engine.ended()
    assert ended == engine.last_ended and ended.status == "done"
    assert engine.ended() == [], "it was told"
    again = migrate(engine, parse_shape(query, OLD))
    assert again.record.old == parse_shape(query, NEW) and engine.plan == parse_shape(query, OLD)


def push_all(engine: Engine, batches: Batches) -> None:
    for batch in batches:
        admitted = {
            engine.query.index(name): engine.admit(
                engine.query.index(name), table.to_batches()[0], -(2**62)
            )
            for name, table in batch.items()
        }
        watermarks = [admitted[s].newest for s in range(3)]
        list(engine.push({s: a.arrivals for s, a in admitted.items()}, watermarks))


def test_restoring_fills_both_plans_and_finds_nothing() -> None:
    query, batches = workload()
    run = started(query, batches)
    engine = run.engine
    old, new = ([o.kept for o in joins if o.kept is not None] for joins in boxes_of(track(run)))
    before = len(new[0])
    admitted = {
        query.index(name): engine.admit(query.index(name), table.to_batches()[0], -(2**62))
        for name, table in batches[START].items()
    }
    watermarks = [admitted[s].newest - SECOND // 100 for s in range(3)]
    engine.restore({s: a.arrivals for s, a in admitted.items()}, watermarks)
    assert len(new[0]) > before and len(old[0]) > 0
    assert engine.migration is not None
    assert engine.migration.old_results == engine.migration.new_results == 0


# --- boxes inside a plan -------------------------------------------------------------------------


CHAIN = [["k1"], ["k1", "k2"], ["k2", "k3"], ["k3", "k4"], ["k4", "k5"], ["k5"]]
INSIDE = {
    "streams": ("(((((s0 s1) s2) s3) s4) s5)", "((((s0 (s1 s2)) s3) s4) s5)"),
    "a combination": ("(((((s0 s1) s2) s3) s4) s5)", "((((s0 s1) (s2 s3)) s4) s5)"),
    "two boxes": ("(((((s0 s1) s2) s3) s4) s5)", "(((s0 (s1 s2)) s3) (s4 s5))"),
}


def chain_workload() -> tuple[Query, Batches]:
    query = keyed_query(CHAIN, SECOND // 5)
    tables = keyed_tables(query, ROWS // 2, 50, 5)
    size = ROWS // 2 // BATCHES
    return query, [
        {name: table.slice(b * size, size) for name, table in tables.items()}
        for b in range(BATCHES)
    ]


def outside(query: Query, engine: Engine, shapes: tuple[str, str]) -> list[Operator]:
    """The joins that are in no box."""
    old, new = (parse_shape(query, shape) for shape in shapes)
    inside = {join.streams for box in boxes(query, old, new) for join in joins(box.old)}
    below = {stream_set for box in boxes(query, old, new) for stream_set in box.inputs}
    return [
        operator
        for operator in engine.operators
        if operator.join.streams not in inside
        or frozenset(map(query.index, operator.join.streams)) in below
    ]


@pytest.mark.slow
@pytest.mark.parametrize("which", INSIDE)
def test_joins_and_states_outside_of_a_box_run_on(which: str) -> None:
    """They are the same objects all the time, and nothing of them is computed again."""
    query, batches = chain_workload()
    old, new = (parse_shape(query, shape) for shape in INSIDE[which])
    run, alone = LocalRun(query, old), LocalRun(query, old)
    for batch in batches[:START]:
        run.push(batch), alone.push(batch)
    kept = outside(query, run.engine, INSIDE[which])
    assert kept, "there is something outside"
    states = {id(state): len(state) for operator in kept for state in operator.states}
    between = {id(operator.kept) for operator in kept} - {id(None)}
    columns = {id(s): dict(s.window.ring.columns) for o in kept for s in o.states}
    counted = [operator.counters.to_state() for operator in kept]
    record = run.migrate(new, "parallel-track")
    assert record.boxes == boxes(query, old, new) and record.recomputed == 0
    assert all(operator in run.engine.operators for operator in kept)
    assert between <= {id(state) for state in run.engine.states()}
    for operator in kept:
        for state in operator.states:
            assert len(state) == states[id(state)], "nothing was stored or dropped"
            for name, column in columns[id(state)].items():
                assert state.window.ring.columns[name] is column, "nothing was copied"
    assert [operator.counters.to_state() for operator in kept] == counted, "nothing was looked up"
    for batch in batches[START:]:
        run.push(batch), alone.push(batch)
    assert not run.engine.migrating and run.counts.results == alone.counts.results > 0
    assert all(operator in run.engine.operators for operator in kept)
    assert between <= {id(state) for state in run.engine.states()}


@pytest.mark.slow
@pytest.mark.parametrize("which", INSIDE)
def test_differential_joins_outside_of_a_box_do_no_more_than_without_it(which: str) -> None:
    """Whatever old and new boxes put out enters the plan above them once."""
    query, batches = chain_workload()
    old, new = (parse_shape(query, shape) for shape in INSIDE[which])
    run, alone = LocalRun(query, old), LocalRun(query, old)
    for batch in batches[:START]:
        run.push(batch), alone.push(batch)
    run.migrate(new, "parallel-track")
    pairs = list(
        zip(
            outside(query, run.engine, INSIDE[which])[: len(list(joins(old)))],
            outside(query, alone.engine, INSIDE[which]),
            strict=False,
        )
    )
    while run.engine.migrating:
        batch = batches[alone.counts.batches]
        assert checksum(run.push(batch)) == checksum(alone.push(batch))
        for mine, theirs in pairs:
            assert mine.join == theirs.join
            assert mine.counters.outputs == theirs.counters.outputs
            for ours, other in zip(mine.counters.inputs, theirs.counters.inputs, strict=True):
                assert (ours.arrivals, ours.inserts) == (other.arrivals, other.inserts)
                assert [s.matches for s in ours.steps] == [s.matches for s in other.steps]
    (done,) = run.migrations
    assert done.old_results > 0 and done.new_results > 0
    if len(done.boxes) == 1 and len(done.boxes[0].streams) < len(query.streams):
        made = done.old_results + done.new_results
        (above,) = (m for m, _ in pairs if done.boxes[0].streams in {s.streams for s in m.states})
        child = [s.streams for s in above.states].index(done.boxes[0].streams)
        assert above.counters.inputs[child].arrivals > made > 0


def test_a_box_does_not_wait_for_old_tuples_of_other_streams() -> None:
    """Only those count that its combinations are made of."""
    query, batches = chain_workload()
    old, new = (parse_shape(query, shape) for shape in INSIDE["streams"])
    run = LocalRun(query, old)
    for batch in batches[:START]:
        run.push(batch)
    run.migrate(new, "parallel-track")
    assert [rows > 0 for rows in track(run).mark.old] == [True] * 3 + [False] * 3


def test_plans_that_do_the_same_are_exchanged_at_once() -> None:
    query, batches = workload()
    run = LocalRun(query, parse_shape(query, OLD))
    for batch in batches[:START]:
        run.push(batch)
    kept = list(run.engine.operators)
    plan = parse_shape(query, "(s2 (s1 s0))")
    done = run.migrate(plan, "parallel-track")
    assert (done.status, done.boxes, done.end) == ("done", (), START)
    assert run.engine.plan == plan and run.engine.operators == kept
    assert done.shared == len(run.engine.tactic.combined[0]) > 0
