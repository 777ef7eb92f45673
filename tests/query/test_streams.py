"""Streams from what is known of them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from plait.errors import TimeColumnError, UnknownStream, WindowError
from plait.query.expr import Call, Column, Literal
from plait.query.query import Field
from plait.query.streams import delays_of, fields_of, time_columns

ONE = (Field("k", pa.int64()), Field("ts", pa.timestamp("us")))
TWO = (*ONE, Field("made", pa.timestamp("ms")))
NONE = ONE[:1]


def within(left: Column, right: Column) -> Call:
    five = Literal(dt.timedelta(seconds=5), pa.duration("us"))
    return Call("le", (left, Call("add", (right, five))))


def test_fields() -> None:
    assert fields_of(pa.schema([(f.name, f.type) for f in ONE])) == ONE
    assert fields_of(list(ONE)) == ONE


def test_delays() -> None:
    assert delays_of(["a", "b"], None) == {"a": 0, "b": 0}
    assert delays_of(["a", "b"], "1 s") == {"a": 1_000_000, "b": 1_000_000}
    assert delays_of(["a", "b"], {"b": dt.timedelta(seconds=2)}) == {"a": 0, "b": 2_000_000}
    with pytest.raises(UnknownStream, match="there is no stream 'c'; known: a, b"):
        delays_of(["a", "b"], {"c": "1 s"})
    with pytest.raises(WindowError, match="the watermark delay of 'a' is '-1 s'"):
        delays_of(["a", "b"], {"a": "-1 s"})


def test_the_event_time_is_given_or_used_or_the_only_one() -> None:
    tables = [("a", ONE), ("b", TWO)]
    assert time_columns(tables, {"b": "made"}, []) == ("ts", "made")
    used = within(Column("a", "ts"), Column("b", "made"))
    assert time_columns(tables, {}, [used]) == ("ts", "made")
    assert time_columns(tables, {"b": "ts"}, [used]) == ("ts", "ts")


def test_a_condition_with_a_column_that_is_not_the_given_one_reveals_nothing() -> None:
    tables = [("a", TWO), ("b", TWO)]
    used = within(Column("a", "made"), Column("b", "made"))
    with pytest.raises(TimeColumnError, match="which column of 'b'"):
        time_columns(tables, {"a": "ts"}, [used])


@pytest.mark.parametrize(
    ("given", "conditions", "message"),
    [
        ({}, [], "which column of 'b' is its event time? it has several timestamp columns: ts, "
                 'made; say it with time, for example time(b="ts")'),
        ({}, [within(Column("a", "ts"), Column("b", "made")),
              within(Column("b", "ts"), Column("a", "ts"))],
         "the interval conditions use several: made, ts"),
        ({"b": "k"}, [], "the event-time column b.k is of type int64, not a timestamp"),
        ({"b": "x"}, [], "stream 'b' has no column 'x' to take the event time from; "
                         "timestamp columns: ts, made"),
    ],
)  # fmt: skip
def test_an_event_time_that_is_not_clear(
    given: dict[str, str], conditions: list[Call], message: str
) -> None:
    with pytest.raises(TimeColumnError) as caught:
        time_columns([("a", ONE), ("b", TWO)], given, conditions)
    assert message in str(caught.value)


def test_a_stream_without_timestamps_lists_its_columns() -> None:
    with pytest.raises(TimeColumnError) as caught:
        time_columns([("a", ONE), ("c", NONE)], {}, [])
    assert str(caught.value) == (
        "stream 'c' has no timestamp column to take the event time from; "
        "cast a column to a timestamp first; columns: k (int64)"
    )
    with pytest.raises(UnknownStream, match="there is no stream 'x'"):
        time_columns([("a", ONE)], {"x": "ts"}, [])
