"""Casts one value at a time: the value as a value of another type, None where it has none there.

>>> casted("7", pa.string(), pa.int64()), casted(300, pa.int64(), pa.int8())
(7, None)
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, TypeVar, cast

import pyarrow as pa
import pyarrow.types as pt

from plait.query.keys import plain

T = TypeVar("T")
Digits = Callable[[float, bool], tuple[str, int]]
NAN = math.nan
NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DAY = 86_400 * NANOS["s"]


def one_nan(value: T) -> T:
    """The value; every NaN is the same object."""
    return cast(T, NAN) if isinstance(value, float) and math.isnan(value) else value


def is_float(type_: pa.DataType) -> bool:
    """Whether values of the type are floating-point numbers."""
    return bool(pt.is_floating(type_))


def is_text(type_: pa.DataType) -> bool:
    """Whether values of the type are strings."""
    return bool(pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_))


def fits_int64(number: int) -> int | None:
    """The number, if it has a place in 64 bits."""
    return number if -(2**63) <= number < 2**63 else None


def shortest(number: float) -> Decimal:
    """The shortest decimal that reads as this double."""
    return Decimal(repr(number))


def rounded_decimal(exact: Fraction | None, type_: pa.DataType) -> Decimal | None:
    """The decimal of this type nearest to an exact number, half away from zero.

    >>> rounded_decimal(Fraction(5, 4), pa.decimal128(3, 1))
    Decimal('1.3')
    """
    if exact is None:
        return None
    units = math.floor(abs(exact) * 10**type_.scale + Fraction(1, 2))
    if units >= 10**type_.precision:
        return None
    with localcontext(prec=100):
        return Decimal(-units if exact < 0 else units).scaleb(-type_.scale)


def casted(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """A value that is not null, cast from one type to another."""
    source, target = plain(source), plain(target)
    if source == target:
        return value
    if is_text(source) and not (is_text(target) or _is_bytes(target)):
        return _from_text(value.strip(), target)
    if pt.is_integer(target):
        return _to_integer(value, source, target)
    if is_float(target):
        return _to_float(value, source, target)
    if pt.is_decimal(target):
        exact = shortest(value) if is_float(source) else value
        return None if _no_number(value) else rounded_decimal(Fraction(exact), target)
    if pt.is_boolean(target):
        return value != 0
    if is_text(target):
        return _to_text(value, source)
    if _is_bytes(target):
        return value.encode() if isinstance(value, str) else value
    return _to_time(value, source, target)


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_fixed_size_binary(type_))


def _no_number(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _to_integer(value: Any, source: pa.DataType, target: pa.DataType) -> int | None:
    if pt.is_timestamp(source):
        value = value // NANOS["s"]
    if _no_number(value):
        return None
    signed = pt.is_signed_integer(target)
    bits = target.bit_width - signed
    whole = int(value)
    return whole if (-(2**bits) if signed else 0) <= whole < 2**bits else None


def _to_float(value: Any, source: pa.DataType, target: pa.DataType) -> float:
    if pt.is_timestamp(source):
        value = float(value // 1000) / 1e6
    return _single(float(value)) if target == pa.float32() else float(value)


def _single(number: float) -> float:
    try:
        return one_nan(float(struct.unpack("f", struct.pack("f", number))[0]))
    except OverflowError:
        return math.copysign(math.inf, number)


def _from_text(text: str, target: pa.DataType) -> Any:
    number = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?"
    if pt.is_integer(target):
        return _to_integer(int(text), pa.int64(), target) if _matches(r"[+-]?\d+", text) else None
    if is_float(target):
        if special := re.fullmatch(r"([+-]?)(nan|inf|infinity)", text, re.IGNORECASE):
            return NAN if special[2].lower() == "nan" else float(special[1] + "inf")
        return _to_float(float(text), pa.float64(), target) if _matches(number, text) else None
    if pt.is_decimal(target):
        return rounded_decimal(Fraction(Decimal(text)), target) if _matches(number, text) else None
    if pt.is_boolean(target):
        words = {"t": True, "true": True, "y": True, "yes": True, "1": True}
        words |= {"f": False, "false": False, "n": False, "no": False, "0": False}
        return words.get(text.lower())
    raise NotImplementedError(f"the oracle casts no text to {target}")


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _to_text(value: Any, source: pa.DataType) -> str:
    if pt.is_boolean(source):
        return "true" if value else "false"
    if pt.is_decimal(source):
        return format(value, "f")
    if pt.is_integer(source) or is_text(source):
        return str(value)
    if is_float(source):
        return _float_text(value, single=source != pa.float64())
    raise NotImplementedError(f"the oracle casts no {source} to text")


def _float_text(value: float, *, single: bool, digits_of: Digits | None = None) -> str:
    """By the definition of Java: the shortest decimal that reads as the number, then its form."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    sign, value = ("-" if math.copysign(1, value) < 0 else ""), abs(value)
    if value == 0:
        return sign + "0.0"
    digits, exponent = (digits_of or _shortest_digits)(value, single)
    if -3 <= exponent < 7:
        point = exponent + 1
        text = "0" * (1 - point) + digits + "0" * (point + 1 - len(digits))
        point = max(point, 1)
        return f"{sign}{text[:point]}.{text[point:]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def java_17_text(value: float, type_: pa.DataType) -> str:
    """The text of a number before Java 19, which ends the digits by another rule.

    >>> java_17_text(2e23, pa.float64())
    '1.9999999999999998E23'
    """
    single = type_ != pa.float64()
    return _float_text(value, single=single, digits_of=_java_17_digits)


def java_17_decimal(value: float) -> Decimal:
    """The decimal that Java 17 writes for this double."""
    return Decimal(java_17_text(value, pa.float64()).replace("Infinity", "inf"))


def _java_17_digits(value: float, single: bool) -> tuple[str, int]:
    """Digits d.ddd and an exponent of ten; `plait.query.values.older_digits` says by which rule."""
    _, high, _ = _reads_as(value, single)
    exact, half = Fraction(value), high - Fraction(value)
    if value < 2**63 and value.is_integer():
        dropped = 0
        while 10 ** (dropped + 1) <= half / 2:
            dropped += 1
        text = str((exact / 10**dropped + Fraction(1, 2)) // 1)
        return text.rstrip("0"), len(text) - 1 + dropped
    if exact.numerator.bit_count() == 1:
        half /= 2
    power = exact.numerator.bit_length() - exact.denominator.bit_length()
    power -= exact < Fraction(2) ** power
    beyond = float(exact / Fraction(2) ** power) - 1.5
    place = math.floor(power * math.log10(2) + math.log10(1.5) + beyond / 1.5 / math.log(10))
    three = (exact, half, Fraction(10) ** place)
    common = math.lcm(*(n.denominator for n in three))
    ten = 10 * three[2] * common / math.gcd(*(int(n * common) for n in three))
    for length in range(1, 30):
        unit = Fraction(10) ** (place - length + 1)
        digits = exact // unit
        rest = exact - digits * unit
        sum_, word = ten * (rest + half) / unit, 2**63
        overflows = ten < word and ten * half / unit < word <= sum_
        below, above = rest < half, rest + half > unit and not overflows
        plain = -3 <= (place if digits or above else place - 1) < 7
        if (below or above) and (plain or length > 1):
            up = above and (not below or 2 * rest > unit or (2 * rest == unit and digits % 2))
            text = str(digits + bool(up))
            return text.rstrip("0"), place - length + len(text)
    raise AssertionError(f"{value!r} needs more than 29 digits")


def _shortest_digits(value: float, single: bool) -> tuple[str, int]:
    """Digits d.ddd and an exponent of ten, of the nearest of the shortest decimals, 2 at least."""
    exact, (low, high, both) = Fraction(value), _reads_as(value, single)
    exponent = math.floor(math.log10(value))
    exponent += (exact >= Fraction(10) ** (exponent + 1)) - (exact < Fraction(10) ** exponent)
    for length in range(2, 20):
        unit = Fraction(10) ** (exponent - length + 1)
        below = exact // unit
        near = [
            n
            for n in (below, below + 1)
            if low < n * unit < high or (both and n * unit in (low, high))
        ]
        if near:
            best = min(near, key=lambda n: (abs(n * unit - exact), n % 2))
            text = str(best)
            return text.rstrip("0"), exponent + len(text) - length
    raise AssertionError(f"{value!r} needs more than 19 digits")


def _reads_as(value: float, single: bool) -> tuple[Fraction, Fraction, bool]:
    """The decimals that are rounded to the number: from, to, and whether the ends are."""
    size, whole = ("f", "i") if single else ("d", "q")
    (bits,) = struct.unpack(whole, struct.pack(size, value))
    (before,) = struct.unpack(size, struct.pack(whole, bits - 1))
    exact = Fraction(value)
    (after,) = struct.unpack(size, struct.pack(whole, bits + 1))
    above = (Fraction(after) - exact if math.isfinite(after) else exact - Fraction(before)) / 2
    return (exact + Fraction(before)) / 2, exact + above, bits % 2 == 0


def _to_time(value: int, source: pa.DataType, target: pa.DataType) -> int | None:
    """Only among times of one zone: another zone is a matter of tables, not of meaning."""
    zones = [t.tz for t in (source, target) if pt.is_timestamp(t)]
    if len({zone is None for zone in zones}) > 1:
        raise NotImplementedError(f"the oracle casts no {source} to {target}")
    if pt.is_date(target):
        return value // _DAY if pt.is_timestamp(source) else value
    if pt.is_integer(source):
        value *= NANOS["s"]
    elif pt.is_date(source):
        value *= _DAY
    units = value // NANOS[target.unit]
    return None if fits_int64(units) is None else units * NANOS[target.unit]
