"""Histories that once broke a law, each as small as it got."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import plait
from plait.adapt.policy import PlanPolicy
from plait.api.join import Join
from plait.local.host import LocalRun
from plait.plan.jtree import parse_shape
from plait.query.bounds import global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Stream, make_query
from plait.testing.examples import keyed
from plait.tuning import Tuning
from plait_lab.laws.checks import assert_lawful
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, Row


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


def _churning(
    n: int, key: Callable[[int], object], type_: pa.DataType
) -> tuple[dict[str, pa.Table], Join]:
    """Two streams in which every key occurs once, 3 ms apart: n results."""
    keys = pa.array([key(i) for i in range(n)], type_)
    times = {"a": np.arange(n), "b": np.arange(n) + 3000}
    tables = {
        name: pa.table({"ts": pa.array(when, pa.timestamp("us")), "k": keys})
        for name, when in times.items()
    }
    question = plait.join(**tables).on("a.k = b.k").within("5 ms").select("a.k", "b.k AS again")
    return tables, question


@pytest.mark.parametrize(
    ("key", "type_"),
    [
        ("key-{}".format, pa.string()),
        (lambda i: i.to_bytes(4, "big"), pa.binary()),
        (lambda i: Decimal(i) / 100, pa.decimal128(12, 2)),
    ],
    ids=["string", "binary", "decimal"],
)
def test_keys_of_the_pieces_to_come_are_not_forgotten(
    key: Callable[[int], object], type_: pa.DataType
) -> None:
    """A large batch is encoded as a whole; after each piece, keys without a row were forgotten."""
    _, question = _churning(100_000, key, type_)
    found = question.run().table
    assert found.num_rows == 100_000
    assert found.column("k") == found.column("again")


@pytest.mark.slow
def test_keys_of_the_pieces_to_come_are_not_forgotten_within_a_memory_budget() -> None:
    _, question = _churning(60_000, "key-{}".format, pa.string())
    assert question.budget(memory="3 MB").run(batch_rows=6_000).table.num_rows == 60_000


@pytest.mark.slow
def test_keys_of_the_pieces_to_come_are_not_forgotten_by_processors() -> None:
    tables, question = _churning(100_000, "key-{}".format, pa.string())
    query = question.query
    cluster = Cluster(query, parse_shape(query, "(a b)"), 1, adapt=PlanPolicy())
    until = {"a": 50_000, "b": 47_000}  # the same instant
    first = {name: table.slice(0, until[name]) for name, table in tables.items()}
    second = {name: table.slice(until[name]) for name, table in tables.items()}
    assert sum(cluster.run(batch, tasks=2).num_rows for batch in (first, second)) == 100_000


def test_a_key_of_the_next_piece_is_not_forgotten() -> None:
    """The same in six rows, with sizes of one: what the law found when the defect was put back."""
    fields = (Field("ts", pa.timestamp("us")), Field("k", pa.string()))
    streams = [Stream(name, fields, "ts") for name in "ab"]
    same = Call("eq", (Column("a", "k"), Column("b", "k")))
    query = make_query(streams, [same], global_window(2, 0))
    rows = [{"ts": ts, "k": "x"} for ts in range(3)]
    tuning = Tuning(
        forget_keys=1, large_slices=1, piece_rows=1, pieces_per_window=1000, slice_rows=1
    )
    run = LocalRun(query, adapt=PlanPolicy(), tuning=tuning)
    history = History(query, ({"a": rows, "b": rows[:2]}, {"b": rows[2:]}))
    assert sum(run.push(batch).num_rows for batch in history.tables()) == 3
