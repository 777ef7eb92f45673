"""The oracle, against cases computed by hand: all the rest is tested against the oracle."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest

from plait.query.bounds import Constraint, global_window, stream_windows
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.testing.oracle.answer import multiset, oracle, split_late

Rows = list[dict[str, object]]


def _query(
    *streams: tuple[str, pa.DataType],
    constraints: tuple[Constraint, ...],
    conditions: tuple[Expr, ...] = (),
    select: tuple[Output, ...] | None = None,
    unit: str = "us",
    delay: int = 0,
) -> Query:
    """Streams with a key `k` each, joined in a row; the rows' numbers `n` are selected."""
    made = [
        Stream(
            name,
            (Field("ts", pa.timestamp(unit)), Field("k", type_), Field("n", pa.int64())),
            "ts",
            delay,
        )
        for name, type_ in streams
    ]
    keys = [Call("eq", (Column(a.name, "k"), Column(b.name, "k"))) for a, b in pairwise(made)]
    outputs = [Output(s.name, Column(s.name, "n")) for s in made] if select is None else select
    return make_query(made, [*keys, *conditions], constraints, outputs)


def _two(left: str = "int64", right: str = "int64") -> Query:
    types = (pa.type_for_alias(left), pa.type_for_alias(right))
    return _query(("a", types[0]), ("b", types[1]), constraints=global_window(2, 5))


def _rows(*rows: tuple[int | None, object]) -> Rows:
    """Rows `(ts, k)`, numbered."""
    return [{"ts": ts, "k": k, "n": n} for n, (ts, k) in enumerate(rows)]


def test_window_is_inclusive_on_both_sides() -> None:
    found = oracle(_two(), {"a": _rows((10, 1)), "b": _rows((4, 1), (5, 1), (15, 1), (16, 1))})
    assert found == Counter({(0, 1): 1, (0, 2): 1})


def test_keys_must_be_equal_and_rows_multiply() -> None:
    a, b = _rows((0, 1), (0, 1), (0, 2)), _rows((0, 1), (1, 1), (2, 3))
    assert oracle(_two(), {"a": a, "b": b}) == Counter([(0, 0), (0, 1), (1, 0), (1, 1)])


def test_same_values_count_as_often_as_they_occur() -> None:
    query = _query(
        ("a", pa.int64()),
        ("b", pa.int64()),
        constraints=global_window(2, 5),
        select=(Output("k", Column("a", "k")),),
    )
    assert oracle(query, {"a": _rows((0, 1), (0, 1)), "b": _rows((0, 1))}) == Counter({(1,): 2})


def test_a_window_for_each_stream() -> None:
    """b may be 2 after a, a may be 7 after b."""
    query = _query(("a", pa.int64()), ("b", pa.int64()), constraints=stream_windows([2, 7]))
    found = oracle(query, {"a": _rows((10, 1)), "b": _rows((2, 1), (3, 1), (12, 1), (13, 1))})
    assert found == Counter([(0, 1), (0, 2)])


def test_an_interval_that_lies_apart() -> None:
    """b is 3 to 7 after a."""
    apart = (Constraint(0, 1, 7), Constraint(1, 0, -3))
    query = _query(("a", pa.int64()), ("b", pa.int64()), constraints=apart)
    found = oracle(query, {"a": _rows((0, 1)), "b": _rows((2, 1), (3, 1), (7, 1), (8, 1))})
    assert found == Counter([(0, 1), (0, 2)])


def test_bounds_hold_between_all_streams_of_three() -> None:
    query = _query(*((n, pa.int64()) for n in "abc"), constraints=global_window(3, 5))
    rows = {"a": _rows((0, 1)), "b": _rows((4, 1)), "c": _rows((5, 1), (9, 1), (-1, 1))}
    assert oracle(query, rows) == Counter([(0, 0, 0), (0, 0, 2)])


def test_a_stream_without_rows_leaves_nothing() -> None:
    assert oracle(_two(), {"a": _rows((0, 1))}) == Counter()


def test_null_equals_nothing() -> None:
    assert oracle(_two(), {"a": _rows((0, None)), "b": _rows((0, None))}) == Counter()


def test_rows_without_event_time_are_no_input() -> None:
    assert oracle(_two(), {"a": _rows((None, 1)), "b": _rows((0, 1))}) == Counter()


@pytest.mark.parametrize("other", ["float64", "float32"])
def test_nan_equals_nan_and_minus_zero_equals_zero(other: str) -> None:
    a, b = _rows((0, math.nan), (0, -0.0)), _rows((0, math.nan), (0, 0.0), (0, 1.0))
    assert oracle(_two("float64", other), {"a": a, "b": b}) == Counter([(0, 0), (1, 1)])


def test_decimals_equal_integers_exactly() -> None:
    a = _rows((0, Decimal("1.00")), (0, Decimal("1.50")), (0, Decimal("9007199254740993.00")))
    b = _rows((0, 1), (0, 2), (0, 9007199254740992), (0, 9007199254740993))
    within = global_window(2, 5)
    query = _query(("a", pa.decimal128(20, 2)), ("b", pa.int64()), constraints=within)
    found = oracle(query, {"a": a, "b": b})
    assert found == Counter([(0, 0), (2, 3)])


def test_timestamp_keys_of_different_units_are_compared_exactly() -> None:
    a, b = _rows((0, 1_000), (0, 1_001)), _rows((0, 1))
    assert oracle(_two("timestamp[ns]", "timestamp[us]"), {"a": a, "b": b}) == Counter([(0, 0)])


def test_event_times_are_whole_microseconds_rounded_down() -> None:
    """-1 ns is microsecond -1, so it is 6 before 5; 5999 ns is microsecond 5."""
    query = _query(("a", pa.int64()), ("b", pa.int64()), constraints=global_window(2, 5), unit="ns")
    found = oracle(query, {"a": _rows((5_000, 1)), "b": _rows((-1, 1), (0, 1), (10_999, 1))})
    assert found == Counter([(0, 1), (0, 2)])


def test_a_condition_must_be_true_not_null() -> None:
    above = Call("gt", (Column("b", "n"), Literal(0, pa.int64())))
    query = _query(
        ("a", pa.int64()),
        ("b", pa.int64()),
        constraints=global_window(2, 5),
        conditions=(above,),
    )
    b: Rows = [{"ts": 0, "k": 1, "n": n} for n in (None, 0, 1)]
    assert oracle(query, {"a": _rows((0, 1)), "b": b}) == Counter([(0, 1)])


def test_several_attributes_of_a_stream_in_one_class() -> None:
    """a.k = b.k and a.n = b.k: only rows of a with k = n can join."""
    both = Call("eq", (Column("a", "n"), Column("b", "k")))
    query = _query(
        ("a", pa.int64()),
        ("b", pa.int64()),
        constraints=global_window(2, 5),
        conditions=(both,),
    )
    a: Rows = [{"ts": 0, "k": 1, "n": 1}, {"ts": 0, "k": 1, "n": 2}]
    assert oracle(query, {"a": a, "b": _rows((0, 1))}) == Counter([(1, 0)])


def test_tables_and_rows_mean_the_same() -> None:
    query = _two()
    rows = {"a": _rows((10, 1), (None, 1)), "b": _rows((4, 1), (15, 1))}
    tables = {s.name: pa.Table.from_pylist(rows[s.name], s.schema) for s in query.streams}
    assert oracle(query, tables) == oracle(query, rows) == Counter([(0, 1)])


def test_result_times_are_integers_in_their_unit() -> None:
    query = _query(
        ("a", pa.int64()),
        ("b", pa.int64()),
        constraints=global_window(2, 5),
        select=(Output("at", Column("a", "ts")),),
        unit="ns",
    )
    rows = {"a": _rows((1_999, 1)), "b": _rows((0, 1))}
    assert oracle(query, rows) == Counter([(1_999,)])
    assert multiset(pa.table({"at": pa.array([1_999], pa.timestamp("ns"))})) == Counter([(1_999,)])


def test_multiset_treats_every_nan_alike() -> None:
    assert multiset(pa.table({"x": [math.nan, -math.nan, -0.0]})) == Counter(
        {(math.nan,): 2, (0.0,): 1}
    )


def test_a_row_is_late_below_the_watermark_of_earlier_batches() -> None:
    query = _query(("a", pa.int64()), ("b", pa.int64()), constraints=global_window(2, 5), delay=3)
    batches = [
        {"a": _rows((10, 0), (1, 1)), "b": _rows((100, 0))},
        {"a": _rows((6, 2), (7, 3), (None, 4))},
        {"a": _rows((20, 5), (7, 6))},
        {"a": _rows((17, 7), (16, 8))},
    ]
    on_time, late = split_late(query, batches)
    assert [row["k"] for row in on_time["a"]] == [0, 1, 3, 5, 6, 7]
    assert [row["k"] for row in late["a"]] == [2, 8]
    assert late["b"] == []
    assert [row["k"] for row in on_time["b"]] == [0]


def test_lateness_does_not_depend_on_the_order_within_a_batch() -> None:
    query = _two()
    first = {"a": _rows((5, 0))}
    for rows in (_rows((9, 1), (5, 2), (4, 3)), _rows((4, 3), (5, 2), (9, 1))):
        _, late = split_late(query, [first, {"a": rows}])
        assert [row["k"] for row in late["a"]] == [3]
