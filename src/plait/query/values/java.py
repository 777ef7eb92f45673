"""Numbers as in Java.

Integers that do not fit wrap around, are cut off, or are the largest one: Spark computes so where
`spark.sql.ansi.enabled` is off. Floating-point numbers have texts that depend on Java's version.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.convert import to_double
from plait.query.values.float_text import float_text
from plait.query.values.forms import (
    Floats,
    Ints,
    Unfit,
    Value,
    as_whole,
    by_row,
    by_value,
    floats,
    ints,
    is_text,
    masked,
    rows,
    spread,
)

_TYPES = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_TEXT = re.compile(r"([+-]?)([0-9]*)(\.[0-9]*)?")
_SPACES = "".join(map(chr, range(33)))


def text_of(value: Value) -> Value:
    """A floating-point number as Java 17 and 18 write it.

    >>> text_of(pa.array([2e23])).to_pylist()
    ['1.9999999999999998E23']
    """
    if not pt.is_floating(value.type):
        raise Unfit("only floating-point numbers are written so; cast it to DOUBLE")
    if isinstance(value, pa.Scalar):
        return text_of(pa.repeat(value, 1))[0]
    return float_text(value, older=True)


def wrapping(op: str, left: Value, right: Value) -> Value:
    """`+`, `-` or `*` in 64 bits; what needs more wraps around.

    >>> wrapping("add", pa.array([2**63 - 1]), pa.scalar(1)).to_pylist()
    [-9223372036854775808]
    """
    count = rows((left, right))
    a, b = (spread(as_whole(v), count) for v in (left, right))
    with np.errstate(over="ignore"):
        numbers = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[op](ints(a), ints(b))
    return masked(numbers, pa.int64(), a, b)


def integer_of(value: Value, bits: Value) -> Value:
    """Cast to an integer of `bits` bits; only texts that are not numbers fail.

    >>> integer_of(pa.array([300.7, float("nan")]), pa.scalar(8)).to_pylist()
    [44, 0]
    """
    if not isinstance(bits, pa.Scalar):
        raise Unfit("the number of bits is a literal")
    column, size = spread(value, 1), bits.as_py()
    target, source = _TYPES[size], column.type
    if pt.is_boolean(source) or pt.is_null(source):
        return pc.cast(column, target)
    if pt.is_integer(source):
        return masked(_wrapped(ints(column), size), target, column)
    if pt.is_floating(source):
        whole = _clipped(floats(to_double(column)), max(size, 32))
        return masked(_wrapped(whole, size), target, column)
    if pt.is_decimal(source):
        return by_row(lambda d: _wrapped_int(int(d), size), target, column)
    if is_text(source):
        return by_value(lambda s: _from_text(s, size), target, column)
    raise Unfit(f"nothing of type {source} is a {target}; cast through another type")


def _wrapped(numbers: Ints, bits: int) -> Ints:
    """The lowest bits, with their sign."""
    unused = np.int64(64 - bits)
    return (numbers << unused) >> unused


def _wrapped_int(number: int, bits: int) -> int:
    half: int = 2 ** (bits - 1)
    return (number + half) % (2 * half) - half


def _clipped(numbers: Floats, bits: int) -> Ints:
    """Truncate doubles to integers; NaN becomes 0, and numbers that are too large are clipped."""
    most = 2 ** (bits - 1)
    high, low = numbers >= most, numbers < -most
    inside = np.where(high | low | np.isnan(numbers), 0, numbers).astype(np.int64)
    return np.where(high, most - 1, np.where(low, -most, inside))


def _from_text(text: str, bits: int) -> int | None:
    """The whole part of a number without exponent, if it fits."""
    found = _TEXT.fullmatch(text.strip(_SPACES))
    if found is None or found[0] in ("", "+", "-"):
        return None
    number = int(found[1] + (found[2] or "0"))
    return number if _wrapped_int(number, bits) == number else None


def last_instant(value: Value) -> Value:
    """Return the instant `seconds` after 1970; beyond 64 bits of microseconds, the last one."""
    seconds = spread(as_whole(value), 1)
    limit = (2**63 - 1) // 1_000_000
    numbers = ints(seconds)
    micros = np.clip(numbers, -limit, limit) * 1_000_000
    micros = np.where(numbers > limit, 2**63 - 1, np.where(numbers < -limit, -(2**63), micros))
    return masked(micros, pa.timestamp("us", "UTC"), seconds)
