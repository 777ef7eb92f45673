"""Expressions on columns against the same expressions in plain Python, row by row."""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import TypeMismatch
from plait.query.evaluate import evaluate, type_of
from plait.query.expr import Call, Cast, Column, Expr, Literal

Row = dict[str, Any]
Made = tuple[Expr, Callable[[Row], Any]]
"""An expression, and the same thing as a function of a row."""

TYPES = {
    "i": pa.int64(),
    "j": pa.int32(),
    "f": pa.float64(),
    "g": pa.float32(),
    "s": pa.string(),
    "v": pa.string_view(),
    "e": pa.dictionary(pa.int8(), pa.string()),
    "b": pa.bool_(),
    "tu": pa.timestamp("us"),
    "tn": pa.timestamp("ns"),
    "ts": pa.timestamp("s"),
    "d": pa.date32(),
}
PER_SECOND = {"tu": 10**6, "tn": 10**9, "ts": 1}
LONGS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 10**18]),
)
DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.5, -2.5, 2.675, 1e300, math.inf, -math.inf, math.nan, 3.0]),
    st.floats(width=64),
)
TEXTS = st.text(alphabet="aBñ %_\\\n", max_size=5)
STAMPS = st.sampled_from([-1, 0, 1, 999, 1000, 1_000_000, 1_500_000_000, -1_500_000_001])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": LONGS,
    "j": st.sampled_from([-(2**31), -1, 0, 1, 2, 2**31 - 1]),
    "f": DOUBLES,
    "g": st.floats(width=32),
    "s": TEXTS,
    "v": TEXTS,
    "e": st.sampled_from(["", "a", "aB"]),
    "b": st.booleans(),
    "tu": STAMPS,
    "tn": STAMPS,
    "ts": STAMPS,
    "d": st.integers(-2, 2),
}


def column(name: str) -> Made:
    return Column("t", name), lambda row: row[name]


def null_safe(function: Callable[..., Any], *args: Made) -> Callable[[Row], Any]:
    def value(row: Row) -> Any:
        values = [arg[1](row) for arg in args]
        return None if None in values else function(*values)

    return value


def call(op: str, function: Callable[..., Any], *args: Made) -> Made:
    return Call(op, tuple(arg[0] for arg in args)), null_safe(function, *args)


def constant(value: Any, type_: pa.DataType) -> Made:
    return Literal(value, type_), lambda row: value


def bits64(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def remainder(a: int, b: int) -> int | None:
    return None if b == 0 else int(math.copysign(1, a)) * (abs(a) % abs(b))


def float_remainder(a: float, b: float) -> float | None:
    if b == 0:
        return None
    return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)


def quotient(a: float, b: float) -> float | None:
    return None if b == 0 else float(a) / float(b)


def half_up(number: float, digits: int) -> float:
    if not math.isfinite(number):
        return number
    places = Decimal(1).scaleb(-digits)
    exact = Decimal(repr(number))
    if exact.adjusted() > 50:
        return number
    import decimal

    with decimal.localcontext(prec=800):
        return float(exact.quantize(places, ROUND_HALF_UP))


def rank(value: Any) -> Any:
    """A key by which Spark orders values: NaN after everything."""
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


def comparison(op: str) -> Callable[[Any, Any], bool]:
    python = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}[op]
    return lambda a, b: bool(getattr(operator, python)(rank(a), rank(b)))


def widened(made: Made) -> Made:
    return made[0], lambda row: None if (v := made[1](row)) is None else float(v)


def choice(condition: Made, yes: Made, no: Made) -> Made:
    expr = Call("case", (condition[0], yes[0], no[0]))
    return expr, lambda row: yes[1](row) if condition[1](row) else no[1](row)


def first(*options: Made) -> Made:
    expr = Call("coalesce", tuple(o[0] for o in options))
    return expr, lambda row: next((v for o in options if (v := o[1](row)) is not None), None)


def extreme(op: str, *options: Made) -> Made:
    pick = max if op == "greatest" else min

    def value(row: Row) -> Any:
        present = [v for o in options if (v := o[1](row)) is not None]
        return pick(present, key=rank) if present else None

    return Call(op, tuple(o[0] for o in options)), value


def kleene(op: str, a: Made, b: Made) -> Made:
    decisive = op == "or"

    def value(row: Row) -> Any:
        both = (a[1](row), b[1](row))
        return decisive if decisive in both else None if None in both else not decisive

    return Call(op, (a[0], b[0])), value


def null_safe_equal(a: Made, b: Made) -> Made:
    def value(row: Row) -> Any:
        x, y = a[1](row), b[1](row)
        return x is None and y is None if None in (x, y) else rank(x) == rank(y)

    return Call("nseq", (a[0], b[0])), value


def member(a: Made, listed: list[Made]) -> Made:
    def value(row: Row) -> Any:
        x, others = a[1](row), [m[1](row) for m in listed]
        if x is None:
            return None
        if any(o is not None and rank(o) == rank(x) for o in others):
            return True
        return None if None in others else False

    return Call("in", (a[0], *(m[0] for m in listed))), value


def matches(text: str, pattern: str) -> bool:
    """LIKE by the book: one character of the pattern at a time."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(matches(text[i:], pattern[1:]) for i in range(len(text) + 1))
    if pattern[0] == "_":
        return bool(text) and matches(text[1:], pattern[1:])
    literal, rest = (pattern[1], pattern[2:]) if pattern[0] == "\\" else (pattern[0], pattern[1:])
    return text[:1] == literal and matches(text[1:], rest)


def cut(text: str, start: int, count: int | None = None) -> str:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if count is None else begin + count
    return "".join(c for i, c in enumerate(text) if begin <= i < end)


def to_long(number: float) -> int | None:
    return bits64(int(number)) if math.isfinite(number) else None


def long_literal(value: int | None) -> Made:
    return constant(value, pa.int64())


patterns = st.lists(
    st.sampled_from(["a", "B", "ñ", "%", "_", "\\%", "\\_", "\\\\", "\n"]), max_size=4
).map("".join)


@st.composite
def numbers(draw: st.DrawFn, depth: int = 2, whole: bool | None = None) -> Made:
    """An integer expression, or a double one."""
    whole = draw(st.booleans()) if whole is None else whole
    inner = depth - 1
    if depth == 0:
        if whole:
            return draw(
                st.one_of(
                    st.sampled_from(["i", "j"]).map(column),
                    LONGS.map(long_literal),
                    st.just(long_literal(None)),
                )
            )
        literals = DOUBLES.map(lambda x: constant(x, pa.float64()))
        return draw(st.one_of(st.sampled_from(["f", "g"]).map(column), literals))
    if whole:
        a, b = draw(numbers(inner, True)), draw(numbers(inner, True))
        match draw(st.sampled_from("+-*%nalfcugku")):
            case "+":
                return call("add", lambda x, y: bits64(x + y), a, b)
            case "-":
                return call("sub", lambda x, y: bits64(x - y), a, b)
            case "*":
                return call("mul", lambda x, y: bits64(x * y), a, b)
            case "%":
                return call("mod", remainder, a, b)
            case "n":
                return call("neg", lambda x: bits64(-x), a)
            case "a":
                return call("abs", lambda x: bits64(abs(x)), a)
            case "l":
                return call("length", len, draw(strings(inner)))
            case "f":
                op = draw(st.sampled_from(["floor", "ceil"]))
                to_whole = math.floor if op == "floor" else math.ceil
                inexact = draw(numbers(inner, False))
                safe: Any = lambda x: bits64(to_whole(x)) if math.isfinite(x) else None  # noqa: E731
                return call(op, safe, inexact)
            case "c":
                return choice(draw(truths(inner)), a, b)
            case "u":
                name = draw(st.sampled_from(["tu", "tn", "ts"]))
                scale = PER_SECOND[name]
                return call("unix_micros", lambda x: x * 10**6 // scale, column(name))
            case "g":
                return extreme(draw(st.sampled_from(["greatest", "least"])), a, b)
            case _:
                return first(a, b)
    a, b = draw(numbers(inner)), draw(numbers(inner, False))
    pair = (a, b) if draw(st.booleans()) else (b, a)
    x, y = widened(pair[0]), widened(pair[1])
    match draw(st.sampled_from("+-*/%narcgk")):
        case "+":
            return call("add", operator.add, x, y)
        case "-":
            return call("sub", operator.sub, x, y)
        case "*":
            return call("mul", operator.mul, x, y)
        case "/":
            return call("div", quotient, a, draw(numbers(inner)))
        case "%":
            return call("mod", float_remainder, x, y)
        case "n":
            return call("neg", operator.neg, widened(b))
        case "a":
            return call("abs", abs, widened(b))
        case "r":
            digits = draw(st.integers(-3, 6))
            return call("round", half_up, widened(b), long_literal(digits))
        case "c":
            return choice(draw(truths(inner)), x, y)
        case "g":
            return extreme(draw(st.sampled_from(["greatest", "least"])), x, y)
        case _:
            return first(x, y)


@st.composite
def strings(draw: st.DrawFn, depth: int = 2) -> Made:
    """A string expression."""
    if depth == 0:
        literals = TEXTS.map(lambda s: constant(s, pa.string()))
        return draw(st.one_of(st.sampled_from(["s", "v", "e"]).map(column), literals))
    a, b = draw(strings(depth - 1)), draw(strings(depth - 1))
    match draw(st.sampled_from("+lutsSck")):
        case "+":
            return call("concat", operator.add, a, b)
        case "l":
            return call("lower", str.lower, a)
        case "u":
            return call("upper", str.upper, a)
        case "t":
            return call("trim", lambda s: s.strip(" "), a)
        case "s":
            places = [
                long_literal(draw(st.integers(-4, 4))) for _ in range(draw(st.integers(1, 2)))
            ]
            return call("substring", cut, a, *places)
        case "S":
            return call("substring", cut, a, column("i"), long_literal(draw(st.integers(-1, 3))))
        case "c":
            return choice(draw(truths(depth - 1)), a, b)
        case _:
            return first(a, b)


@st.composite
def moments(draw: st.DrawFn) -> Made:
    """A timestamp of any unit, or a date, as nanoseconds."""
    name = draw(st.sampled_from(["tu", "tn", "ts", "d"]))
    expr, value = column(name)
    scale = 86_400 * 10**9 if name == "d" else 10**9 // PER_SECOND[name]
    nanos: Made = expr, lambda row: None if (v := value(row)) is None else v * scale
    if draw(st.booleans()):
        return nanos
    length = draw(st.sampled_from([-1, 1, 86_400_000_000]))
    op = draw(st.sampled_from(["add", "sub"]))
    sign = 1 if op == "add" else -1
    by = Literal(dt.timedelta(microseconds=length), pa.duration("us"))
    return (
        Call(op, (expr, by)),
        lambda row: None if (v := nanos[1](row)) is None else v + sign * length * 1000,
    )


@st.composite
def truths(draw: st.DrawFn, depth: int = 2) -> Made:
    """A condition."""
    if depth == 0:
        literals = st.sampled_from([True, False, None]).map(lambda v: constant(v, pa.bool_()))
        return draw(st.one_of(st.just(column("b")), literals))
    inner = depth - 1
    op = draw(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))
    match draw(st.sampled_from("nnssmkkx0=il")):
        case "n":
            whole = draw(st.booleans())
            if whole:
                return call(
                    op, comparison(op), draw(numbers(inner, True)), draw(numbers(inner, True))
                )
            a, b = draw(numbers(inner, False)), draw(numbers(inner))
            pair = (a, b) if draw(st.booleans()) else (b, a)
            return call(op, comparison(op), widened(pair[0]), widened(pair[1]))
        case "s":
            return call(op, comparison(op), draw(strings(inner)), draw(strings(inner)))
        case "m":
            return call(op, comparison(op), draw(moments()), draw(moments()))
        case "k":
            logic = draw(st.sampled_from(["and", "or"]))
            return kleene(logic, draw(truths(inner)), draw(truths(inner)))
        case "x":
            return call("not", operator.not_, draw(truths(inner)))
        case "0":
            a = draw(st.one_of(numbers(inner), strings(inner), truths(inner)))
            return Call("is_null", (a[0],)), lambda row: a[1](row) is None
        case "=":
            return null_safe_equal(draw(numbers(inner, False)), draw(numbers(inner, False)))
        case "i":
            if draw(st.booleans()):
                listed = draw(
                    st.lists(st.sampled_from(["", "a", "aB", None]), min_size=1, max_size=3)
                )
                return member(draw(strings(inner)), [constant(v, pa.string()) for v in listed])
            some = draw(st.lists(st.sampled_from([0, 1, 2**53, None]), min_size=1, max_size=3))
            whole = draw(st.booleans())
            subject = draw(numbers(inner, whole))
            options = [long_literal(v) for v in some]
            if not whole:
                return member(widened(subject), [widened(o) for o in options])
            return member(subject, options)
        case _:
            pattern = draw(patterns)
            return call("like", matches, draw(strings(inner)), constant(pattern, pa.string()))


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Some rows with nulls."""
    count = draw(st.integers(0, 4))
    row = st.fixed_dictionaries({n: st.one_of(st.none(), v) for n, v in VALUES.items()})
    return [draw(row) for _ in range(count)]


def arrays(rows: list[Row]) -> dict[str, pa.Array]:
    made = {}
    for name, type_ in TYPES.items():
        values = [row[name] for row in rows]
        if pa.types.is_dictionary(type_):
            made[name] = pa.array(values, pa.string()).dictionary_encode().cast(type_)
        else:
            made[name] = pa.array(values, type_)
    return made


def same(a: Any, b: Any) -> bool:
    return a is None and b is None if None in (a, b) else rank(a) == rank(b)


@pytest.mark.slow
@given(st.one_of(numbers(3), strings(3), truths(3)), tables())
def test_columns_agree_with_plain_python(made: Made, rows: list[Row]) -> None:
    expr, expected = made
    columns = arrays(rows)
    result = evaluate(expr, lambda c: columns[c.name], len(rows))
    assert isinstance(result, pa.Array)
    if not isinstance(expr, Column):
        assert result.type == type_of(expr, lambda c: TYPES[c.name])
    found = result.to_pylist()
    wanted = [expected(row) for row in rows]
    assert len(found) == len(wanted)
    assert all(same(a, b) for a, b in zip(found, wanted, strict=True)), (str(expr), found, wanted)


@given(st.one_of(numbers(1), strings(1), truths(1)), tables(), st.data())
def test_a_row_does_not_depend_on_its_neighbours(
    made: Made, rows: list[Row], data: st.DataObject
) -> None:
    columns = arrays(rows)
    together = evaluate(made[0], lambda c: columns[c.name], len(rows)).to_pylist()
    start = data.draw(st.integers(0, len(rows)))
    part = {name: column.slice(start) for name, column in columns.items()}
    alone = evaluate(made[0], lambda c: part[c.name], len(rows) - start).to_pylist()
    assert all(same(a, b) for a, b in zip(together[start:], alone, strict=True))


def lookup(column: Column) -> pa.DataType:
    return TYPES[column.name]


def c(name: str) -> Column:
    return Column("t", name)


def literal(value: object) -> Literal:
    return Literal(value, pa.scalar(value).type)


def test_a_bare_column_is_passed_through() -> None:
    encoded = pa.array(["a", "b"]).dictionary_encode()
    assert evaluate(c("e"), lambda _: encoded, 2).equals(encoded)
    assert type_of(c("e"), lookup) == TYPES["e"]
    chunked = pa.chunked_array([["a"], ["b"]])
    assert evaluate(c("s"), lambda _: chunked, 2).equals(pa.array(["a", "b"]))


def test_a_constant_fills_the_rows() -> None:
    assert evaluate(literal(7), lambda _: None, 3).to_pylist() == [7, 7, 7]
    three = Call("add", (literal(1), literal(2)))
    assert evaluate(three, lambda _: None, 2).to_pylist() == [3, 3]
    assert evaluate(three, lambda _: None, 0).to_pylist() == []


def test_constants_keep_the_sign_of_zero() -> None:
    for zero, text in ((0.0, "0.0"), (-0.0, "-0.0"), (0.0, "0.0")):
        written = Cast(Literal(zero, pa.float64()), pa.string())
        assert evaluate(written, lambda _: None, 1).to_pylist() == [text]


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (
            Call("add", (c("s"), literal(1))),
            "t.s + 1 has no meaning: t.s is string and 1 is int64; only numbers and times have "
            "arithmetic; cast strings to numbers, or use concat",
        ),
        (
            Call("eq", (c("s"), c("i"))),
            "t.s = t.i has no meaning: t.s is string and t.i is int64; they have no common type; "
            "cast one to the type of the other",
        ),
        (
            Call("and", (c("i"), c("b"))),
            "t.i AND t.b has no meaning: t.i is int64 and t.b is bool; only a condition is true or "
            "false; compare it with something",
        ),
        (
            Call("case", (c("b"), literal(1), literal("x"))),
            "CASE WHEN t.b THEN 1 ELSE 'x' END has no meaning: t.b is bool, 1 is int64 and 'x' is "
            "string; they have no common type; cast one to the type of the other",
        ),
        (
            Call("add", (c("tu"), c("tn"))),
            "t.tu + t.tn has no meaning: t.tu is timestamp[us] and t.tn is timestamp[ns]; times "
            "take +, - with an INTERVAL",
        ),
        (Call("lower", (c("i"),)), "only a string has this function; use CAST(... AS STRING)"),
        (Call("unix_micros", (c("s"),)), "unix_micros takes a timestamp; cast it to one"),
        (Call("neg", (c("b"),)), "only numbers and intervals have a sign"),
        (Call("round", (c("f"), c("i"))), "the number of digits is an integer literal"),
        (Call("floor", (c("s"),)), "only numbers are rounded"),
        (Call("substring", (c("s"), c("f"))), "the start and the length are integers"),
        (Call("like", (c("s"), c("s"))), "the pattern of LIKE is a string literal"),
        (Call("like", (c("s"), literal("a\\b"))), "a backslash goes before %, _ or \\"),
        (Cast(c("b"), pa.timestamp("us")), "nothing of type bool is a timestamp[us]"),
    ],
)
def test_types_that_do_not_fit_are_named(expr: Expr, message: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        type_of(expr, lookup)
    assert message in str(caught.value)


@pytest.mark.parametrize("type_", [pa.list_(pa.int64()), pa.struct([("x", pa.int64())])])
def test_nested_values_have_no_order(type_: pa.DataType) -> None:
    with pytest.raises(TypeMismatch, match="have no order"):
        type_of(Call("eq", (c("i"), c("i"))), lambda _: type_)
