"""Exact arithmetic of decimals, with Spark's rules for the digits of the result.

Where the result's type has as many digits as the exact result can need, Arrow computes it in one
pass; where the digits fit into 64 bits, integers do. Otherwise it is rounded half up, row by row,
and null where its whole part does not fit.
"""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.convert import EXACT, convert, fitted
from plait.query.values.forms import (
    Ints,
    Unfit,
    Value,
    by_row,
    from_unscaled,
    rows,
    spread,
    unscaled,
)
from plait.query.values.unify import integer_digits

MOST_DIGITS = 38


def as_decimal(value: Value) -> Value:
    """An integer or decimal as a decimal of at most 38 digits.

    >>> as_decimal(pa.scalar(25)).type, as_decimal(pa.array([25])).type
    (Decimal128Type(decimal128(2, 0)), Decimal128Type(decimal128(20, 0)))
    """
    if pt.is_decimal(value.type):
        if value.type.precision > MOST_DIGITS:
            raise Unfit(f"a decimal of more than {MOST_DIGITS} digits; cast it to fewer")
        target = pa.decimal128(value.type.precision, value.type.scale)
    elif isinstance(value, pa.Scalar) and value.is_valid:
        target = pa.decimal128(len(str(abs(value.as_py()))), 0)
    else:
        target = pa.decimal128(integer_digits(value.type), 0)
    return convert(value, target)


def bounded(precision: int, scale: int) -> pa.DataType:
    """Spark's answer to too many digits: keep the whole part, and at least 6 digits after it.

    >>> bounded(40, 10), bounded(60, 10)
    (Decimal128Type(decimal128(38, 8)), Decimal128Type(decimal128(38, 6)))
    """
    if precision <= MOST_DIGITS:
        return pa.decimal128(max(precision, 1), scale)
    least = min(scale, 6)
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - (precision - scale), least))


def decimal_arithmetic(op: str, left: Value, right: Value) -> Value:
    """`left op right` for add, sub, mul, div or mod.

    >>> decimal_arithmetic("mul", pa.array([Decimal("1.5")]), pa.scalar(3)).to_pylist()
    [Decimal('4.5')]
    """
    a, b = as_decimal(left), as_decimal(right)
    (p1, s1), (p2, s2) = ((v.type.precision, v.type.scale) for v in (a, b))
    whole = max(p1 - s1, p2 - s2)
    if op in ("add", "sub"):
        digits = (whole + max(s1, s2) + 1, max(s1, s2))
    elif op == "mul":
        digits = (p1 + p2 + 1, s1 + s2)
    elif op == "div":
        scale = max(6, s1 + p2 + 1)
        digits = (p1 - s1 + s2 + scale, scale)
    else:
        digits = (min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))
    type_ = bounded(*digits)
    if op in _IN_ARROW and digits[0] <= MOST_DIGITS:
        return convert(_IN_ARROW[op](a, b), type_)
    quick = _in_64_bits(op, a, b, type_)
    return by_row(lambda x, y: _row(op, x, y, type_), type_, a, b) if quick is None else quick


def _in_64_bits(op: str, a: Value, b: Value, type_: pa.DataType) -> pa.Array | None:
    """The quotient or remainder in 64-bit integers, if the scaled operands fit into them."""
    if op not in ("div", "mod"):
        return None
    count = rows((a, b))
    a, b = spread(a, count), spread(b, count)
    x, y = unscaled(a), unscaled(b)
    if x is None or y is None:
        return None
    # a / b, or a mod b, is x * 10^left over y * 10^right in units of the result.
    left = type_.scale + (b.type.scale if op == "div" else 0) - a.type.scale
    right = 0 if op == "div" else type_.scale - b.type.scale
    if left < 0 or right < 0 or not (_room(x, left) and _room(y, right)):
        return None
    top, bottom = x * 10**left, y * 10**right
    zero = bottom == 0
    divisor = np.where(zero, 1, bottom)
    rest = np.fmod(top, divisor)
    if op == "mod":
        return from_unscaled(rest, type_, zero, a, b)
    whole = (top - rest) // divisor
    away = 2 * np.abs(rest) >= np.abs(divisor)
    sign = np.where((top < 0) == (divisor < 0), 1, -1)
    return from_unscaled(whole + np.where(away, sign, 0), type_, zero, a, b)


def _room(numbers: Ints, digits: int) -> bool:
    """Whether the numbers times 10^digits stay far enough below 2^63 to be doubled."""
    largest = max(int(numbers.max(initial=1)), -int(numbers.min(initial=-1)))
    return bool(largest * 10**digits < 2**61)


def _whole_units(value: pa.Array, kept: int, type_: pa.DataType, mode: str) -> pa.Array | None:
    """Rounding to `kept` digits in 64-bit integers, if they suffice."""
    numbers = unscaled(value) if isinstance(value, pa.Array) else None
    dropped = value.type.scale - kept
    if numbers is None or not _room(numbers, 0) or not 0 <= dropped <= 18:
        return None
    power = 10**dropped
    down = numbers // power
    rest = numbers - down * power
    if mode == "half":
        up = np.where(numbers < 0, 2 * rest > power, 2 * rest >= power)
    else:
        up = (rest > 0) & (mode == "ceil")
    units = down + up
    if kept < 0:
        if not _room(units, -kept):
            return None
        units = units * 10**-kept
    return from_unscaled(units, type_, value)


_IN_ARROW = {"add": pc.add, "sub": pc.subtract, "mul": pc.multiply}


def _row(op: str, x: Decimal, y: Decimal, type_: pa.DataType) -> Decimal | None:
    with decimal.localcontext(EXACT):
        match op:
            case "add":
                exact = x + y
            case "sub":
                exact = x - y
            case "mul":
                exact = x * y
            case _ if y == 0:
                return None
            case "div":
                exact = x / y
            case _:
                exact = x % y
    return fitted(exact, type_.precision, type_.scale)


def rounded_type(type_: pa.DataType, digits: int) -> pa.DataType:
    """The type of decimals that are rounded to `digits` after the point.

    >>> rounded_type(pa.decimal128(5, 2), 1)
    Decimal128Type(decimal128(5, 1))
    """
    whole = type_.precision - type_.scale + 1
    if digits < 0:
        return pa.decimal128(min(max(whole, -digits + 1), MOST_DIGITS), 0)
    kept = min(type_.scale, digits)
    return pa.decimal128(min(whole + kept, MOST_DIGITS), kept)


def decimal_round(value: Value, digits: int) -> Value:
    """Rounded half up to `digits` after the point, before it if negative."""
    value = as_decimal(value)
    kept, type_ = min(value.type.scale, digits), rounded_type(value.type, digits)
    quick = _whole_units(value, kept, type_, "half")
    if quick is not None:
        return quick

    def rounded(number: Decimal) -> Decimal | None:
        near = number.quantize(Decimal(1).scaleb(-kept), context=EXACT)
        return fitted(near, type_.precision, type_.scale)

    return by_row(rounded, type_, value)


def decimal_whole(op: str, value: Value) -> Value:
    """The next whole number below (`floor`) or above (`ceil`)."""
    value = as_decimal(value)
    type_ = bounded(value.type.precision - value.type.scale + 1, 0)
    quick = _whole_units(value, 0, type_, op)
    if quick is not None:
        return quick
    mode = decimal.ROUND_FLOOR if op == "floor" else decimal.ROUND_CEILING
    return by_row(lambda d: d.quantize(Decimal(1), mode, EXACT), type_, value)
