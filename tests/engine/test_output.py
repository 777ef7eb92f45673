"""From combined tuples to results: the right values, types and batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from plait.engine.columns import TooManyBytes
from plait.engine.intake.ingest import Arrivals
from plait.engine.output import ResultRows
from plait.engine.states import BaseWindow, Tuples
from plait.kernels.jit import Positions
from plait.query.bounds import global_window
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Field, Query, Stream, make_query
from plait.query.query import Output as Selected
from plait.tuning import Tuning

A_TEXT, B_TEXT, A_NUMBER = Column("a", "s"), Column("b", "s"), Column("a", "n")


def query_of(select: Sequence[Selected] = (), conditions: Sequence[Expr] = ()) -> Query:
    fields = (
        Field("ts", pa.timestamp("us")),
        Field("k", pa.int64()),
        Field("s", pa.string()),
        Field("n", pa.int32()),
    )
    streams = [Stream(name, fields, "ts") for name in "ab"]
    keys = Call("eq", (Column("a", "k"), Column("b", "k")))
    return make_query(streams, [keys, *conditions], global_window(2, 10), select)


def filled(query: Query, longest: int = 1000) -> tuple[ResultRows, Tuples]:
    """Four tuples of each stream, and every tuple of `a` with two of `b`."""
    bases = []
    for stream, texts in enumerate((["aa", "", None, "d"], ["x", "yy", None, "zzz"])):
        numbers = pa.array([1, None, 3, 4], pa.int32())
        base = BaseWindow(query, stream, [(0,)], 64, tuning=Tuning(string_bytes=longest))
        payload = {"s": pa.array(texts), "n": numbers}
        base.append(Arrivals(np.arange(4), {0: np.arange(4) * 7}, payload), 0, 4)
        bases.append(base)
    left: Positions = np.array([0, 0, 1, 1, 2, 2, 3, 3], np.int32)
    right: Positions = np.array([0, 1, 2, 3, 0, 1, 2, 3], np.int32)
    return ResultRows(query, bases), {0: left, 1: right}


def everything() -> list[Selected]:
    return [Selected("a_s", A_TEXT), Selected("b_s", B_TEXT), Selected("n", A_NUMBER)]


WANTED = {
    "a_s": ["aa", "aa", "", "", None, None, "d", "d"],
    "b_s": ["x", "yy", None, "zzz", "x", "yy", None, "zzz"],
    "n": [1, 1, None, None, 3, 3, 4, 4],
}


def test_each_tuple_becomes_a_row() -> None:
    output, tuples = filled(query_of(everything()))
    (batch,) = output.batches(tuples)
    assert batch.to_pydict() == WANTED
    assert batch.schema == output.schema


def test_every_column_is_selected_by_default() -> None:
    query = query_of()
    output, tuples = filled(query)
    (batch,) = output.batches(tuples)
    assert batch.schema == query.schema
    assert batch.schema.names == [f"{s}_{c}" for s in "ab" for c in ("ts", "k", "s", "n")]
    assert batch.column("a_k").to_pylist() == [0, 0, 7, 7, 14, 14, 21, 21]
    assert batch.column("b_ts").cast(pa.int64()).to_pylist() == [0, 1, 2, 3] * 2


def test_expressions_are_computed_per_result() -> None:
    doubled = Call("mul", (A_NUMBER, Literal(2, pa.int64())))
    later = Call("lt", (Column("a", "ts"), Column("b", "ts")))
    constant = Literal("fixed", pa.string())
    query = query_of([Selected("d", doubled), Selected("l", later), Selected("c", constant)])
    output, tuples = filled(query)
    (batch,) = output.batches(tuples)
    assert batch.column("d").to_pylist() == [2, 2, None, None, 6, 6, 8, 8]
    assert batch.column("l").to_pylist() == [False, True, True, True, False, False, False, False]
    assert batch.column("c").to_pylist() == ["fixed"] * 8
    assert batch.schema == query.schema


def test_the_same_column_may_be_selected_twice() -> None:
    query = query_of([Selected("one", A_TEXT), Selected("two", A_TEXT)])
    output, tuples = filled(query)
    (batch,) = output.batches(tuples)
    assert batch.column("one").to_pylist() == batch.column("two").to_pylist() == WANTED["a_s"]


def test_no_tuples_no_rows() -> None:
    output, _ = filled(query_of(everything()))
    nowhere: Positions = np.empty(0, np.int32)
    rows = sum(batch.num_rows for batch in output.batches({0: nowhere, 1: nowhere}))
    assert rows == 0


@pytest.mark.parametrize("longest", [3, 4, 5, 8, 9, 100])
def test_results_too_long_for_one_array_come_in_several_batches(longest: int) -> None:
    output, tuples = filled(query_of(everything()), longest)
    batches = list(output.batches(tuples))
    assert (len(batches) > 1) == (longest < 12)
    assert pa.Table.from_batches(batches).to_pydict() == WANTED, "in order, and nothing twice"
    for batch in batches:
        for name in ("a_s", "b_s"):
            assert sum(len(s or "") for s in batch.column(name).to_pylist()) <= longest


def test_a_single_string_too_long_for_an_array_is_an_error() -> None:
    output, tuples = filled(query_of(everything()), 2)
    with pytest.raises(TooManyBytes):
        list(output.batches(tuples))


def test_a_condition_holds_where_it_is_true() -> None:
    """Neither false nor unknown will do."""
    output, tuples = filled(query_of(everything()))
    above = Call("gt", (A_NUMBER, Literal(1, pa.int64())))
    assert output.holds(above, tuples).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    same = Call("eq", (Call("length", (A_TEXT,)), Call("length", (B_TEXT,))))
    assert output.holds(same, tuples).tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    unknown = Call("eq", (A_NUMBER, Literal(None, pa.int64())))
    assert output.holds(unknown, tuples).tolist() == [0] * 8


def test_a_condition_on_strings_too_long_for_one_array_is_checked_in_parts() -> None:
    differ = Call("ne", (A_TEXT, B_TEXT))
    (whole, tuples), (parts, same) = (filled(query_of(everything()), n) for n in (1000, 5))
    assert parts.holds(differ, same).tolist() == whole.holds(differ, tuples).tolist()


def selected(type_: pa.DataType, texts: list[str | None]) -> pa.RecordBatch:
    """The results of a query that selects one column of a type."""
    fields = (Field("ts", pa.timestamp("us")), Field("k", pa.int64()), Field("s", type_))
    keys = Call("eq", (Column("a", "k"), Column("b", "k")))
    streams = [Stream(name, fields, "ts") for name in "ab"]
    query = make_query(streams, [keys], global_window(2, 1), [Selected("s", A_TEXT)])
    base, n = BaseWindow(query, 0, [(0,)], 64), len(texts)
    arrived = Arrivals(np.arange(n), {0: np.arange(n)}, {"s": pa.array(texts)})
    positions = base.append(arrived, 0, n)
    (batch,) = ResultRows(query, [base]).batches({0: positions})
    assert batch.schema == query.schema, "as announced"
    return batch


@pytest.mark.parametrize(
    "type_",
    [
        pa.dictionary(pa.int32(), pa.string()),
        pa.string_view(),
        pa.run_end_encoded(pa.int32(), pa.string()),
    ],
    ids=["dictionary", "view", "run ends"],
)
def test_a_column_that_came_encoded_can_be_selected(type_: pa.DataType) -> None:
    assert selected(type_, ["x", None]).column("s").to_pylist() == ["x", None]


def test_results_may_have_more_different_values_than_a_batch_of_rows_could_encode() -> None:
    """Each batch that came in had its own dictionary of at most 128 values."""
    texts: list[str | None] = [str(i) for i in range(300)]
    type_ = pa.dictionary(pa.int8(), pa.string())
    assert selected(type_, texts).column("s").to_pylist() == texts
