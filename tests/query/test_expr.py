"""Expressions as values and as text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from plait.query.expr import Call, Cast, Column, Expr, Literal, columns_of, conjuncts, streams_of

A, B = Column("t", "a"), Column("q", "b")
ONE = Literal(1, pa.int64())


def literal(value: object) -> Literal:
    return Literal(value, pa.scalar(value).type)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (literal(None), "NULL"),
        (literal("it's"), "'it''s'"),
        (literal(True), "TRUE"),
        (literal(b"\xff"), "X'FF'"),
        (literal(Decimal("1.50")), "1.50"),
        (literal(dt.date(2024, 1, 2)), "DATE '2024-01-02'"),
        (literal(dt.datetime(2024, 1, 2, 3)), "TIMESTAMP '2024-01-02 03:00:00'"),
        (literal(dt.timedelta(seconds=90)), "INTERVAL '90 s'"),
        (Call("add", (A, Call("mul", (B, ONE)))), "t.a + q.b * 1"),
        (Call("mul", (Call("add", (A, B)), ONE)), "(t.a + q.b) * 1"),
        (Call("sub", (A, Call("sub", (B, ONE)))), "t.a - (q.b - 1)"),
        (Call("sub", (Call("sub", (A, B)), ONE)), "t.a - q.b - 1"),
        (Call("neg", (Call("add", (A, B)),)), "-(t.a + q.b)"),
        (Call("not", (Call("and", (A, B)),)), "NOT (t.a AND q.b)"),
        (Call("or", (Call("and", (A, B)), A)), "t.a AND q.b OR t.a"),
        (Call("and", (Call("or", (A, B)), A)), "(t.a OR q.b) AND t.a"),
        (Call("eq", (Call("eq", (A, B)), A)), "(t.a = q.b) = t.a"),
        (Call("nseq", (A, B)), "t.a <=> q.b"),
        (Call("is_null", (A,)), "t.a IS NULL"),
        (Call("in", (A, ONE, ONE)), "t.a IN (1, 1)"),
        (Call("like", (A, literal("x%"))), "t.a LIKE 'x%'"),
        (Call("case", (A, ONE, B)), "CASE WHEN t.a THEN 1 ELSE q.b END"),
        (Call("coalesce", (A, B)), "coalesce(t.a, q.b)"),
        (Cast(A, pa.int32()), "CAST(t.a AS int32)"),
    ],
)
def test_text(expr: Expr, text: str) -> None:
    assert str(expr) == text


def test_what_an_expression_reads() -> None:
    expr = Call("add", (A, Cast(Call("add", (B, ONE)), pa.int64())))
    assert list(columns_of(expr)) == [A, B]
    assert streams_of(expr) == {"t", "q"}
    assert streams_of(ONE) == frozenset()
    assert list(conjuncts(Call("and", (A, Call("and", (B, A)))))) == [A, B, A]


def test_unknown_operators_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown operator 'xor'"):
        Call("xor", (A, B))


def test_expressions_are_values() -> None:
    assert Call("add", (A, ONE)) == Call("add", (A, Literal(1, pa.int64())))
    assert len({Call("add", (A, ONE)), Call("add", (A, ONE))}) == 1
    assert Literal(1, pa.int64()) != Literal(1, pa.int32())
