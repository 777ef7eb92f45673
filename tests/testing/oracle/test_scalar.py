"""The scalar evaluator: computed by hand, and compared with the vectorised one."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from plait.errors import TypeMismatch
from plait.query.evaluate import evaluate, type_of
from plait.query.expr import Call, Cast, Column, Expr, Literal
from plait.testing.oracle.scalar import compare, compiled, inward, outward, python_values
from plait.testing.oracle.scalar_cast import NAN

COLUMNS: dict[str, pa.Array] = {
    "i": pa.array([0, 1, -7, 2**63 - 1, -(2**63), None, 3]),
    "j": pa.array([2, 0, 3, -1, -1, 5, None], pa.int32()),
    "x": pa.array([0.0, -0.0, math.nan, math.inf, 2.5, None, -1e30]),
    "y": pa.array([1.5, 0.0, 2.0, -math.inf, -2.5, 1.0, math.nan]),
    "f": pa.array([0.5, 0.0, math.nan, 3.25, None, -0.0, 1e30], pa.float32()),
    "s": pa.array(["", "a", "Añ", " b ", "ab", None, "12"]),
    "t": pa.array(["a", "a", "ñ", "%", None, "b", "1.5"]),
    "b": pa.array([True, False, None, True, False, True, None]),
    "d": pa.array(["0", "1.5", "-2.5", "0.01", "999.99", "0.05", None]).cast(pa.decimal128(7, 2)),
    "e": pa.array([0, 2, -3, 1, 10, None, 7]).cast(pa.decimal128(19, 0)).cast(pa.decimal128(4, 0)),
    "u": pa.array([0, 1, -1, 10**15, -(10**15), None, 5], pa.timestamp("us")),
    "n": pa.array([0, 999, -1, 10**18, -(10**18), 5, None], pa.timestamp("ns")),
    "c": pa.array([0, 1, -1, 20_000, None, 5, 6], pa.date32()),
}
ROWS = 7


def _lookup(column: Column) -> pa.DataType:
    return COLUMNS[column.name].type


def _values(expr: Expr) -> list[object]:
    """The expression in each row, one by one, in the form of `python_values`."""
    function, type_ = compiled(expr, _lookup), type_of(expr, _lookup)
    rows = [
        {
            Column("r", name): inward(python_values(column)[k], column.type)
            for name, column in COLUMNS.items()
        }
        for k in range(ROWS)
    ]
    return [outward(function(row), type_) for row in rows]


def _col(name: str) -> Column:
    return Column("r", name)


def _lit(value: object, type_: pa.DataType) -> Literal:
    return Literal(value, type_)


def _int(value: int) -> Literal:
    return Literal(value, pa.int64())


yes, no = True, False
BY_HAND: list[tuple[Expr, list[object]]] = [
    (Call("add", (_col("i"), _int(1))), [1, 2, -6, None, -(2**63) + 1, None, 4]),
    (Call("div", (_col("i"), _col("j"))), [0.0, None, -7 / 3, -(2.0**63), 2.0**63, None, None]),
    (Call("mod", (_col("i"), _col("j"))), [0, None, -1, 0, 0, None, None]),
    (Call("neg", (_col("i"),)), [0, -1, 7, -(2**63) + 1, None, None, -3]),
    (Call("eq", (_col("x"), _lit(math.nan, pa.float64()))), [no, no, yes, no, no, None, no]),
    (Call("eq", (_col("x"), _lit(-0.0, pa.float64()))), [yes, yes, no, no, no, None, no]),
    (Call("gt", (_col("x"), _col("y"))), [no, no, yes, yes, yes, None, no]),
    (Call("nseq", (_col("i"), _lit(None, pa.null()))), [no, no, no, no, no, yes, no]),
    (Call("and", (_col("b"), _lit(None, pa.bool_()))), [None, no, None, None, no, None, None]),
    (Call("or", (_col("b"), _lit(None, pa.bool_()))), [True, None, None, True, None, True, None]),
    (Call("not", (_col("b"),)), [False, True, None, False, True, False, None]),
    (Call("in", (_col("i"), _int(1), _lit(None, pa.int64()))), [None, yes, *[None] * 5]),
    (Call("floor", (_col("x"),)), [0, 0, None, None, 2, None, None]),
    (Call("java17_round", (_col("y"),)), [2.0, 0.0, 2.0, -math.inf, -3.0, 1.0, NAN]),
    (Call("round", (_col("y"),)), [2.0, 0.0, 2.0, -math.inf, -3.0, 1.0, NAN]),
    (Call("greatest", (_col("x"), _col("y"))), [1.5, 0.0, NAN, math.inf, 2.5, 1.0, NAN]),
    (Call("least", (_col("i"), _col("j"))), [0, 0, -7, -1, -(2**63), 5, 3]),
    (Call("coalesce", (_col("i"), _col("x"))), [0.0, 1.0, -7.0, 2.0**63, -(2.0**63), None, 3.0]),
    (Call("concat", (_col("s"), _col("t"))), ["a", "aa", "Aññ", " b %", None, None, "121.5"]),
    (Call("length", (_col("s"),)), [0, 1, 2, 3, 2, None, 2]),
    (Call("upper", (_col("s"),)), ["", "A", "AÑ", " B ", "AB", None, "12"]),
    (Call("trim", (_col("s"),)), ["", "a", "Añ", "b", "ab", None, "12"]),
    (Call("like", (_col("s"), _lit("a%", pa.string()))), [no, yes, no, no, yes, None, no]),
    (Call("substring", (_col("s"), _int(2), _int(1))), ["", "", "ñ", "b", "b", None, "2"]),
    (Call("unix_micros", (_col("n"),)), [0, 0, -1, 10**15, -(10**15), 0, None]),
    (Call("sub", (_col("n"), _col("u"))), [0, -1, 0, 0, 0, None, None]),
    (Cast(_col("s"), pa.int64()), [None, None, None, None, None, None, 12]),
    (Cast(_col("x"), pa.int32()), [0, 0, None, None, 2, None, None]),
    (Cast(_col("t"), pa.decimal128(3, 1)), [None] * 6 + [Decimal("1.5")]),
    (
        Call("add", (_col("d"), _col("e"))),
        [*map(Decimal, ("0", "3.5", "-5.5", "1.01", "1009.99")), None, None],
    ),
    (Call("case", (_col("b"), _col("i"), _col("y"))), [0.0, 0.0, 2.0, 2.0**63, -2.5, None, NAN]),
]


@pytest.mark.parametrize(("expr", "expected"), BY_HAND, ids=lambda x: str(x)[:50])
def test_computed_by_hand(expr: Expr, expected: list[object]) -> None:
    assert _values(expr) == expected


def test_nan_is_one_value() -> None:
    assert compare(NAN, NAN) == 0
    assert compare(math.inf, NAN) < 0 < compare(NAN, -1.0)
    assert python_values(pa.array([math.nan]))[0] is NAN


NUMBERS = ["i", "j", "x", "y", "f", "d", "e"]
_SMALL = st.sampled_from((0, 1, -1, 2, 10, 2**62, -(2**63)))


def _numbers() -> st.SearchStrategy[Expr]:
    leaves = st.one_of(
        st.sampled_from(NUMBERS).map(_col),
        _SMALL.map(_int),
        st.sampled_from((0.0, 2.5, -0.5, math.inf)).map(lambda x: _lit(x, pa.float64())),
        st.just(_lit(Decimal("2.25"), pa.decimal128(4, 2))),
        st.sampled_from(["s", "t"]).map(lambda c: Call("length", (_col(c),))),
        st.sampled_from(["u", "n"]).map(lambda c: Call("unix_micros", (_col(c),))),
    )
    return st.recursive(leaves, _more_numbers, max_leaves=6)


def _more_numbers(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    binary = st.sampled_from(("add", "sub", "mul", "div", "mod", "coalesce", "greatest", "least"))
    unary = st.sampled_from(("neg", "abs", "floor", "ceil", "round"))
    targets = (pa.int64(), pa.int32(), pa.int8(), pa.uint32(), pa.float64(), pa.decimal128(9, 3))
    return st.one_of(
        st.builds(lambda op, a, b: Call(op, (a, b)), binary, inner, inner),
        st.builds(lambda op, a: Call(op, (a,)), unary, inner),
        st.builds(lambda a, n: Call("round", (a, _int(n))), inner, st.integers(-2, 3)),
        st.builds(lambda a, b: Call("case", (Call("lt", (a, b)), a, b)), inner, inner),
        st.builds(Cast, inner, st.sampled_from(targets)),
    )


def _conditions() -> st.SearchStrategy[Expr]:
    compare_ops = st.sampled_from(("eq", "ne", "lt", "le", "gt", "ge", "nseq"))
    texts = st.sampled_from(["s", "t"]).map(_col)
    times = st.sampled_from(["u", "n", "c"]).map(_col)
    patterns = st.text(alphabet="a%_ñ.", max_size=4).map(lambda p: _lit(p, pa.string()))
    leaves = st.one_of(
        st.just(_col("b")),
        st.just(_lit(None, pa.null())),
        st.builds(lambda op, a, b: Call(op, (a, b)), compare_ops, _numbers(), _numbers()),
        st.builds(lambda op, a, b: Call(op, (a, b)), compare_ops, texts, texts),
        st.builds(lambda op, a, b: Call(op, (a, b)), compare_ops, times, times),
        st.builds(lambda a, p: Call("like", (a, p)), texts, patterns),
        st.builds(lambda a, b, c: Call("in", (a, b, c)), _numbers(), _numbers(), _numbers()),
        st.builds(lambda a: Call("is_null", (a,)), _numbers()),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda a, b: Call("and", (a, b)), inner, inner),
            st.builds(lambda a, b: Call("or", (a, b)), inner, inner),
            st.builds(lambda a: Call("not", (a,)), inner),
        ),
        max_leaves=4,
    )


def _texts() -> st.SearchStrategy[Expr]:
    places = st.integers(-3, 4).map(_int)
    changes = st.sampled_from(("lower", "upper", "trim"))
    leaves = st.one_of(
        st.sampled_from(["s", "t"]).map(_col),
        st.sampled_from(["i", "j", "b", "d"]).map(lambda c: Cast(_col(c), pa.string())),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda op, a: Call(op, (a,)), changes, inner),
            st.builds(lambda a, b: Call("concat", (a, b)), inner, inner),
            st.builds(lambda a, i: Call("substring", (a, i)), inner, places),
            st.builds(lambda a, i, n: Call("substring", (a, i, n)), inner, places, places),
        ),
        max_leaves=3,
    )


def _moments() -> st.SearchStrategy[Expr]:
    stamps = st.sampled_from(["u", "n", "c"]).map(_col)
    lengths = st.sampled_from((0, 1, -1, 86_400_000_000)).map(
        lambda n: _lit(dt.timedelta(microseconds=n), pa.duration("us"))
    )
    signs = st.sampled_from(("add", "sub"))
    return st.one_of(
        st.builds(lambda op, a, b: Call(op, (a, b)), signs, stamps, lengths),
        st.builds(lambda a, b: Call("sub", (a, b)), stamps, stamps),
        st.builds(lambda a, b: Call("greatest", (a, b)), stamps, stamps),
        st.builds(lambda a, b: Call("mul", (a, b)), lengths, st.just(_col("j"))),
        st.builds(Cast, stamps, st.sampled_from((pa.timestamp("s"), pa.date32(), pa.int64()))),
    )


@pytest.mark.slow
@given(st.one_of(_numbers(), _conditions(), _texts(), _moments()))
def test_differential_scalar_and_vectorised(expr: Expr) -> None:
    try:
        type_ = type_of(expr, _lookup)
    except TypeMismatch:
        reject()
    vectorised = evaluate(expr, lambda column: COLUMNS[column.name], ROWS)
    assert vectorised.type == type_
    assert python_values(vectorised) == _values(expr)
