"""Queries as checked values in one canonical form."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import plait
from plait import errors
from plait.errors import DisconnectedJoin, PlaitError, TimeColumnError, WindowError
from plait.query.bounds import Constraint, global_window
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import (
    Equality,
    Field,
    Output,
    Stream,
    make_query,
    resolve,
    stream_index,
)

FIELDS = (
    Field("k", pa.int64()),
    Field("s", pa.string()),
    Field("ts", pa.timestamp("us")),
)
A, B, C = (Stream(name, FIELDS, "ts") for name in "abc")
WITHIN = global_window(2, 5)


def eq(left: str, right: str) -> Call:
    a, b = (Column(*side.split(".")) for side in (left, right))
    return Call("eq", (a, b))


def gt(left: str, number: int) -> Call:
    return Call("gt", (Column(*left.split(".")), Literal(number, pa.int64())))


def test_equalities_are_told_from_conditions() -> None:
    query = make_query([A, B], [Call("and", (eq("b.k", "a.k"), gt("a.k", 3)))], WITHIN)
    assert query.equalities == (Equality(Column("a", "k"), Column("b", "k")),)
    assert query.residuals == (gt("a.k", 3),)
    assert query.names == ("a", "b")
    assert query.index("b") == 1
    assert query.graph.connected([0, 1])


def test_order_and_repetition_of_the_conditions_do_not_matter() -> None:
    one = [eq("a.k", "b.k"), eq("a.s", "b.s"), gt("a.k", 3), gt("b.k", 1)]
    other = [gt("b.k", 1), eq("b.s", "a.s"), gt("a.k", 3), eq("b.k", "a.k"), gt("a.k", 3)]
    assert make_query([A, B], one, WITHIN) == make_query([A, B], other, WITHIN)
    assert hash(make_query([A, B], one, WITHIN)) == hash(make_query([A, B], other, WITHIN))


def test_without_select_every_column_is_there_under_its_streams_name() -> None:
    query = make_query([A, B], [eq("a.k", "b.k")], WITHIN)
    assert query.schema.names == ["a_k", "a_s", "a_ts", "b_k", "b_s", "b_ts"]
    assert query.schema.field("a_ts").type == pa.timestamp("us")


def test_the_schema_has_the_types_of_the_outputs() -> None:
    half = Output("half", Call("div", (Column("a", "k"), Literal(2, pa.int64()))))
    query = make_query([A, B], [eq("a.k", "b.k")], WITHIN, [half])
    assert query.schema == pa.schema([("half", pa.float64())])
    assert str(half) == "a.k / 2 AS half"
    assert str(Output("a.k", Column("a", "k"))) == "a.k"


def test_a_bare_name_is_resolved_if_it_is_unique() -> None:
    only = replace(B, fields=(*FIELDS, Field("z", pa.int64())))
    assert resolve([A, only], "z") == Column("b", "z")
    assert resolve([A, B], "k", "a") == Column("a", "k")


@pytest.mark.parametrize(
    ("name", "stream", "type_", "message"),
    [
        ("k", None, errors.AmbiguousColumn,
         "column 'k' is in several streams: a, b; write a.k"),
        ("kk", None, errors.UnknownColumn,
         "no stream has a column 'kk'; did you mean 'k'? known: k, s, ts"),
        ("x", "a", errors.UnknownColumn, "stream 'a' has no column 'x'; known: k, s, ts"),
        ("k", "aa", errors.UnknownStream,
         "there is no stream 'aa'; did you mean 'a'? known: a, b"),
    ],
)  # fmt: skip
def test_names_that_mean_nothing(
    name: str, stream: str | None, type_: type[errors.PlaitError], message: str
) -> None:
    with pytest.raises(type_) as caught:
        resolve([A, B], name, stream)
    assert str(caught.value) == message


JOINED: list[Expr] = [eq("a.k", "b.k")]


def _lists(stream: Stream) -> Stream:
    """The stream, with lists as keys."""
    others = tuple(field for field in stream.fields if field.name != "k")
    return replace(stream, fields=(Field("k", pa.list_(pa.int64())), *others))


@pytest.mark.parametrize(
    ("streams", "conditions", "bounds", "select", "type_", "message"),
    [
        ([A], [], (), (), errors.QueryError, "a join needs at least two streams; add another"),
        ([A, A], [], (), (), errors.DuplicateName, "two streams are called 'a'; rename one"),
        ([A, replace(B, fields=FIELDS + FIELDS[:1])], JOINED, WITHIN, (), errors.DuplicateName,
         "stream 'b' has two columns 'k'"),
        ([A, replace(B, time="t")], JOINED, WITHIN, (), errors.TimeColumnError,
         "stream 'b' has no column 't' to take the event time from; timestamp columns: ts"),
        ([A, replace(B, time="k")], JOINED, WITHIN, (), errors.TimeColumnError,
         "the event-time column b.k is of type int64, not a timestamp; cast it to a timestamp"),
        ([A, replace(B, fields=FIELDS[:2], time="ts")], JOINED, WITHIN, (),
         errors.TimeColumnError, "it has no timestamp column"),
        ([A, replace(B, delay=-1)], JOINED, WITHIN, (), errors.WindowError,
         "the watermark delay of 'b' is negative; give a length of time >= 0"),
        ([A, B], [eq("a.k", "b.s")], WITHIN, (), errors.TypeMismatch,
         "a.k is int64 and b.s is string: they can never be equal; cast one of them"),
        ([_lists(A), _lists(B)], JOINED, WITHIN, (), errors.TypeMismatch,
         "values of type list<item: int64> are no join keys in Plait; make a column of what they"),
        ([A, B], [*JOINED, gt("a.s", 3)], WITHIN, (), errors.TypeMismatch,
         "a.s > 3 has no meaning: a.s is string and 3 is int64"),
        ([A, B], [*JOINED, Column("a", "k")], WITHIN, (), errors.TypeMismatch,
         "the condition a.k is of type int64, not true or false; compare it with something"),
        ([A, B], [*JOINED, Literal(True, pa.bool_())], WITHIN, (), errors.QueryError,
         "the condition TRUE reads no column; leave it out"),
        ([A, B], [*JOINED, gt("a.z", 3)], WITHIN, (), errors.UnknownColumn,
         "stream 'a' has no column 'z'"),
        ([A, B], JOINED, (), (), errors.UnboundedPair,
         "b.time may be arbitrarily long after a.time: their state would grow for ever; "
         "bound the pair (a, b)"),
        ([A, B], JOINED, (*WITHIN, Constraint(0, 1, -6)), (), errors.WindowError,
         "the time conditions on a and b contradict each other"),
        ([A, B], [gt("a.k", 1)], WITHIN, (), errors.DisconnectedJoin,
         "nothing joins a with b: the result would be their cross product"),
        ([A, B, C], JOINED, global_window(3, 5), (), errors.DisconnectedJoin,
         "nothing joins a, b with c"),
        ([A, B], JOINED, WITHIN, [Output("x", Column("a", "k")), Output("x", Column("b", "k"))],
         errors.DuplicateName, "two result columns are called 'x'; give one of them another name"),
        ([A, B], JOINED, WITHIN, [Output("x", Column("c", "k"))], errors.UnknownStream,
         "there is no stream 'c'"),
        ([A, B], JOINED, WITHIN, [Output("x", Call("neg", (Column("a", "s"),)))],
         errors.TypeMismatch, "-a.s has no meaning: a.s is string"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(
    streams: list[Stream],
    conditions: list[Expr],
    bounds: tuple[Constraint, ...],
    select: list[Output],
    type_: type[errors.PlaitError],
    message: str,
) -> None:
    with pytest.raises(type_) as caught:
        make_query(streams, conditions, bounds, select)
    assert message in str(caught.value)


def test_a_query_is_a_value() -> None:
    query = make_query([A, B], JOINED, WITHIN)
    assert query == make_query([A, B], JOINED, WITHIN)
    assert query != make_query([A, B], JOINED, global_window(2, 6))
    assert stream_index(query.streams, "b") == 1
    assert query.type_of(Column("a", "s")) == pa.string()


def test_times_with_and_without_a_zone_do_not_mix() -> None:
    """Regression: within joined them as if the zone were UTC, and BETWEEN refused them."""
    zoned = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64())])
    plain = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
    mixed = plait.join(a=plain, b=zoned).on("a.k = b.k").within("5 seconds")
    with pytest.raises(TimeColumnError, match=r"b\.ts has a time zone and a\.ts has none.*; cast"):
        _ = mixed.query
    with pytest.raises(PlaitError):
        _ = mixed.on("b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 SECOND").query
    other = pa.schema([("ts", pa.timestamp("us", "Europe/Vienna")), ("k", pa.int64())])
    assert plait.join(a=other, b=zoned).on("a.k = b.k").within("5 seconds").query.names


def test_null_safe_equality_is_no_key() -> None:
    row = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
    joined = plait.join(a=row, b=row).within("5 seconds")
    with pytest.raises(
        DisconnectedJoin, match=r"a\.k <=> b\.k is no join key.*; write a\.k = b\.k"
    ):
        _ = joined.on("a.k <=> b.k").query
    beside = joined.on("a.k = b.k", "a.k <=> b.k").query
    assert len(beside.equalities) == len(beside.residuals) == 1
    with pytest.raises(DisconnectedJoin, match="cross product; add an equality"):
        _ = joined.on("a.k <=> 1").query


def test_an_interval_that_nothing_satisfies_is_refused() -> None:
    row = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
    joined = plait.join(a=row, b=row).on("a.k = b.k")
    one = "INTERVAL 1 SECOND"
    with pytest.raises(WindowError, match="is empty: its lower end is above its upper end; exch"):
        _ = joined.on(f"b.ts BETWEEN a.ts + {one} AND a.ts - {one}").query
    with pytest.raises(WindowError, match="contradict each other: no result can satisfy them"):
        _ = joined.on(f"b.ts >= a.ts + {one}", f"b.ts <= a.ts - {one}").query
