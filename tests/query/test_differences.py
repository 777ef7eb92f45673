"""Conditions on event times as difference bounds."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.query.bounds import Constraint
from plait.query.differences import constraints, differences, exactly, kept
from plait.query.evaluate import evaluate
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Field, Stream

FIELDS = (
    Field("ts", pa.timestamp("us")),
    Field("other", pa.timestamp("us")),
    Field("k", pa.int64()),
)
STREAMS = [Stream("a", FIELDS, "ts"), Stream("b", FIELDS, "ts")]
A, B = Column("a", "ts"), Column("b", "ts")


def length(micros: int) -> Literal:
    return Literal(dt.timedelta(microseconds=micros), pa.duration("us"))


def shifted(expr: Expr, op: str, micros: int) -> Expr:
    return Call(op, (expr, length(micros)))


@st.composite
def comparisons(draw: st.DrawFn) -> Expr:
    """Every form that is a bound, nested at will."""
    op = draw(st.sampled_from(["lt", "le", "gt", "ge", "eq"]))
    shift = st.tuples(st.sampled_from(["add", "sub"]), st.integers(-3, 3))

    def side(expr: Expr) -> Expr:
        for sign, micros in draw(st.lists(shift, max_size=2)):
            expr = shifted(expr, sign, micros)
        return expr

    match draw(st.integers(0, 2)):
        case 0:
            return Call(op, (side(A), side(B)))
        case 1:
            difference = Call("sub", (side(B), side(A)))
            return Call(op, (difference, length(draw(st.integers(-3, 3)))))
        case _:
            inner = Call("sub", (A, B))
            if draw(st.booleans()):
                return Call(draw(st.sampled_from(["lt", "le"])), (Call("abs", (inner,)), length(2)))
            return Call(draw(st.sampled_from(["gt", "ge"])), (length(2), Call("abs", (inner,))))


@given(comparisons(), st.integers(-9, 9))
def test_the_bounds_say_what_the_condition_says(condition: Expr, apart: int) -> None:
    times = {"a": 0, "b": apart}
    columns = {s: pa.array([t], pa.timestamp("us")) for s, t in times.items()}
    holds = evaluate(condition, lambda c: columns[c.stream], 1)[0].as_py()
    found = differences(condition)
    assert found
    assert holds == all(times[d.later.stream] - times[d.earlier.stream] <= d.micros for d in found)


def test_only_event_times_are_constrained() -> None:
    assert constraints(Call("le", (B, shifted(A, "add", 5))), STREAMS) == (Constraint(0, 1, 5),)
    other = Call("le", (Column("b", "other"), shifted(A, "add", 5)))
    assert differences(other)
    assert constraints(other, STREAMS) == ()


@pytest.mark.parametrize(
    "condition",
    [
        Call("ne", (A, B)),
        Call("le", (A, shifted(A, "add", 5))),
        Call("le", (A, Literal(dt.datetime(2024, 1, 1), pa.timestamp("us")))),
        Call("le", (A, Call("coalesce", (B, A)))),
        Call("or", (Call("le", (A, B)), Call("le", (B, A)))),
        Call("not", (Call("le", (A, B)),)),
        Call("ge", (Call("abs", (Call("sub", (A, B)),)), length(5))),
    ],
)
def test_other_conditions_are_no_bounds(condition: Expr) -> None:
    assert differences(condition) == ()


def test_an_equality_may_say_more_than_its_bounds() -> None:
    assert constraints(Call("eq", (A, B)), STREAMS) == (Constraint(1, 0, 0), Constraint(0, 1, 0))
    assert kept(Call("eq", (A, B)), STREAMS) == (Call("eq", (A, B)),)
    later = Call("eq", (B, shifted(A, "add", 5)))
    assert kept(later, STREAMS) == ()


def test_a_comparison_of_nanoseconds_says_more_than_its_bounds() -> None:
    fine = [Stream("a", (Field("ts", pa.timestamp("ns")),), "ts"), STREAMS[1]]
    later = Call("eq", (B, shifted(A, "add", 5)))
    assert kept(later, fine) == (later,)
    apart = Call("le", (Call("abs", (Call("sub", (A, B)),)), length(5)))
    texts = [str(expr) for expr in kept(apart, fine)]
    assert texts == ["a.ts <= b.ts + INTERVAL '5 us'", "b.ts <= a.ts + INTERVAL '5 us'"]
    assert kept(Call("lt", (A, B)), fine) == (Call("lt", (A, B)),)
    assert constraints(Call("lt", (A, B)), fine) == (Constraint(1, 0, 0, True),)
    assert constraints(Call("lt", (A, B)), STREAMS) == (Constraint(1, 0, -1),)
    assert exactly([Constraint(0, 1, 5)], STREAMS) == []
    (window,) = exactly([Constraint(0, 1, 5)], fine)
    assert str(window) == "b.ts <= a.ts + INTERVAL '5 us'"
