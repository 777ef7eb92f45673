"""A running query: what a batch may do to it, and what it may not."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from plait.errors import MigrationError, PlanError, SourceError, UnknownStream
from plait.local.host import LocalRun
from plait.plan.jtree import Join, Leaf, Node, parse_shape
from plait.plan.routed import Teddies
from plait.query.query import Query
from plait.testing.examples import clique
from plait_lab.exhaustive.plans import all_orders
from plait_lab.workloads.keyed import keyed_query, keyed_tables


def rows(query: Query, stream: int, times: list[int]) -> pa.Table:
    schema = query.streams[stream].schema
    return pa.Table.from_pylist(
        [{f.name: t if f.name == query.streams[stream].time else 0 for f in schema} for t in times],
        schema=schema,
    )


def test_a_refused_batch_leaves_nothing_behind() -> None:
    query = clique(2)
    first, second = query.names
    run = LocalRun(query)
    good = rows(query, 0, [1, 2])
    wrong = rows(query, 1, [1]).rename_columns(
        ["x" * (i + 1) for i in range(len(rows(query, 1, [1]).column_names))]
    )
    with pytest.raises(SourceError, match="lack the column"):
        run.push({first: good, second: wrong})
    assert run.counts.rows == {first: 0, second: 0}
    assert run.watermarks == {first: None, second: None}
    assert run.push({first: good, second: rows(query, 1, [1])}).num_rows == 2


def test_an_unknown_stream_is_refused_by_name() -> None:
    query = clique(2)
    with pytest.raises(UnknownStream, match="'nobody'"):
        LocalRun(query).push({"nobody": rows(query, 0, [1])})


def test_a_batch_must_be_arrow() -> None:
    query = clique(2)
    with pytest.raises(SourceError, match="given as a list"):
        LocalRun(query).push({query.names[0]: [1, 2]})


# --- another plan while it runs -------------------------------------------------------------------

SECOND = 1_000_000
KEYS = [["k1"], ["k1", "k2"], ["k2"]]
OLD, NEW, THIRD = "((s0 s1) s2)", "(s0 (s1 s2))", "(s0 s1 s2)"


def running(
    shape: str = OLD, *, batches: int = 5, memory_limit: int | None = None
) -> tuple[LocalRun, Iterator[dict[str, pa.Table]]]:
    """A query in the middle of its rows, and the batches to come; a window passes in four."""
    query = keyed_query(KEYS, SECOND // 5)
    tables = keyed_tables(query, 1000, 10, 1)
    run = LocalRun(query, parse_shape(query, shape), memory_limit=memory_limit)
    to_come = ({name: table.slice(50 * b, 50) for name, table in tables.items()} for b in range(20))
    for _ in range(batches):
        run.push(next(to_come))
    return run, to_come


def the_answer() -> int:
    run, to_come = running()
    for batch in to_come:
        run.push(batch)
    return run.counts.results


def plan(run: LocalRun, shape: str) -> Node:
    return parse_shape(run.query, shape)


@pytest.mark.slow
def test_moving_state_is_done_at_once() -> None:
    run, to_come = running()
    done = run.migrate(plan(run, NEW))
    assert (done.start, done.end, done.status) == (5, 5, "done")
    assert run.plan == plan(run, NEW) and run.migrations == [done]
    assert done.recomputed > 0 and done.pause > 0
    assert [box.show(run.query) for box in done.boxes] == [
        "s0⋈s1⋈s2 from s0, s1, s2: ((s0 s1) s2) → (s0 (s1 s2))"
    ]
    for batch in to_come:
        run.push(batch)
    assert run.counts.results == the_answer() > 0


@pytest.mark.slow
def test_migrations_while_one_is_under_way_are_queued_in_order() -> None:
    run, to_come = running()
    first = run.migrate(plan(run, NEW), "parallel-track")
    second = run.migrate(plan(run, THIRD), "parallel-track")
    third = run.migrate(plan(run, OLD))
    assert [m.status for m in (first, second, third)] == ["under way", "queued", "queued"]
    assert [str(m.old) for m in run.migrations] == [OLD, NEW, THIRD]
    assert run.plan == plan(run, NEW)
    for batch in to_come:
        run.push(batch)
    done = run.migrations
    assert [m.status for m in done] == ["done"] * 3
    assert [str(m.new) for m in done] == [NEW, THIRD, OLD]
    assert done[0].end == done[1].start and done[1].end == done[2].start == done[2].end
    assert run.plan == plan(run, OLD)
    assert run.counts.results == the_answer()


@pytest.mark.slow
def test_a_queued_migration_that_does_not_fit_is_refused_and_the_query_runs_on() -> None:
    free, to_come = running(THIRD)
    limit = free.engine.nbytes
    for batch in to_come:
        free.push(batch)
        limit = max(limit, free.engine.nbytes)
    run, to_come = running(THIRD, memory_limit=limit + 4_000)
    (other,) = (p for p in all_orders(run.query, plan(run, THIRD)) if p != plan(run, THIRD))
    run.migrate(other, "parallel-track")
    run.migrate(plan(run, OLD))
    for batch in to_come:
        run.push(batch)
    assert [m.status for m in run.migrations] == ["done", "refused"]
    assert "memory limit" in run.migrations[1].refused
    assert run.plan == other and run.counts.results == the_answer()


@pytest.mark.slow
def test_results_that_waited_in_a_router_come_with_the_next_batch() -> None:
    run, to_come = running()
    run.migrate(Teddies(patience=100, packet_limit=1 << 16, counter_limit=1000))
    run.push(next(to_come))
    results = run.counts.results
    run.migrate(plan(run, NEW))
    assert run.counts.results == results
    for batch in to_come:
        run.push(batch)
    assert run.counts.results == the_answer()


@pytest.mark.slow
@pytest.mark.parametrize("under_way", [False, True])
def test_bad_requests_are_refused_with_the_difference_and_the_query_runs_on(
    under_way: bool,
) -> None:
    run, to_come = running()
    if under_way:
        run.migrate(plan(run, NEW), "parallel-track")
    before = run.migrations
    other = keyed_query([["k1"], ["k1", "k2"], ["k2"], ["k2"]], SECOND)
    bigger = parse_shape(other, "(s0 s1 s2 s3)")
    with pytest.raises(PlanError, match="has a stream 's3' that the query does not have"):
        run.migrate(bigger)
    with pytest.raises(PlanError, match="lacks the stream 's2'"):
        run.migrate(Join((Leaf("s0"), Leaf("s1")), ((1,), (0,))))
    same_streams = keyed_query([["k1"], ["k1", "k2"], ["k2"]], SECOND)
    with pytest.raises(MigrationError, match="bounds all within 1 s instead of all within 200 ms"):
        run.migrate(parse_shape(same_streams, NEW), query=same_streams)
    with pytest.raises(MigrationError, match=r"equalities s1.k1 = s2.k1.* instead of"):
        predicates = keyed_query([["k1"], ["k1", "k2"], ["k1"]], SECOND // 5)
        run.migrate(parse_shape(predicates, NEW), query=predicates)
    with pytest.raises(MigrationError, match=r"no migration strategy 'teleport'.*known: moving-"):
        run.migrate(plan(run, NEW), "teleport")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(MigrationError, match="cannot be ordered by 'size'"):
        run.migrate(plan(run, NEW), order="size")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(MigrationError, match=r"teddies \(ordered\) cannot run beside another plan"):
        run.migrate(Teddies(), "parallel-track")
    with pytest.raises(MigrationError, match="a str is not a plan"):
        run.migrate(NEW)  # type: ignore[arg-type]  # wrong on purpose
    assert run.migrations == before
    for batch in to_come:
        run.push(batch)
    assert run.counts.results == the_answer()


@pytest.mark.slow
def test_in_the_middle_of_a_batch_a_migration_waits_for_its_end() -> None:
    run, to_come = running()
    results = run.stream(next(to_come))
    next(results)
    assert run.migrate(plan(run, NEW)).status == "queued"
    assert run.plan == plan(run, OLD)
    assert list(results)
    (done,) = run.migrations
    assert done.status == "done" and done.end == run.counts.batches == 6
    assert run.plan == plan(run, NEW)
    for batch in to_come:
        run.push(batch)
    assert run.counts.results == the_answer()


@pytest.mark.slow
def test_a_query_that_has_finished_is_not_migrated() -> None:
    run, to_come = running()
    for batch in to_come:
        run.push(batch)
    assert not list(run.finish())
    with pytest.raises(MigrationError, match=r"finished, so it cannot go on with \(s0 \(s1 s2\)\)"):
        run.migrate(plan(run, NEW))
    assert run.counts.results == the_answer()
