"""DuckDB and the oracle agree: two implementations that share only the query."""

from __future__ import annotations

import builtins
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, reject, settings

from plait.errors import PlaitError
from plait.query.bounds import global_window
from plait.query.expr import Call, Cast, Column
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.testing.oracle.answer import multiset, oracle
from plait.testing.oracle.checksum import checksum
from plait.testing.oracle.duck import (
    TooSlow,
    Untranslatable,
    count_and_checksum,
    duck_result,
    duck_sql,
)
from plait_lab.laws.strategies.histories import History, cases, crowds, stream_table


def _agree(history: History) -> None:
    query, rows = history.query, history.rows()
    try:
        duck_sql(query)
    except Untranslatable:
        reject()
    tables = {s.name: stream_table(s, rows[s.name]) for s in query.streams}
    result = duck_result(query, tables, threads=1)
    assert result.schema == query.schema
    assert multiset(result) == oracle(query, rows)


@pytest.mark.slow
@settings(max_examples=50)
@given(cases())
def test_differential_duckdb_and_oracle(history: History) -> None:
    _agree(history)


@pytest.mark.slow
@settings(max_examples=20)
@given(crowds())
def test_differential_duckdb_and_oracle_in_a_crowd(history: History) -> None:
    _agree(history)


def _query(type_: pa.DataType, select: tuple[Output, ...] = ()) -> Query:
    fields = (Field("ts", pa.timestamp("us")), Field("k", type_))
    same = Call("eq", (Column("a", "k"), Column("b", "k")))
    streams = [Stream(name, fields, "ts") for name in "ab"]
    return make_query(streams, [same], global_window(2, 0), select)


def test_nan_and_zero_are_keys_like_others_in_a_large_join() -> None:
    """DuckDB hashes keys of large tables; NaN and -0.0 must survive that."""
    query = _query(pa.float64())
    count = 30_000
    keys = [math.nan, -math.nan, 0.0, -0.0, *map(float, range(1, count - 3))]
    table = pa.table({"ts": pa.array([0] * count, pa.timestamp("us")), "k": keys})
    found, total = count_and_checksum(query, {"a": table, "b": table}, threads=1)
    assert found == 4 + 4 + (count - 4)
    assert total == checksum(duck_result(query, {"a": table, "b": table}, threads=1))


def test_a_stream_left_out_is_empty() -> None:
    query = _query(pa.int64())
    assert duck_result(query, {}).equals(query.schema.empty_table())


def test_what_duckdb_computes_differently_is_refused() -> None:
    output = Output("x", Cast(Column("a", "k"), pa.int64()))
    with pytest.raises(Untranslatable, match="casts string to int64 differently"):
        duck_sql(_query(pa.string(), (output,)))


def test_without_duckdb_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "duckdb":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(PlaitError, match=r"pip install 'plait\[bench\]'"):
        duck_result(_query(pa.int64()), {})


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    times = pa.array([0] * 50_000, pa.timestamp("us"))
    table = pa.table({"ts": times, "k": pa.array([1] * 50_000)})
    with pytest.raises(TooSlow, match=r"DuckDB took longer than 0\.05 s"):
        count_and_checksum(_query(pa.int64()), {"a": table, "b": table}, threads=1, seconds=0.05)
