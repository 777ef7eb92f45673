"""Histories that once broke a law, each as small as it got."""

from __future__ import annotations

import pyarrow as pa

from plait.plan.examples import keyed
from plait.plan.jtree import parse_shape
from plait.query.bounds import global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Stream, make_query
from plait.testing.histories import History, Row
from plait.testing.laws import assert_lawful


def _row(ts: int) -> Row:
    return {"ts": ts, "k": 1}


def test_combinations_behind_a_dropped_one_are_still_found() -> None:
    """(a 0, b 10) expires before (a 9, b 9), although its latest time is the later one."""
    query = keyed("k", "k", "k", width=10)
    history = History(
        query,
        (
            {"a": [_row(0)], "b": [_row(9), _row(10)]},
            {"a": [_row(9)], "c": [_row(15)]},
            {"c": [_row(16)]},
        ),
    )
    assert_lawful(history, parse_shape(query, "((a b) c)"))


def test_late_rows_of_a_dictionary_column_are_handed_out() -> None:
    """Late rows come in the schema of their stream."""
    words = pa.dictionary(pa.int32(), pa.string())
    streams = [
        Stream(name, (Field("ts", pa.timestamp("us")), Field("k", words)), "ts") for name in "ab"
    ]
    same = Call("eq", (Column("a", "k"), Column("b", "k")))
    query = make_query(streams, [same], global_window(2, 0))
    assert_lawful(History(query, ({"a": [{"ts": 1, "k": "x"}]}, {"a": [{"ts": 0, "k": "x"}]})))
