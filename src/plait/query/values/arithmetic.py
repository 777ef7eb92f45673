"""Arithmetic: integers in 64 bits, floats as doubles, decimals exactly, times in microseconds.

Null where SQL would fail: a zero divisor, an integer or a time beyond 64 bits.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.convert import convert, rescale, shortest, to_double
from plait.query.values.decimals import (
    as_decimal,
    decimal_arithmetic,
    decimal_round,
    decimal_whole,
)
from plait.query.values.forms import (
    UNITS,
    Bools,
    Floats,
    Ints,
    Unfit,
    Value,
    floats,
    ints,
    is_number,
    masked,
    missing,
    rows,
    spread,
)

_SMALLEST = -(2**63)
WIDE = decimal.Context(prec=800, rounding=decimal.ROUND_HALF_UP)
"""Enough digits for every double, from the largest down to the 400th after the point."""
_MOMENT_REMEDY = (
    "times take +, - with an INTERVAL, and - among themselves; intervals also * with an integer"
)


def arithmetic(op: str, left: Value, right: Value) -> Value:
    """`left op right` for an operator of `expr.ARITHMETIC`.

    >>> arithmetic("div", pa.array([1, 1]), pa.array([2, 0])).to_pylist()
    [0.5, None]
    >>> arithmetic("add", pa.array([2**63 - 1, 1]), pa.scalar(1)).to_pylist()
    [None, 2]
    """
    left, right = _typed(left, right)
    kinds = (left.type, right.type)
    if all(is_number(t) for t in kinds):
        if any(pt.is_floating(t) for t in kinds):
            return _doubles(op, to_double(left), to_double(right))
        if any(pt.is_decimal(t) for t in kinds):
            return decimal_arithmetic(op, left, right)
        if op == "div":
            return _doubles(op, to_double(left), to_double(right))
        return integers(op, convert(left, pa.int64()), convert(right, pa.int64()))
    if any(_is_time(t) for t in kinds):
        return _times(op, left, right)
    raise Unfit("only numbers and times have arithmetic; cast strings to numbers, or use concat")


def _typed(left: Value, right: Value) -> tuple[Value, Value]:
    """NULL without a type takes the type that the other side asks for."""
    if pt.is_null(left.type):
        left = pc.cast(left, _counterpart(right.type))
    if pt.is_null(right.type):
        right = pc.cast(right, _counterpart(left.type))
    return left, right


def _counterpart(type_: pa.DataType) -> pa.DataType:
    if pt.is_timestamp(type_) or pt.is_date(type_):
        return pa.duration("us")
    return type_ if is_number(type_) or pt.is_duration(type_) else pa.int64()


def integers(op: str, a: Value, b: Value) -> Value:
    """Arithmetic of 64-bit integers, null where the result needs more bits or has no value."""
    if op == "mod":
        return _remainder(a, b)
    try:
        return _CHECKED[op](a, b)
    except pa.ArrowInvalid:
        return _overflowing(op, a, b)


_CHECKED = {
    "add": pc.add_checked,
    "sub": pc.subtract_checked,
    "mul": pc.multiply_checked,
}


def _remainder(a: Value, b: Value) -> Value:
    if isinstance(b, pa.Scalar) and b.is_valid and abs(b.as_py()) not in (0, -_SMALLEST):
        return masked(np.fmod(ints(a), abs(b.as_py())), pa.int64(), a)
    count = rows((a, b))
    a, b = spread(a, count), spread(b, count)
    x, y = ints(a), ints(b)
    # fmod keeps the sign of the dividend; by -1 it would overflow for the smallest integer.
    rest = np.fmod(x, np.where((y == 0) | (y == -1), 1, y))
    return masked(rest, pa.int64(), y == 0, a, b)


def _overflowing(op: str, a: Value, b: Value) -> Value:
    count = rows((a, b))
    a, b = spread(a, count), spread(b, count)
    x, y = ints(a), ints(b)
    with np.errstate(over="ignore"):
        if op == "add":
            result = x + y
            over = ((x ^ result) & (y ^ result)) < 0
        elif op == "sub":
            result = x - y
            over = ((x ^ y) & (x ^ result)) < 0
        else:
            result = x * y
            over = _product_overflows(x, y)
    return masked(result, pa.int64(), over, a, b)


def _product_overflows(x: Ints, y: Ints) -> Bools:
    half = 2**31
    over: Bools = ~((np.abs(x + 0.0) < half) & (np.abs(y + 0.0) < half))
    for i in np.flatnonzero(over):
        over[i] = not _SMALLEST <= int(x[i]) * int(y[i]) < -_SMALLEST
    return over


def _doubles(op: str, a: Value, b: Value) -> Value:
    if op in ("div", "mod"):
        count = rows((a, b))
        a, b = spread(a, count), spread(b, count)
        x, y = floats(a), floats(b)
        with np.errstate(all="ignore"):
            result = x / y if op == "div" else np.fmod(x, y)
        return masked(result, pa.float64(), y == 0, a, b)
    return {"add": pc.add, "sub": pc.subtract, "mul": pc.multiply}[op](a, b)


def _is_time(type_: pa.DataType) -> bool:
    return bool(pt.is_timestamp(type_) or pt.is_date(type_) or pt.is_duration(type_))


def _times(op: str, left: Value, right: Value) -> Value:
    left, right = (
        convert(v, pa.timestamp("us")) if pt.is_date(v.type) else v for v in (left, right)
    )
    kinds = [
        "moment"
        if pt.is_timestamp(v.type)
        else "length"
        if pt.is_duration(v.type)
        else "integer"
        if pt.is_integer(v.type)
        else ""
        for v in (left, right)
    ]
    match op, kinds:
        case "sub", ["moment", "moment"]:
            if (left.type.tz is None) != (right.type.tz is None):
                raise Unfit("one has a time zone and the other has none; cast one of them")
            a, b = (rescale(v, pa.timestamp("us", v.type.tz)) for v in (left, right))
            return _temporal(op, a, b, pa.duration("us"))
        case (("add" | "sub"), ["moment", "length"]):
            unit = _unit(left, right)
            return _temporal(
                op,
                rescale(left, pa.timestamp(unit, left.type.tz)),
                rescale(right, pa.duration(unit)),
                pa.timestamp(unit, left.type.tz),
            )
        case "add", ["length", "moment"]:
            return _times(op, right, left)
        case (("add" | "sub"), ["length", "length"]):
            type_ = pa.duration(_unit(left, right))
            return _temporal(op, rescale(left, type_), rescale(right, type_), type_)
        case "mul", ["length", "integer"]:
            type_ = pa.duration(_unit(left))
            return _temporal(op, rescale(left, type_), convert(right, pa.int64()), type_)
        case "mul", ["integer", "length"]:
            return _times(op, right, left)
    raise Unfit(_MOMENT_REMEDY)


def _unit(*values: Value) -> str:
    return str(max(("us", *(v.type.unit for v in values)), key=UNITS.index))


def _temporal(op: str, a: Value, b: Value, type_: pa.DataType) -> Value:
    return pc.cast(integers(op, pc.cast(a, pa.int64()), pc.cast(b, pa.int64())), type_)


def negate(value: Value) -> Value:
    """`-value`."""
    if pt.is_null(value.type):
        return pc.cast(value, pa.int64())
    if pt.is_floating(value.type):
        return pc.negate(to_double(value))
    if pt.is_decimal(value.type):
        value = as_decimal(value)
        return convert(pc.negate(value), value.type)
    if pt.is_integer(value.type):
        return integers("sub", pa.scalar(0), convert(value, pa.int64()))
    if pt.is_duration(value.type):
        return _temporal("sub", pa.scalar(0), value, value.type)
    raise Unfit("only numbers and intervals have a sign; cast it to a number")


def absolute(value: Value) -> Value:
    """`value` without its sign."""
    if pt.is_floating(value.type):
        return pc.abs(to_double(value))
    if pt.is_decimal(value.type):
        value = as_decimal(value)
        return convert(pc.abs(value), value.type)
    if pt.is_duration(value.type):
        return pc.cast(absolute(pc.cast(value, pa.int64())), value.type)
    opposite = negate(value)
    whole = convert(value, pa.int64())
    return pc.if_else(pc.less(whole, 0), opposite, whole)


def whole(op: str, value: Value) -> Value:
    """The next integer below (`floor`) or above (`ceil`); null if 64 bits do not hold it.

    >>> whole("ceil", pa.array([1.2, -1.2, float("nan")])).to_pylist()
    [2, -1, None]
    """
    if pt.is_null(value.type) or pt.is_integer(value.type):
        return convert(value, pa.int64())
    if pt.is_floating(value.type):
        return convert((pc.floor if op == "floor" else pc.ceil)(to_double(value)), pa.int64())
    if pt.is_decimal(value.type):
        return decimal_whole(op, value)
    raise Unfit("only numbers are rounded; cast it to a number")


def round_half_up(
    value: Value, digits: Value | None = None, written: Callable[[float], Decimal] = shortest
) -> Value:
    """Rounded to `digits` after the point, a half away from zero; a double as it is written.

    >>> round_half_up(pa.array([2.5, -2.5, 2.675]), None).to_pylist()
    [3.0, -3.0, 3.0]
    >>> round_half_up(pa.array([2.675]), pa.scalar(2)).to_pylist()
    [2.68]
    """
    places = places_of(digits)
    if pt.is_null(value.type):
        return pc.cast(value, pa.int64())
    if isinstance(value, pa.Scalar):
        return round_half_up(pa.repeat(value, 1), digits, written)[0]
    if pt.is_integer(value.type):
        value = convert(value, pa.int64())
        return value if places >= 0 else _round_integers(value, -places)
    if pt.is_floating(value.type):
        return _round_doubles(to_double(value), places, written)
    if pt.is_decimal(value.type):
        return decimal_round(value, max(-38, min(38, places)))
    raise Unfit("only numbers are rounded; cast it to a number")


def places_of(digits: Value | None) -> int:
    """The digits after the point to which a number is rounded."""
    if digits is None:
        return 0
    if not (isinstance(digits, pa.Scalar) and pt.is_integer(digits.type) and digits.is_valid):
        raise Unfit("the number of digits is an integer literal")
    return int(max(-400, min(400, digits.as_py())))


def _round_integers(value: pa.Array, zeros: int) -> pa.Array:
    if zeros > 18:
        power = 10**zeros
        return pa.array(
            [
                None if n is None else _inside((abs(n) * 2 + power) // (2 * power) * power, n)
                for n in value.to_pylist()
            ],
            pa.int64(),
        )
    power = 10**zeros
    numbers = ints(value)
    rest = np.fmod(numbers, power)
    down = pa.array(numbers - rest)
    step = np.where(2 * np.abs(rest) >= power, np.sign(rest) * power, 0)
    rounded = integers("add", down, pa.array(step))
    return masked(ints(rounded), pa.int64(), rounded, value)


def _inside(size: int, signed: int) -> int | None:
    number = size if signed >= 0 else -size
    return number if _SMALLEST <= number < -_SMALLEST else None


def _round_doubles(value: pa.Array, places: int, written: Callable[[float], Decimal]) -> pa.Array:
    numbers = floats(value)
    if abs(places) > 22:
        result = numbers.copy()
        doubtful = np.isfinite(numbers)
    else:
        result, doubtful = _nearest(numbers, places)
    for i in np.flatnonzero(doubtful & ~missing(value)):
        near = written(float(numbers[i])).quantize(Decimal(1).scaleb(-places), context=WIDE)
        result[i] = float(near) + 0.0
    return masked(result, pa.float64(), value)


def _nearest(numbers: Floats, places: int) -> tuple[Floats, Bools]:
    """Rounded doubles, and which of them are too near to a half, or too large, to be sure."""
    power = np.float64(10.0 ** abs(places))
    with np.errstate(all="ignore"):
        scaled = np.abs(numbers * power if places >= 0 else numbers / power)
        size = np.floor(scaled + 0.5)
        distance = np.abs(scaled - np.floor(scaled) - 0.5)
        doubtful = np.isfinite(numbers) & ((scaled >= 2.0**50) | (distance <= scaled * 2.0**-50))
        result = np.sign(numbers) * (size / power if places >= 0 else size * power) + 0.0
    return np.where(np.isfinite(numbers), result, numbers), doubtful
