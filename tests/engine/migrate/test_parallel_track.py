"""Parallel track: who finds what, when the old plan goes, and what remains."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from plait.bench.workloads import keyed_query, keyed_tables
from plait.engine.migrate import migrate
from plait.engine.migrate.moving_state import all_tuples
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.tree import TreeEngine
from plait.errors import MemoryExceeded, MigrationError
from plait.kernels.ring import ids_of
from plait.plan.jtree import parse_shape
from plait.query.query import Query
from plait.runtime.local import LocalRun
from plait.testing.checksum import checksum

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


def started(query: Query, batches: Batches, **settings: object) -> LocalRun:
    run = LocalRun(query, parse_shape(query, OLD))
    for batch in batches[:START]:
        run.push(batch)
    run.migrate(parse_shape(query, NEW), "parallel-track", **settings)  # type: ignore[arg-type]
    return run


def track(run: LocalRun) -> ParallelTrack:
    assert isinstance(run.engine, ParallelTrack)
    return run.engine


def test_differential_the_engine_that_remains_is_that_of_the_new_plan() -> None:
    query, batches = workload()
    run, other = started(query, batches), LocalRun(query, parse_shape(query, NEW))
    windows = run.engine.windows
    for batch in batches[START:]:
        run.push(batch)
    for batch in batches:
        other.push(batch)
    assert isinstance(run.engine, TreeEngine) and isinstance(other.engine, TreeEngine)
    assert run.engine.windows is windows and str(run.engine.plan) == NEW
    for mine, theirs in zip(run.engine.states(), other.engine.states(), strict=True):
        assert set(mine.window.indexes) == set(theirs.window.indexes)
    (mine,), (theirs,) = run.engine.combined, other.engine.combined
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
            assert isinstance(engine, ParallelTrack)
            (done,) = run.migrations
            assert (done.start, done.end, done.status) == (START, number + 1, "done")
    assert not run.engine.migrating
    assert done.end is not None and done.end - START == 5, "a window of four batches, and one more"


def test_old_combinations_are_dead_when_the_old_plan_goes() -> None:
    query, batches = workload()
    run = started(query, batches)
    first_new = [base.window.ring.next_id for base in run.engine.bases]
    old = track(run).old
    assert old is not None
    for batch in batches[START:]:
        if not run.engine.migrating:
            break
        run.push(batch)
    (state,) = old.combined
    tuples = all_tuples(state)
    alive = state.alive(tuples, old.windows.watermarks).astype(bool)
    for s, positions in tuples.items():
        ids = ids_of(old.bases[s].window.ring.header, positions[alive])
        assert np.all(ids >= first_new[s])
    assert len(state) and alive.any()


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
    assert isinstance(run.engine, TreeEngine) and run.plan == parse_shape(query, NEW)
    assert sum(len(run.push(batch)) for batch in batches)


def test_tuples_are_stored_once_and_operations_are_told_apart() -> None:
    query, batches = workload()
    run = started(query, batches)
    engine = track(run)
    old, new = engine.old, engine.new
    assert old is not None
    before = sum(old.input_of(s).inserts for s in range(3))
    rows = [len(base) for base in engine.bases]
    run.push(batches[START])
    taken = sum(len(t) for t in batches[START].values())
    assert sum(old.input_of(s).inserts for s in range(3)) - before == taken
    assert sum(new.input_of(s).inserts for s in range(3)) == 0
    assert sum(new.input_of(s).arrivals for s in range(3)) == taken
    deletes = sum(old.input_of(s).deletes for s in range(3))
    assert sum(len(b) for b in engine.bases) <= sum(rows) + taken and deletes
    assert engine.counters == [*engine.tracks["new"], *engine.tracks["old"]]
    (inner,) = (c for c in new.counters if c.operator == "(s1 s2)")
    assert inner.outputs == len(new.combined[0]), "only new tuples were combined"
    streams = [size.streams for size in engine.sizes()]
    assert streams == [("s0",), ("s1",), ("s2",), ("s1", "s2"), ("s0", "s1")]


def test_lookups_of_the_new_plan_do_not_walk_over_old_rows() -> None:
    """Its first batch looks at about as few rows as the first batch of a run."""
    query, batches = workload(domain=2)
    run = started(query, batches)
    run.push(batches[START])
    first = LocalRun(query, parse_shape(query, NEW))
    first.push(batches[START])
    visits = [
        sum(step.visited for op in counters for i in op.inputs for step in i.steps)
        for counters in (track(run).new.counters, first.engine.counters)
    ]
    assert visits[0] <= 1.1 * visits[1]


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
    assert track(run).migrating


def test_a_track_that_has_ended_is_migrated_like_its_new_plan() -> None:
    query, batches = workload()
    run = LocalRun(query, parse_shape(query, OLD))
    for batch in batches[:START]:
        run.push(batch)
    done = migrate(run.engine, parse_shape(query, NEW), "parallel-track")
    engine = done.engine
    for batch in batches[START:]:
        admitted = {
            query.index(name): engine.admit(query.index(name), table.to_batches()[0], -(2**62))
            for name, table in batch.items()
        }
        watermarks = [admitted[s].newest for s in range(3)]
        list(engine.push({s: a.arrivals for s, a in admitted.items()}, watermarks))
    assert isinstance(engine, ParallelTrack) and not engine.migrating
    again = migrate(engine, parse_shape(query, OLD))
    assert again.record.old == parse_shape(query, NEW)
    assert isinstance(again.engine, TreeEngine)


def test_restoring_fills_both_plans_and_finds_nothing() -> None:
    query, batches = workload()
    run = started(query, batches)
    engine = track(run)
    old = engine.old
    assert old is not None
    before = [len(engine.new.combined[0]), len(old.combined[0])]
    admitted = {
        query.index(name): engine.admit(query.index(name), table.to_batches()[0], -(2**62))
        for name, table in batches[START].items()
    }
    watermarks = [admitted[s].newest - SECOND // 100 for s in range(3)]
    engine.restore({s: a.arrivals for s, a in admitted.items()}, watermarks)
    assert len(engine.new.combined[0]) > before[0] and len(old.combined[0]) > 0
    assert engine.record.old_results == engine.record.new_results == 0
