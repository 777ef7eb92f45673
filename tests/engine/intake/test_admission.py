"""Which rows may be in a result, as far as they tell by themselves: each has one fate."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.intake.admission import Admission
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.query.bounds import global_window
from plait.query.expr import Call, Column, Literal
from plait.query.query import Field, Query, Stream, make_query

FAR = 2**61
"""A time that cannot be counted with."""


def query_of(key: pa.DataType, other: pa.DataType) -> Query:
    """a(ts, k, l, p) and b(ts, k): both k and l of a equal b.k, and a.p is positive."""
    time = Field("ts", pa.timestamp("us"))
    a = Stream("a", (time, Field("k", key), Field("l", key), Field("p", pa.int64())), "ts")
    b = Stream("b", (time, Field("k", other)), "ts")
    conditions = [
        Call("eq", (Column("a", "k"), Column("b", "k"))),
        Call("eq", (Column("a", "l"), Column("b", "k"))),
        Call("gt", (Column("a", "p"), Literal(0, pa.int64()))),
    ]
    return make_query([a, b], conditions, global_window(2, 10))


QUERY = query_of(pa.int64(), pa.int64())
Row = tuple[int | None, int | None, int | None, int | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2, FAR]),
        st.sampled_from([None, 7, 8]),
        st.sampled_from([None, 7, 8]),
        st.sampled_from([None, 0, 1]),
    ),
    max_size=10,
)


def batch(rows: list[Row]) -> pa.RecordBatch:
    schema = QUERY.streams[0].schema
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def fate(row: Row) -> str:
    """The definition, clause by clause."""
    time, k, other, p = row
    if time is None or time == FAR:
        return "no time"
    if p is None or p <= 0:
        return "filtered"
    if k is None or other is None:
        return "no key"
    return "joined" if k == other else "filtered"


@given(ROWS)
def test_oracle_each_row_has_the_first_fate_that_is_true_of_it(rows: list[Row]) -> None:
    found = Admission(QUERY, 0).sort_out(batch(rows))

    def listed(which: str) -> pa.RecordBatch:
        return batch([row for row in rows if fate(row) == which])

    assert found.rows.equals(listed("joined"))
    for aside, which in ((found.no_time, "no time"), (found.no_key, "no key")):
        wanted = listed(which)
        assert (wanted.num_rows == 0) if aside is None else aside.equals(wanted)
    assert found.filtered == listed("filtered").num_rows
    timed = [t for t, *_ in rows if t is not None and t != FAR]
    assert found.newest == max(timed, default=BEFORE_ALL_TIMES), "whatever became of the row"


def test_conditions_and_keys_of_another_stream_do_not_count() -> None:
    schema = QUERY.streams[1].schema
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2]).cast(schema.field(0).type), [0, -1]],
                                      schema=schema)  # fmt: skip
    found = Admission(QUERY, 1).sort_out(rows)
    assert found.rows.equals(rows) and not found.filtered
    assert found.no_time is None and found.no_key is None


def test_a_key_that_no_value_of_the_other_type_can_equal_is_no_key() -> None:
    """The join compares instants in nanoseconds, which reach only to the year 2262."""
    coarse, fine = pa.timestamp("s"), pa.timestamp("ns")
    query = query_of(coarse, fine)
    instants = pa.array([1, 2**40], pa.int64()).cast(coarse)
    times = pa.array([1, 1]).cast(pa.timestamp("us"))
    rows = pa.RecordBatch.from_arrays(
        [times, instants, instants, pa.array([1, 1])], names=["ts", "k", "l", "p"]
    )
    found = Admission(query, 0).sort_out(rows)
    assert found.rows.equals(rows.slice(0, 1))
    assert found.no_key is not None and found.no_key.equals(rows.slice(1))
