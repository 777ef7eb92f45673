"""What becomes of the rows of a batch before they are joined."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.intake.codes import CodeBook
from plait.engine.intake.ingest import (
    Admitted,
    Ingest,
    derived_from_key,
    derived_from_time,
    payload_columns,
)
from plait.engine.intake.times import BEFORE_ALL_TIMES, event_times
from plait.errors import SourceError
from plait.query.bounds import global_window
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.testing.examples import trades_quotes_news

TIME = pa.timestamp("us")


def _length(rows: pa.RecordBatch | None) -> int:
    return 0 if rows is None else rows.num_rows


def stream(name: str, **types: pa.DataType) -> Stream:
    return Stream(name, tuple(Field(k, t) for k, t in types.items()), "ts")


def eq(left: str, right: str) -> Expr:
    return Call("eq", (Column(*left.split(".")), Column(*right.split("."))))


def two(
    *, time: pa.DataType = TIME, key: pa.DataType | None = None, more: Sequence[Expr] = ()
) -> Query:
    """Streams a(ts, k, l, p) and b(ts, k), joined by k."""
    kind = pa.string() if key is None else key
    a = stream("a", ts=time, k=kind, l=pa.string(), p=pa.int64())
    b = stream("b", ts=TIME if time.tz is None else pa.timestamp("us", "UTC"), k=kind)
    return make_query([a, b], [eq("a.k", "b.k"), *more], global_window(2, 10))


def ingest_of(query: Query) -> Ingest:
    return Ingest(query, 0, [CodeBook(c.type) for c in query.graph.classes])


def batch(query: Query, rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    """Rows of the first stream."""
    schema = query.streams[0].schema
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def admit(
    query: Query, rows: Sequence[tuple[object, ...]], watermark: int = BEFORE_ALL_TIMES
) -> Admitted:
    return ingest_of(query).admit(batch(query, rows), watermark)


def test_each_row_has_one_fate() -> None:
    """The order of the checks: no time, refused by a condition, a null key, late."""
    positive = Call("gt", (Column("a", "p"), Literal(0, pa.int64())))
    rows = [
        (None, None, "x", -1),  # no time, whatever else is wrong
        (4, None, "x", -1),  # refused
        (4, None, "x", 1),  # null key
        (4, "k", "x", 1),  # late
        (5, None, "x", -1),  # refused
        (5, None, "x", None),  # refused: neither true nor false
        (5, None, "x", 1),  # null key
        (6, "k", "x", 2),
        (None, "k", "x", 2),
        (5, "k", "x", 3),
    ]
    admitted = admit(two(more=[positive]), rows, watermark=5)
    assert admitted.rows == 10
    assert admitted.no_time is not None
    assert admitted.no_time.column("p").to_pylist() == [-1, 2]
    assert admitted.late is not None
    assert admitted.late.to_pylist() == [{"ts": _instant(4), "k": "k", "l": "x", "p": 1}]
    assert admitted.filtered == 3
    assert admitted.no_key is not None and admitted.no_key.num_rows == 2
    assert admitted.arrivals.times.tolist() == [5, 6]
    assert admitted.arrivals.payload["p"].to_pylist() == [3, 2]


def _instant(micros: int) -> object:
    return pa.scalar(micros, TIME).as_py()


@given(
    st.lists(
        st.tuples(
            st.sampled_from((None, 0, 1, 2, 3)),
            st.sampled_from((None, "", "x")),
            st.just("l"),
            st.sampled_from((None, 0, 1)),
        ),
        max_size=12,
    ),
    st.sampled_from((BEFORE_ALL_TIMES, 0, 2, 9)),
)
def test_oracle_nothing_is_lost_and_nothing_invented(
    rows: list[tuple[object, ...]], watermark: int
) -> None:
    admitted = admit(two(), rows, watermark)
    timed = [(t, k, p) for t, k, _, p in rows if isinstance(t, int)]
    wanted = [(t, p) for t, k, p in timed if k is not None and t >= watermark]
    arrivals = admitted.arrivals
    found = zip(arrivals.times.tolist(), arrivals.payload["p"].to_pylist(), strict=True)
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert arrivals.times.tolist() == sorted(arrivals.times.tolist())
    late = 0 if admitted.late is None else admitted.late.num_rows
    timeless = 0 if admitted.no_time is None else admitted.no_time.num_rows
    assert late == sum(t < watermark for t, k, _ in timed if k is not None)
    assert len(rows) == len(wanted) + late + timeless + _length(admitted.no_key)
    assert admitted.newest == max((t for t, _, _ in timed), default=BEFORE_ALL_TIMES)


def test_all_columns_of_a_row_move_together_when_rows_are_sorted() -> None:
    rows = [(t, f"k{t % 3}", f"l{t}", t * 10) for t in (5, 3, 9, 3, 1)]
    query = two()
    ingest = ingest_of(query)
    arrivals = ingest.admit(batch(query, rows), BEFORE_ALL_TIMES).arrivals
    assert arrivals.times.tolist() == [1, 3, 3, 5, 9]
    assert arrivals.payload["l"].to_pylist() == ["l1", "l3", "l3", "l5", "l9"]
    assert arrivals.payload["p"].to_pylist() == [10, 30, 30, 50, 90]
    k1, k0, again, k2, k0_again = arrivals.codes[0].tolist()
    assert k0 == again == k0_again
    assert len({k0, k1, k2}) == 3


def test_no_rows_at_all() -> None:
    positive = Call("gt", (Column("a", "p"), Literal(0, pa.int64())))
    for query in (two(), two(more=[positive]), two(key=pa.int64()), two(key=pa.decimal128(5, 2))):
        admitted = admit(query, [], watermark=7)
        assert len(admitted.arrivals) == admitted.rows == _length(admitted.no_key) == 0
        assert admitted.newest == BEFORE_ALL_TIMES
        assert admitted.late is None
        assert admitted.no_time is None


def test_rows_that_are_all_set_aside_leave_nothing() -> None:
    admitted = admit(two(), [(1, "k", "", 0), (None, "k", "", 0), (2, "k", "", 0)], watermark=3)
    assert len(admitted.arrivals) == 0
    assert admitted.newest == 2, "late rows still say how far the stream is"
    assert set(admitted.arrivals.codes) == {0}
    assert all(len(column) == 0 for column in admitted.arrivals.payload.values())


def test_a_row_exactly_at_the_watermark_is_on_time() -> None:
    admitted = admit(two(), [(7, "k", "", 0), (6, "k", "", 0)], watermark=7)
    assert admitted.arrivals.times.tolist() == [7]


def test_two_attributes_of_a_stream_in_one_class_must_agree() -> None:
    rows = [
        (0, "x", "x", 0),
        (1, "x", "y", 1),
        (2, None, "x", 2),
        (3, "x", None, 3),
        (4, None, None, 4),
        (5, "", "", 5),
    ]
    admitted = admit(two(more=[eq("a.l", "b.k")]), rows)
    assert admitted.arrivals.payload["p"].to_pylist() == [0, 5]
    assert (_length(admitted.no_key), admitted.filtered) == (3, 1)
    assert set(admitted.arrivals.codes) == {0}


def test_a_null_in_any_class_sets_a_row_aside() -> None:
    a = stream("a", ts=TIME, k=pa.string(), l=pa.int64())
    query = make_query(
        [a, stream("b", ts=TIME, k=pa.string(), l=pa.int64())],
        [eq("a.k", "b.k"), eq("a.l", "b.l")],
        global_window(2, 1),
    )
    admitted = admit(query, [(1, "x", None), (2, None, 1), (3, "x", 1), (4, None, None)])
    assert admitted.arrivals.times.tolist() == [3]
    assert _length(admitted.no_key) == 3


def test_sliced_rows_are_read_from_their_beginning() -> None:
    rows = [(t, f"k{t}", f"l{t}", t) for t in range(10)]
    query = two()
    sliced = batch(query, rows).slice(4, 3)
    arrivals = ingest_of(query).admit(sliced, BEFORE_ALL_TIMES).arrivals
    assert arrivals.times.tolist() == [4, 5, 6]
    assert arrivals.payload["l"].to_pylist() == ["l4", "l5", "l6"]


@pytest.mark.parametrize(
    ("unit", "raw", "micros"),
    [
        ("s", [-1, 0, 3], [-1_000_000, 0, 3_000_000]),
        ("ms", [-1, 0, 3], [-1000, 0, 3000]),
        ("us", [-1, 0, 3], [-1, 0, 3]),
        ("ns", [-1001, -1000, -1, 0, 999, 1000], [-2, -1, -1, 0, 0, 1]),
    ],
)
def test_event_times_are_whole_microseconds_rounded_down(
    unit: str, raw: list[int], micros: list[int]
) -> None:
    times = pa.array([5, *raw], pa.timestamp(unit)).slice(1)
    assert event_times(times).tolist() == micros
    admitted = admit(two(time=pa.timestamp(unit)), [(t, "k", "", 0) for t in raw])
    assert admitted.arrivals.times.tolist() == micros
    assert admitted.newest == max(micros)


def test_a_timestamp_with_a_zone_is_the_same_instant() -> None:
    query = two(time=pa.timestamp("us", "Asia/Tokyo"))
    assert admit(query, [(3, "k", "", 0)]).arrivals.times.tolist() == [3]


@pytest.mark.parametrize(
    ("unit", "raw"), [("s", 2**62), ("s", -(2**60)), ("ms", 2**60), ("us", 2**63 - 1)]
)
def test_a_time_that_the_engine_cannot_count_with_is_refused_or_set_aside(
    unit: str, raw: int
) -> None:
    """A time that wrapped around would move the watermark and make all other rows late."""
    try:
        admitted = admit(two(time=pa.timestamp(unit)), [(raw, "k", "", 0)])
    except SourceError as error:
        assert "a.ts" in str(error)
    else:
        assert len(admitted.arrivals) == 0
        assert admitted.newest == BEFORE_ALL_TIMES


# --- schemas --------------------------------------------------------------------------------------


def test_columns_are_found_by_name_and_further_ones_ignored() -> None:
    query = two()
    rows = batch(query, [(1, "k", "l", 7)])
    shuffled = pa.RecordBatch.from_arrays(
        [rows.column(n) for n in ("p", "l", "ts", "k")] + [pa.array([0])],
        names=["p", "l", "ts", "k", "extra"],
    )
    arrivals = ingest_of(query).admit(shuffled, BEFORE_ALL_TIMES).arrivals
    assert arrivals.times.tolist() == [1]
    assert arrivals.payload["p"].to_pylist() == [7]


def test_a_missing_column_is_named_with_those_that_are_there() -> None:
    query = two()
    rows = batch(query, [(1, "k", "l", 7)]).drop_columns(["p"])
    with pytest.raises(SourceError) as raised:
        ingest_of(query).admit(rows, BEFORE_ALL_TIMES)
    assert str(raised.value) == ("the rows of stream 'a' lack the column 'p'; they have: ts, k, l")


@pytest.mark.parametrize(
    ("column", "type_"),
    [("p", pa.int32()), ("k", pa.large_string()), ("ts", pa.timestamp("ms")), ("ts", pa.int64())],
)
def test_a_column_of_another_type_is_named_with_both_types(column: str, type_: pa.DataType) -> None:
    query = two()
    rows = batch(query, [(1, "k", "l", 7)])
    at = rows.schema.get_field_index(column)
    rows = rows.set_column(at, column, pa.nulls(1, type_))
    with pytest.raises(SourceError) as raised:
        ingest_of(query).admit(rows, BEFORE_ALL_TIMES)
    known = query.streams[0].type_of(column)
    assert str(raised.value) == (
        f"a.{column} is {type_} in these rows, but {known} in the query; "
        "cast the column or define the query on the new schema"
    )


@pytest.mark.parametrize("encoded", ["dictionary", "run ends", "view"])
def test_an_encoding_is_not_a_type(encoded: str) -> None:
    query = two()
    rows = batch(query, [(3, "k", "l", 7), (2, "k", "l", 8)])
    plain = rows.column("k")
    at = rows.schema.get_field_index("k")
    other = {
        "dictionary": plain.dictionary_encode(),
        "run ends": pa.compute.run_end_encode(plain),
        "view": plain.cast(pa.string_view()),
    }[encoded]
    rows = rows.set_column(at, "k", other)
    arrivals = ingest_of(query).admit(rows, BEFORE_ALL_TIMES).arrivals
    assert arrivals.payload["p"].to_pylist() == [8, 7]
    assert len(set(arrivals.codes[0].tolist())) == 1
    assert arrivals.payload["k"].to_pylist() == ["k", "k"]


# --- which columns are kept -----------------------------------------------------------------------


def test_only_what_results_and_conditions_over_several_streams_read_is_kept() -> None:
    query = trades_quotes_news
    kept = [payload_columns(query, s) for s in range(3)]
    assert kept == [("sym", "price"), ("bid", "ask"), ("headline",)], "size is read on arrival only"


def test_times_and_integer_keys_are_not_kept_twice() -> None:
    fields = {"ts": TIME, "k": pa.int64(), "n": pa.int32()}
    a, b = stream("a", **fields), stream("b", **fields)
    query = make_query([a, b], [eq("a.k", "b.k"), eq("a.n", "b.n")], global_window(2, 1))
    assert [derived_from_time(query, Column("a", c)) for c in fields] == [True, False, False]
    classes = query.graph.classes
    (by_k,) = (i for i, c in enumerate(classes) if "k" in c.columns[0])
    assert [derived_from_key(query, Column("a", c)) for c in fields] == [None, by_k, None]


def test_a_time_in_another_unit_is_kept_as_it_is() -> None:
    query = two(time=pa.timestamp("ns"))
    assert not derived_from_time(query, Column("a", "ts"))
    arrivals = admit(query, [(1_999, "k", "", 0)]).arrivals
    assert arrivals.payload["ts"].cast(pa.int64()).to_pylist() == [1_999]


def test_a_selected_column_that_is_computed_is_kept_by_its_parts() -> None:
    a = stream("a", ts=TIME, k=pa.int64(), p=pa.int64(), q=pa.int64())
    query = make_query(
        [a, stream("b", ts=TIME, k=pa.int64())],
        [eq("a.k", "b.k")],
        global_window(2, 1),
        [Output("twice", Call("add", (Column("a", "p"), Column("a", "p"))))],
    )
    assert payload_columns(query, 0) == ("p",)
    assert payload_columns(query, 1) == ()
