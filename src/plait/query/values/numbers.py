"""Functions of numbers: signs, roots, rounding to even, buckets and bits, exactly as Java has them.

Functions whose last digit depends on the mathematical library (sine, logarithm, power) are not
here: Java has its own.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.arithmetic import WIDE, arithmetic, integers, places_of
from plait.query.values.convert import EXACT, convert, fitted, shortest, to_double
from plait.query.values.decimals import MOST_DIGITS, rounded_type
from plait.query.values.forms import (
    Floats,
    Unfit,
    Value,
    as_whole,
    by_row,
    by_value,
    floats,
    ints,
    is_number,
    masked,
    rows,
    spread,
)

_DEGREES, _RADIANS = 57.29577951308232, 0.017453292519943295
"""The constants by which Java multiplies."""
_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


def as_double(value: Value) -> Value:
    """A number as a double; NULL without a type is a null double."""
    if pt.is_null(value.type):
        return pc.cast(value, pa.float64())
    if not is_number(value.type):
        raise Unfit("only numbers have this function; use CAST(... AS DOUBLE)")
    return to_double(value)


def sign(value: Value) -> Value:
    """-1.0, 0.0 or 1.0; NaN and -0.0 are their own.

    >>> sign(pa.array([-5, 0, 7])).to_pylist()
    [-1.0, 0.0, 1.0]
    """
    doubles = as_double(value)
    numbers = floats(doubles)
    return masked(np.where(numbers == 0, numbers, np.sign(numbers)), pa.float64(), doubles)


def square_root(value: Value) -> Value:
    """The square root, NaN of negative numbers."""
    return pc.sqrt(as_double(value))


def to_even(value: Value) -> Value:
    """The nearest whole number as a double, the even one of two (Java's rint)."""
    doubles = as_double(value)
    return masked(np.rint(floats(doubles)), pa.float64(), doubles)


def scaled(factor: float, value: Value) -> Value:
    """The number times a constant."""
    return pc.multiply(as_double(value), pa.scalar(factor))


def round_half_even(
    value: Value, digits: Value | None = None, written: Callable[[float], Decimal] = shortest
) -> Value:
    """Rounded to `digits` after the point, a half to the even digit; a double as it is written.

    >>> round_half_even(pa.array([2.5, 3.5])).to_pylist()
    [2.0, 4.0]
    """
    places = places_of(digits)
    if pt.is_null(value.type):
        return pc.cast(value, pa.int64())
    if pt.is_integer(value.type):
        whole = as_whole(value)
        if places >= 0:
            return whole
        return by_row(lambda n: _inside(round(n, places)), pa.int64(), whole)
    if pt.is_floating(value.type):
        return by_row(lambda x: _even(x, places, written), value.type, value)
    if pt.is_decimal(value.type):
        type_ = rounded_type(value.type, places)

        def rounded(number: Decimal) -> Decimal | None:
            kept = Decimal(1).scaleb(-max(min(places, value.type.scale), -MOST_DIGITS))
            near = number.quantize(kept, decimal.ROUND_HALF_EVEN, EXACT)
            return fitted(near, type_.precision, type_.scale)

        return by_row(rounded, type_, value)
    raise Unfit("only numbers are rounded; cast it to a number")


def _even(number: float, places: int, written: Callable[[float], Decimal]) -> float:
    if not math.isfinite(number):
        return number
    step = Decimal(1).scaleb(-places)
    return float(written(number).quantize(step, decimal.ROUND_HALF_EVEN, WIDE)) + 0.0


def _inside(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def degrees(value: Value) -> Value:
    """Radians as degrees."""
    return scaled(_DEGREES, value)


def radians(value: Value) -> Value:
    """Degrees as radians."""
    return scaled(_RADIANS, value)


def is_nan(value: Value) -> Value:
    """Whether the number is NaN; null is not.

    >>> is_nan(pa.array([1.0, math.nan, None])).to_pylist()
    [False, True, False]
    """
    return pc.fill_null(pc.is_nan(as_double(value)), False)


def nanvl(value: Value, other: Value) -> Value:
    """The number, or the other one where it is NaN."""
    first = as_double(value)
    return pc.if_else(pc.fill_null(pc.is_nan(first), False), as_double(other), first)


def factorial(value: Value) -> Value:
    """1 * 2 * ... * value, null below 0 and above 20."""
    return by_value(
        lambda n: math.factorial(n) if 0 <= n <= 20 else None, pa.int64(), as_whole(value)
    )


def positive_remainder(left: Value, right: Value) -> Value:
    """The remainder with the sign of the divisor; null if that is 0.

    >>> positive_remainder(pa.array([-7, 7]), pa.scalar(3)).to_pylist()
    [2, 1]
    """
    rest = arithmetic("mod", left, right)
    if pt.is_decimal(rest.type):
        again = arithmetic("mod", arithmetic("add", rest, right), right)
        below = pc.less(rest, pa.scalar(0, rest.type))
        return pc.if_else(below, convert(again, rest.type), rest)
    if pt.is_floating(rest.type):
        again = arithmetic("mod", arithmetic("add", rest, right), right)
        return pc.if_else(pc.less(rest, 0.0), again, rest)
    kind = _integer_type(left, right)
    count = rows((left, right))
    divisor = ints(spread(convert(right, pa.int64()), count)).astype(kind.to_pandas_dtype())
    part = ints(rest).astype(kind.to_pandas_dtype())
    with np.errstate(all="ignore"):
        # The sum may wrap around, as it does in Java.
        safe = np.where((divisor == 0) | (divisor == -1), 1, divisor)
        result = np.where(part < 0, np.fmod(part + divisor, safe), part)
    return masked(result.astype(np.int64), kind, rest)


def integral_quotient(left: Value, right: Value) -> Value:
    """`left DIV right` of integers, without what is behind the point; null where the divisor is 0.

    >>> integral_quotient(pa.array([-7, 7]), pa.scalar(2)).to_pylist()
    [-3, 3]
    """
    a, b = as_whole(left), as_whole(right)
    rest = integers("mod", a, b)
    count = rows((a, b))
    x, y = ints(spread(a, count)), ints(spread(b, count))
    over = (x == -(2**63)) & (y == -1)
    divisor = np.where((y == 0) | over, 1, y)
    return masked((x - ints(rest)) // divisor, pa.int64(), over, rest)


def _integer_type(*values: Value) -> pa.DataType:
    """The widest of the values' integer types."""
    types = [pa.int32() if pt.is_null(v.type) else v.type for v in values]
    if any(t not in _BITS for t in types):
        raise Unfit("only integers have this; use CAST(... AS BIGINT)")
    return max(types, key=_BITS.__getitem__)


def bitwise(op: str, left: Value, right: Value) -> Value:
    """`&`, `|` or `^` of integers, in the wider of their types."""
    kind = _integer_type(left, right)
    kernels = {"and": pc.bit_wise_and, "or": pc.bit_wise_or, "xor": pc.bit_wise_xor}
    return kernels[op](pc.cast(left, kind), pc.cast(right, kind))


def bitwise_not(value: Value) -> Value:
    """`~value`."""
    return pc.bit_wise_not(pc.cast(value, _integer_type(value)))


def shifted(op: str, value: Value, count: Value) -> Value:
    """Bits shifted `left`, `right` (with the sign) or `right` `unsigned`, by the count modulo the
    number of bits, as in Java; types below 32 bits are taken as 32.

    >>> shifted("left", pa.array([1], pa.int32()), pa.scalar(33)).to_pylist()
    [2]
    """
    kind = max(_integer_type(value), pa.int32(), key=_BITS.__getitem__)
    bits = _BITS[kind]
    size = rows((value, count))
    a, b = spread(pc.cast(value, kind), size), spread(as_whole(count), size)
    numbers: npt.NDArray[Any] = ints(a)
    by = ints(b) & (bits - 1)
    if op == "left":
        moved = numbers.astype(kind.to_pandas_dtype()) << by.astype(kind.to_pandas_dtype())
    elif op == "right":
        moved = numbers >> by
    else:
        unsigned = np.uint32 if bits == 32 else np.uint64
        moved = (numbers.astype(unsigned) >> by.astype(unsigned)).astype(kind.to_pandas_dtype())
    return masked(np.asarray(moved, dtype=np.int64), kind, a, b)


def bit_count(value: Value) -> Value:
    """How many bits of an integer (as 64 bits) are set; of a truth value, 0 or 1."""
    if pt.is_boolean(value.type):
        return pc.cast(value, pa.int32())
    whole = as_whole(value)
    counts = np.bitwise_count(ints(whole).astype(np.uint64)).astype(np.int64)
    return masked(counts, pa.int32(), whole)


def bit_get(value: Value, place: Value) -> Value:
    """The bit at a place, counted from the right from 0; null outside of the type's bits."""
    kind = _integer_type(value)
    size = rows((value, place))
    a, b = spread(pc.cast(value, pa.int64()), size), spread(as_whole(place), size)
    where = ints(b)
    outside = (where < 0) | (where >= _BITS[kind])
    bits = (ints(a) >> np.where(outside, 0, where)) & 1
    return masked(bits, pa.int8(), outside, a, b)


def width_bucket(value: Value, low: Value, high: Value, buckets: Value) -> Value:
    """The number of the bucket between `low` and `high`; 0 below them and one more above them.

    >>> width_bucket(pa.array([5.3]), pa.scalar(0.2), pa.scalar(10.6), pa.scalar(5)).to_pylist()
    [3]
    """
    inputs = [as_double(value), as_double(low), as_double(high), as_whole(buckets)]
    size = rows(inputs)
    inputs = [spread(v, size) for v in inputs]
    v, start, end = (floats(x) for x in inputs[:3])
    many = ints(inputs[3])
    none = (many <= 0) | (many == 2**63 - 1) | np.isnan(v) | (start == end)
    none |= ~np.isfinite(start) | ~np.isfinite(end)
    lower, upper = np.minimum(start, end), np.maximum(start, end)
    rising = start < end
    below = np.where(rising, v < lower, v > upper)
    above = np.where(rising, v >= upper, v <= lower)
    with np.errstate(all="ignore"):
        distance: Floats = np.where(rising, v - lower, upper - v)
        share = many * distance / (upper - lower)
        inner = np.where(below | above | none, 0, share).astype(np.int64) + 1
    result = np.where(below, 0, np.where(above, many + 1, inner))
    return masked(result, pa.int64(), none, *inputs)
