"""Expressions evaluated one value at a time, in plain Python: what the vectorised ones must equal.

*Values.* None is null. Integers, floats, decimals, strings, bytes and truth values are Python's
own; a time is an integer: nanoseconds for timestamps, durations and times of day, days for dates.
NaN is always the one object `NAN`, so that tuples of values can be compared and hashed.

*Meaning.* Every expression is total: where SQL would fail, it is null. The static types come from
the query, which states them; the values are computed here and shared with nobody.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.evaluate import type_of
from plait.query.expr import ARITHMETIC, COMPARISONS, Call, Cast, Column, Expr, Literal
from plait.query.keys import plain
from plait.testing.oracle import scalar_functions
from plait.testing.oracle.scalar_cast import (
    NAN,
    NANOS,
    casted,
    fits_int64,
    is_float,
    java_17_decimal,
    one_nan,
    rounded_decimal,
    shortest,
)

Row = Mapping[Column, Any]
Compiled = Callable[[Row], Any]
Lookup = Callable[[Column], pa.DataType]


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as hashable Python objects, times in the column's own unit.

    >>> python_values(pa.array([1, None], pa.timestamp("s")))
    [1, None]
    """
    type_ = plain(column.type)
    if pt.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if type_ != column.type:
        column = column.cast(type_)
    if pt.is_temporal(type_):
        column = column.cast(pa.int32() if type_.bit_width == 32 else pa.int64())
    values = column.to_pylist()
    return [one_nan(v) for v in values] if pt.is_floating(type_) else values


def inward(value: Any, type_: pa.DataType) -> Any:
    """A column's value as expressions see it: times in nanoseconds, dates in days."""
    if value is None:
        return None
    type_ = plain(type_)
    if pt.is_date64(type_):
        return value // 86_400_000
    return value * NANOS[type_.unit] if _has_unit(type_) else value


def outward(value: Any, type_: pa.DataType) -> Any:
    """The opposite of `inward`: times in the unit of their type, rounded down."""
    if value is None:
        return None
    type_ = plain(type_)
    if pt.is_date64(type_):
        return value * 86_400_000
    return value // NANOS[type_.unit] if _has_unit(type_) else value


def _has_unit(type_: pa.DataType) -> bool:
    return bool(pt.is_timestamp(type_) or pt.is_duration(type_) or pt.is_time(type_))


def compare(a: Any, b: Any) -> int:
    """Negative, zero or positive; NaN equals NaN and is greater than everything else.

    >>> compare(1, 2), compare(NAN, NAN), compare(NAN, math.inf), compare(0.0, -0.0)
    (-1, 0, 1, 0)
    """
    a_nan, b_nan = a is NAN, b is NAN
    if a_nan or b_nan:
        return int(a_nan) - int(b_nan)
    return int(a > b) - int(a < b)


def compiled(expr: Expr, lookup: Lookup) -> Compiled:
    """A function from a row to the value of the expression.

    >>> price = Column("t", "price")
    >>> half = compiled(Call("div", (price, Literal(2, pa.int64()))), lambda _: pa.int64())
    >>> half({price: 5}), half({price: None})
    (2.5, None)
    """
    match expr:
        case Column():
            return lambda row: row[expr]
        case Literal(value, type_):
            constant = inward(python_values(pa.array([value], type_))[0], type_)
            return lambda _: constant
        case Cast(operand, target):
            inner, source = compiled(operand, lookup), type_of(operand, lookup)
            return lambda row: _unless_null(lambda v: casted(v, source, target), inner(row))
    return _call(expr, lookup)


def _call(call: Call, lookup: Lookup) -> Compiled:
    args = [compiled(arg, lookup) for arg in call.args]
    types = [plain(type_of(arg, lookup)) for arg in call.args]
    result = plain(type_of(call, lookup))
    if call.op in _LAZY:
        function = _LAZY[call.op]
        return lambda row: one_nan(function([arg(row) for arg in args], types, result))
    strict = _STRICT[call.op]
    return lambda row: _unless_null(
        lambda *values: one_nan(strict(values, types, result)), *(arg(row) for arg in args)
    )


def _unless_null(function: Callable[..., Any], *values: Any) -> Any:
    return None if any(v is None for v in values) else function(*values)


Types = Sequence[pa.DataType]


def _met(values: Sequence[Any], types: Types) -> list[Any]:
    """Values of several types as values of one: doubles win over exact numbers, dates are times."""
    there = [t for t in types if not pt.is_null(t)]
    if any(map(is_float, there)):
        return [v if v is None else one_nan(float(v)) for v in values]
    if any(map(pt.is_timestamp, there)):
        return [
            v * 86_400 * NANOS["s"] if v is not None and pt.is_date(t) else v
            for v, t in zip(values, types, strict=True)
        ]
    return list(values)


def _and(values: Sequence[Any], _: Types, __: pa.DataType) -> bool | None:
    return False if any(v is False for v in values) else None if None in values else True


def _or(values: Sequence[Any], _: Types, __: pa.DataType) -> bool | None:
    return True if any(v is True for v in values) else None if None in values else False


def _null_safe_equal(values: Sequence[Any], types: Types, _: pa.DataType) -> bool:
    a, b = _met(values, types)
    return compare(a, b) == 0 if a is not None and b is not None else a is b


def _in(values: Sequence[Any], types: Types, result: pa.DataType) -> bool | None:
    equal = _comparison(operator.eq)
    found = [
        _unless_null(lambda *pair, t=t: equal(pair, [types[0], t], result), values[0], v)
        for v, t in zip(values[1:], types[1:], strict=True)
    ]
    return _or(found, types, result)


def _case(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
    for k in range(0, len(values) - 1, 2):
        if values[k] is True:
            return _as_result(values[k + 1], types[k + 1], result)
    return _as_result(values[-1], types[-1], result)


def _coalesce(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
    for value, type_ in zip(values, types, strict=True):
        if value is not None:
            return _as_result(value, type_, result)
    return None


def _as_result(value: Any, type_: pa.DataType, result: pa.DataType) -> Any:
    return value if value is None or type_ == result else casted(value, type_, result)


def _extreme(sign: int) -> Callable[[Sequence[Any], Types, pa.DataType], Any]:
    def function(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
        best = None
        for v in (_as_result(v, t, result) for v, t in zip(values, types, strict=True)):
            if v is not None and (best is None or compare(v, best) * sign > 0):
                best = v
        return best

    return function


def _comparison(holds: Callable[[int, int], bool]) -> Callable[[Any, Types, pa.DataType], bool]:
    return lambda values, types, _: holds(compare(*_met(values, types)), 0)


_RING: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}


def _arithmetic(op: str) -> Callable[[Any, Types, pa.DataType], Any]:
    def function(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
        a, b = values
        if is_float(result):
            return _float_arithmetic(op, float(a), float(b))
        if pt.is_decimal(result):
            return rounded_decimal(_exact_arithmetic(op, Fraction(a), Fraction(b)), result)
        if pt.is_temporal(result):
            return _time_arithmetic(op, values, types, result)
        exact = _exact_arithmetic(op, Fraction(a), Fraction(b))
        return None if exact is None else fits_int64(int(exact))

    return function


def _float_arithmetic(op: str, a: float, b: float) -> float | None:
    if op in ("div", "mod"):
        if b == 0:
            return None
        if op == "mod" and math.isinf(a):
            return NAN
        return a / b if op == "div" else math.fmod(a, b)
    return float(_RING[op](a, b))


def _exact_arithmetic(op: str, a: Fraction, b: Fraction) -> Fraction | None:
    if op in ("div", "mod"):
        if b == 0:
            return None
        return a / b if op == "div" else a - b * int(a / b)
    return Fraction(_RING[op](a, b))


def _time_arithmetic(op: str, values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
    """Times count in units of the result; a number, by which a duration is multiplied, does not."""
    unit = NANOS[result.unit]
    a, b = (
        v if pt.is_integer(t) else v * 86_400 * NANOS["s"] // unit if pt.is_date(t) else v // unit
        for v, t in zip(values, types, strict=True)
    )
    if fits_int64(a) is None or fits_int64(b) is None:
        return None
    units = fits_int64(_RING[op](a, b))
    return None if units is None else units * unit


def _negated(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
    return fits_int64(-values[0]) if isinstance(values[0], int) else -values[0]


def _absolute(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
    return fits_int64(abs(values[0])) if isinstance(values[0], int) else abs(values[0])


def _whole(round_: Callable[[Any], int]) -> Callable[[Sequence[Any], Types, pa.DataType], Any]:
    def function(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
        (value,) = values
        if isinstance(value, float) and not math.isfinite(value):
            return value if is_float(result) else None
        whole = round_(value)
        if is_float(result):
            return float(whole)
        if pt.is_decimal(result):
            return rounded_decimal(Fraction(whole), result)
        return fits_int64(whole)

    return function


def _rounded(
    written: Callable[[float], Decimal],
) -> Callable[[Sequence[Any], Types, pa.DataType], Any]:
    """Half away from zero; a double is rounded as the decimal that it is written as."""

    def function(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
        value, digits = values[0], values[1] if len(values) > 1 else 0
        if isinstance(value, float) and not math.isfinite(value):
            return value
        exact = Fraction(written(value) if isinstance(value, float) else value)
        scaled = exact * Fraction(10) ** digits
        nearest = math.floor(abs(scaled) + Fraction(1, 2)) / Fraction(10) ** digits
        signed = -nearest if exact < 0 else nearest
        if is_float(result):
            return float(signed)
        return rounded_decimal(signed, result) if pt.is_decimal(result) else fits_int64(int(signed))

    return function


def _field(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
    return inward(python_values(pa.array([values[0][values[1]]], result))[0], result)


def _like(values: Sequence[Any], types: Types, result: pa.DataType) -> bool:
    """`%` is any text, `_` any character; a backslash makes the next character ordinary, or the
    character that is given for it.
    """
    text, pattern, escape = (*values, "\\")[:3]
    parts = re.findall(rf"{re.escape(escape)}(.)|(%)|(_)|(.)", pattern, re.DOTALL)
    wild = "".join(
        ".*" if any_text else "." if any_one else re.escape(escaped or plain_one)
        for escaped, any_text, any_one, plain_one in parts
    )
    return re.fullmatch(wild, text, re.DOTALL) is not None


def _substring(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
    """1-based; a start of 0 is 1, a negative one counts from the end."""
    text, start = values[0], values[1]
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = begin + max(values[2], 0) if len(values) > 2 else len(text)
    return text[max(begin, 0) : max(end, 0)]


def _concatenated(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
    parts = [_as_result(v, t, result) for v, t in zip(values, types, strict=True)]
    return type(parts[0])().join(parts)


def _letters(change: Callable[[str], str]) -> Callable[[Sequence[Any], Types, pa.DataType], str]:
    """Letter by letter; one that would become several letters stays."""
    return lambda values, _, __: "".join(change(c) if len(change(c)) == 1 else c for c in values[0])


_LAZY: Mapping[str, Callable[[Sequence[Any], Types, pa.DataType], Any]] = {
    **scalar_functions.LAZY,
    "and": _and,
    "or": _or,
    "nseq": _null_safe_equal,
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "greatest": _extreme(1),
    "least": _extreme(-1),
    "is_null": lambda values, _, __: values[0] is None,
    "try": lambda values, _, __: values[0],
}
"""Operators that have a value although an argument is null."""

_STRICT: Mapping[str, Callable[[Sequence[Any], Types, pa.DataType], Any]] = {
    **scalar_functions.STRICT,
    **{op: _comparison(getattr(operator, op)) for op in COMPARISONS if op != "nseq"},
    **{op: _arithmetic(op) for op in ARITHMETIC},
    "not": lambda values, _, __: not values[0],
    "neg": _negated,
    "abs": _absolute,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "round": _rounded(shortest),
    "java17_round": _rounded(java_17_decimal),
    "concat": _concatenated,
    "length": lambda values, _, __: len(values[0]),
    "lower": _letters(str.lower),
    "upper": _letters(str.upper),
    "like": _like,
    "field": _field,
    "substring": _substring,
    "unix_micros": lambda values, _, __: values[0] // 1000,
}
