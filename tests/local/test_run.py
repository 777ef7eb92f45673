"""Whole runs: the same answer as the definition, whatever the order and the form of the rows."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plait
from plait.errors import PlanError, SourceError
from plait.local.options import ORDERS, LocalOptions, Order
from plait.local.run import Results
from plait.local.run import run as run_query
from plait.query.builder import JoinBuilder
from plait.query.query import narrowed
from plait.testing.oracle.answer import multiset, oracle

SECOND = 1_000_000
Pairs = Sequence[tuple[int | None, int | None]]
ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 20), st.none() | st.integers(0, 2)), max_size=15
)


def run(question: Any, **options: Any) -> Results:
    return run_query(question.query, question.sources, LocalOptions(**options))


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


@pytest.mark.slow
@given(ROWS, ROWS, st.integers(1, 20))
@settings(max_examples=50)
def test_oracle_event_time_order_joins_every_row(a: Pairs, b: Pairs, rows: int) -> None:
    question = asked(table(a), table(b), delay="0 seconds")
    found = run(question, batch_rows=rows)
    assert multiset(found.table) == oracle(question.query, {"a": table(a), "b": table(b)})
    assert found.counts.late == {"a": 0, "b": 0}
    assert found.counts.null_times["a"] == sum(t is None for t, _ in a)


@pytest.mark.slow
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


UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FAR = (1, 2**10, 2**42, 2**60, 2**62 - 2**60)
"""What is added to the most distant time, in ticks of the unit."""


def no_time(unit: str) -> st.SearchStrategy[int | None]:
    """Ticks that are no event time, and null."""
    if unit == "ns":
        return st.sampled_from([None, -(2**63)])
    most = 2**60 * UNITS[unit] // 10**6
    wraps = 2**64 * UNITS[unit] // 10**6 + 1
    far = [most + f for f in FAR] + [2**63 - 1, min(wraps, 2**63 - 1)]
    return st.sampled_from([None, -(2**63), *far, *(-f for f in far)])


def ticking(rows: Sequence[tuple[int | None, int | None]], unit: str, chunk: int) -> pa.Table:
    """A table of (ticks, key) in chunks; `n` is the number among the rows that have a time."""
    table = pa.table(
        {
            "ts": pa.array([t for t, _ in rows], pa.timestamp(unit)),
            "k": pa.array([k for _, k in rows], pa.int64()),
            "n": pa.array(range(len(rows)), pa.int64()),
        }
    )
    return pa.Table.from_batches(table.to_batches(max_chunksize=chunk), table.schema)


@st.composite
def sprinkled(draw: st.DrawFn) -> tuple[pa.Table, pa.Table, int]:
    """A table without and with rows that have no usable event time, and how many those are."""
    unit = draw(st.sampled_from(sorted(UNITS)))
    dated = st.tuples(st.integers(0, 20).map(lambda s: s * UNITS[unit]), st.integers(0, 2))
    rows = draw(st.lists(dated, max_size=15))
    places = draw(st.lists(st.integers(0, len(rows)), max_size=10).map(sorted))
    numbered: list[tuple[int | None, int, int]] = [(t, k, n) for n, (t, k) in enumerate(rows)]
    for added, place in enumerate(places):
        numbered.insert(place + added, (draw(no_time(unit)), draw(st.integers(0, 2)), -1 - added))
    without = ticking(rows, unit, draw(st.integers(1, 20)))
    mixed = ticking([(t, k) for t, k, _ in numbered], unit, draw(st.integers(1, 20)))
    numbers = pa.chunked_array([pa.array([n for _, _, n in numbered], pa.int64())])
    return without, mixed.set_column(2, "n", numbers), len(places)


@pytest.mark.slow
@given(
    sprinkled(),
    sprinkled(),
    st.sampled_from(ORDERS),
    st.fixed_dictionaries({"batch_rows": st.integers(1, 20)})
    | st.fixed_dictionaries({"batch_seconds": st.sampled_from([1e-6, 0.5, 1.0, 7.0, 1e9])}),
    st.sampled_from(["0 seconds", "3 seconds"]),
    st.integers(1, 5),
)
def test_rows_without_a_usable_time_change_nothing_but_their_count(
    a: tuple[pa.Table, pa.Table, int],
    b: tuple[pa.Table, pa.Table, int],
    order: Order,
    batches: dict[str, Any],
    delay: str,
    undated_rows: int,
) -> None:
    plain = run(asked(a[0], b[0], delay), order=order, **batches)
    question = asked(a[1], b[1], delay)
    found = run(question, order=order, undated_rows=undated_rows, **batches)
    assert multiset(found.table) == multiset(plain.table)
    assert found.counts.null_times == {"a": a[2], "b": b[2]}
    assert found.counts.rows == {"a": a[1].num_rows, "b": b[1].num_rows}
    assert found.counts.late == plain.counts.late
    for name in ("a", "b"):
        assert found.late[name].sort_by("n") == plain.late[name].sort_by("n")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_one_row_at_infinity_does_not_end_the_reading(order: Order, unit: str) -> None:
    size, rows = 1 << 16, 150_000
    ticks = [t * UNITS[unit] for t in range(rows)]
    ticks[size] = 2**63 - 1
    clocks = pa.table({"ts": pa.array(ticks, pa.timestamp(unit)), "k": range(rows), "n": ticks})
    found = run(asked(clocks, clocks), order=order)
    assert found.table.num_rows == rows - 1
    assert found.counts.null_times == {"a": 1, "b": 1}


@pytest.mark.parametrize("order", ORDERS)
def test_oracle_the_most_distant_times_are_joined(order: Order) -> None:
    ticks = [-(2**60) - 1, -(2**60), 0, 2**60, 2**60 + 1]
    stamps = pa.array(ticks, pa.timestamp("us"))
    rows = pa.table({"ts": stamps, "k": [1] * 5, "n": range(5)})
    found = run(asked(rows, rows), order=order, batch_rows=1)
    assert sorted(found.table.column("n").to_pylist()) == [1, 2, 3]
    assert found.counts.null_times == {"a": 2, "b": 2}


A, B = [(t, t % 3) for t in range(20)], [(t, t % 2) for t in range(19, -1, -1)]


def answer() -> Counter[tuple[object, ...]]:
    return multiset(run(asked(table(A), table(B))).table)


def test_readers_and_iterators_will_do() -> None:
    for order in ORDERS:
        late = plait.join(a=table(A), b=table(B)).watermark("1 hour")
        query = late.on("a.k = b.k").within("5 seconds").select("a.n", "b.n AS m").query
        sources = {
            "a": table(A).to_reader(max_chunksize=3),
            "b": iter(table(B).to_batches(max_chunksize=4)),
        }
        found = run_query(query, sources, LocalOptions(order=order, batch_rows=5))
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
        run_query(query, {"a": table(A)})
    with pytest.raises(SourceError, match="stream 'a' has a schema but no rows"):
        run(asked(table(A).schema, table(B)))


def test_late_rows_keep_all_their_columns() -> None:
    rows = table([(0, 1), (9, 1), (1, 1)], sym=pa.array(["x", "y", "x"]).dictionary_encode())
    found = run(asked(rows, table(B)), order="file", batch_rows=1)
    assert found.late["a"].to_pylist() == [
        {"ts": dt.datetime(1970, 1, 1, 0, 0, 1), "k": 1, "n": 2, "sym": "x"}
    ]
