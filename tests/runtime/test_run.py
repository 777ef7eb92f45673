"""Whole runs: the same answer as the definition, whatever the order and the form of the rows."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plait
from plait.errors import PlanError, SourceError
from plait.query.builder import JoinBuilder
from plait.query.query import narrowed
from plait.runtime.run import Results, run, run_tables
from plait.testing.oracle import multiset, oracle

SECOND = 1_000_000
Pairs = Sequence[tuple[int | None, int | None]]
ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 20), st.none() | st.integers(0, 2)), max_size=15
)


def table(rows: Pairs, **more: list[object]) -> pa.Table:
    times = pa.array([None if t is None else t * SECOND for t, _ in rows], pa.timestamp("us"))
    return pa.table(
        {"ts": times, "k": pa.array([k for _, k in rows], pa.int64()), "n": range(len(rows))} | more
    )


def asked(a: pa.Table, b: pa.Table, delay: str = "3 seconds") -> JoinBuilder:
    return (
        plait.join(a=a, b=b)
        .watermark(delay)
        .on("a.k = b.k")
        .within("5 seconds")
        .select("a.n", "b.n AS m")
    )


@given(ROWS, ROWS, st.integers(1, 20))
@settings(max_examples=50)
def test_oracle_event_time_order_joins_every_row(a: Pairs, b: Pairs, rows: int) -> None:
    question = asked(table(a), table(b), delay="0 seconds")
    found = run(question, batch_rows=rows)
    assert multiset(found.table) == oracle(question.query, {"a": table(a), "b": table(b)})
    assert found.counts.late == {"a": 0, "b": 0}
    assert found.counts.null_times["a"] == sum(t is None for t, _ in a)


@given(ROWS, ROWS, st.integers(1, 20))
@settings(max_examples=50)
def test_oracle_file_order_joins_the_rows_on_time(a: Pairs, b: Pairs, rows: int) -> None:
    question = asked(table(a), table(b))
    found = run(question, batch_rows=rows, order="file")
    on_time = {}
    for name, given_rows in (("a", table(a)), ("b", table(b))):
        late = set(found.late[name].column("n").to_pylist())
        assert len(late) == found.counts.late[name] == found.late[name].num_rows
        on_time[name] = given_rows.filter(
            pa.array([n not in late for n in given_rows.column("n").to_pylist()], pa.bool_())
        )
    assert multiset(found.table) == oracle(question.query, on_time)


A, B = [(t, t % 3) for t in range(20)], [(t, t % 2) for t in range(19, -1, -1)]


def answer() -> Counter[tuple[object, ...]]:
    return multiset(run(asked(table(A), table(B))).table)


def test_readers_and_iterators_will_do() -> None:
    for order in ("event-time", "file"):
        late = plait.join(a=table(A), b=table(B)).watermark("1 hour")
        query = late.on("a.k = b.k").within("5 seconds").select("a.n", "b.n AS m").query
        sources = {
            "a": table(A).to_reader(max_chunksize=3),
            "b": iter(table(B).to_batches(max_chunksize=4)),
        }
        found = run_tables(query, sources, order=order, batch_rows=5)
        assert multiset(found.table) == answer()


def test_a_table_may_be_two_streams_even_if_it_is_an_iterator() -> None:
    text = "SELECT x.n, y.n AS m FROM t x JOIN t y ON x.k = y.k WITHIN 4 SECONDS"
    whole = run(plait.sql({"t": table(A)}, text))
    once = run(plait.sql({"t": table(A).to_reader(max_chunksize=3)}, text), order="file")
    assert whole.table.num_rows == once.table.num_rows > 20


def test_a_plan_by_its_shape() -> None:
    tables = {"a": table(A), "b": table(B), "c": table(A)}
    text = "SELECT a.n FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k WITHIN 3 SECONDS"
    question = plait.sql(tables, text)
    bushy = run(question, plan="((a b) c)")
    assert multiset(bushy.table) == multiset(run(question).table)
    routed = run(question, plan="teddies")
    assert multiset(routed.table) == multiset(bushy.table)
    with pytest.raises(PlanError, match="lacks the stream 'c'"):
        run(question, plan="(a b)")


def test_the_run_is_accounted_for() -> None:
    found: Results = run(asked(table([*A, (None, 1), (3, None)]), table(B)))
    assert found.counts.rows == {"a": 22, "b": 20}
    assert found.counts.null_times["a"] == 1
    assert found.counts.null_keys["a"] == 1
    assert found.counts.results == found.table.num_rows > 0
    assert found.peak_state_rows > 0
    assert found.peak_state_bytes > 0
    assert found.seconds > 0
    assert found.bad == {"a": [], "b": []}


def test_only_the_columns_of_the_query_are_read() -> None:
    wide = table(A, unused=[{"nested": [1]}] * 20)
    query = asked(wide, table(B)).query
    assert [f.name for f in narrowed(query).streams[0].fields] == ["ts", "k", "n"]
    assert multiset(run(asked(wide, table(B))).table) == answer()


def test_a_stream_without_rows_is_named() -> None:
    query = asked(table(A), table(B)).query
    with pytest.raises(SourceError, match="stream 'b' has no rows; give some for each of a, b"):
        run_tables(query, {"a": table(A)})
    with pytest.raises(SourceError, match="stream 'a' has a schema but no rows"):
        run(asked(table(A).schema, table(B)))


def test_late_rows_keep_all_their_columns() -> None:
    rows = table([(0, 1), (9, 1), (1, 1)], sym=pa.array(["x", "y", "x"]).dictionary_encode())
    found = run(asked(rows, table(B)), order="file", batch_rows=1)
    assert found.late["a"].to_pylist() == [
        {"ts": dt.datetime(1970, 1, 1, 0, 0, 1), "k": 1, "n": 2, "sym": "x"}
    ]
