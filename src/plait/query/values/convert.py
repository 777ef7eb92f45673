"""Cast values from one type to another, null where a value has no counterpart.

The rules are Spark's for TRY_CAST. Where a double meets decimals or strings, its shortest decimal
form counts, as in Spark: 0.7 is seven tenths (`float_text` has the rules for strings). A timestamp
without a zone becomes one with a zone (and back) by the wall clock of that zone; on Spark the
translation of SQL puts the session's zone there.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.keys import plain
from plait.query.values.float_text import float_text
from plait.query.values.forms import (
    DAY,
    PER_SECOND,
    Unfit,
    Value,
    by_row,
    floats,
    ints,
    is_bytes,
    is_number,
    is_text,
    masked,
    unscaled,
)
from plait.query.values.older_digits import older_digits

EXACT = decimal.Context(prec=160, rounding=decimal.ROUND_HALF_UP, Emax=10_000, Emin=-10_000)
"""Enough digits for every product and quotient of two decimals."""

_WHOLE = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_MOMENT = re.compile(
    r"(?P<date>\d{4}(-\d{1,2}(-\d{1,2})?)?)"
    r"([T ](?P<h>\d{1,2})(:(?P<m>\d{1,2})(:(?P<s>\d{1,2})(\.(?P<f>\d{0,9}))?)?)?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d{1,2}:?\d{2})?"
)
_EPOCH = dt.datetime(1970, 1, 1)


def convert(value: Value, target: pa.DataType) -> Value:
    """Cast a value, or raise Unfit if no value of its type can be cast.

    >>> convert(pa.array(["7", " 8 ", "nine"]), pa.int64()).to_pylist()
    [7, 8, None]
    >>> convert(pa.array([300, 5]), pa.int8()).to_pylist()
    [None, 5]
    """
    if isinstance(value, pa.Scalar):
        return convert(pa.repeat(value, 1), target)[0]
    source, target = value.type, plain(target)
    if source == target:
        return value
    if pt.is_null(source):
        return pc.cast(value, target)
    for accepts, conversion in _CONVERSIONS:
        if accepts(target):
            result = conversion(value, target)
            if result is not None:
                return result
    raise Unfit(f"nothing of type {source} is a {target}; cast through another type")


def to_double(value: Value) -> Value:
    """A number as a double, correctly rounded.

    >>> to_double(pa.array([Decimal("0.7")])).to_pylist()
    [0.7]
    """
    if value.type == pa.float64():
        return value
    if not pt.is_decimal(value.type):
        return pc.cast(value, pa.float64(), safe=False)
    if isinstance(value, pa.Scalar):
        exact = value.as_py()
        return pa.scalar(None if exact is None else float(exact), pa.float64())
    type_ = value.type
    small = unscaled(value) if 0 <= type_.scale <= 22 else None
    if small is not None and len(small) and np.abs(small).max() < 2**53:
        # Both numbers are exact doubles, so that one division rounds once.
        return masked(small / np.float64(10.0**type_.scale), pa.float64(), value)
    return by_row(float, pa.float64(), value)


def fitted(value: Decimal, precision: int, scale: int) -> Decimal | None:
    """The decimal rounded half up to `scale` digits, None if it needs more than `precision`.

    >>> fitted(Decimal("1.25"), 3, 1), fitted(Decimal("99.95"), 3, 1)
    (Decimal('1.3'), None)
    """
    if not value.is_finite():
        return None
    try:
        rounded = value.quantize(Decimal(1).scaleb(-scale), context=EXACT)
    except decimal.InvalidOperation:
        return None
    return rounded if rounded.copy_abs() < Decimal(10) ** (precision - scale) else None


def shortest(number: float) -> Decimal:
    """Return the shortest decimal that reads back as this double."""
    return Decimal(repr(float(number)))


def as_java_17_writes(number: float) -> Decimal:
    """The decimal that Java 17 writes for this double.

    >>> as_java_17_writes(-2e23)
    Decimal('-1.9999999999999998E+23')
    """
    if number == 0 or not math.isfinite(number):
        return shortest(number)
    digits, place = older_digits(abs(number))
    return Decimal(f"{'-' if number < 0 else ''}{digits[0]}.{digits[1:]}E{place}")


def rescale(value: Value, target: pa.DataType) -> Value:
    """Timestamps or durations in another unit, rounded down; null where they do not fit."""
    have, want = PER_SECOND[value.type.unit], PER_SECOND[target.unit]
    if isinstance(value, pa.Scalar):
        return rescale(pa.repeat(value, 1), target)[0]
    numbers = ints(value)
    if have >= want:
        return masked(numbers // (have // want), target, value)
    factor = want // have
    limit = (2**63 - 1) // factor
    outside = (numbers > limit) | (numbers < -limit)
    return masked(np.where(outside, 0, numbers) * factor, target, outside, value)


def _to_integer(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    source = value.type
    if pt.is_boolean(source):
        return pc.cast(value, target)
    if pt.is_integer(source):
        return _narrowed(value, target)
    if pt.is_floating(source):
        numbers = np.trunc(floats(pc.cast(value, pa.float64())))
        low, high = _range(target)
        outside = ~((numbers >= low) & (numbers < float(high + 1)))
        # A double holds every whole number below 2**63 that it can name, so this cast is exact.
        kind = np.uint64 if target == pa.uint64() else np.int64
        return masked(np.where(outside, 0.0, numbers).astype(kind), target, outside, value)
    if pt.is_decimal(source):
        return by_row(lambda d: _if_inside(int(d), target), target, value)
    if is_text(source):
        text = pc.utf8_trim_whitespace(value)
        good = pc.if_else(pc.match_substring_regex(text, _WHOLE), text, pa.scalar(None, text.type))
        return by_row(lambda s: _if_inside(int(s), target), target, good)
    if pt.is_timestamp(source):
        return _narrowed(rescale(value, pa.timestamp("s", source.tz)).cast(pa.int64()), target)
    return None


def _range(integer: pa.DataType) -> tuple[int, int]:
    signed = pt.is_signed_integer(integer)
    bits = integer.bit_width - signed
    return (-(2**bits) if signed else 0, 2**bits - 1)


def _if_inside(number: int, target: pa.DataType) -> int | None:
    low, high = _range(target)
    return number if low <= number <= high else None


def _narrowed(value: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return pc.cast(value, target)
    except pa.ArrowInvalid:
        return by_row(lambda number: _if_inside(number, target), target, value)


def _to_float(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    source = value.type
    if is_number(source):
        return pc.cast(to_double(value), target, safe=False)
    if pt.is_boolean(source):
        return pc.cast(pc.cast(value, pa.int8()), target)
    if is_text(source):
        text = pc.utf8_trim_whitespace(value)
        good = pc.if_else(pc.match_substring_regex(text, _NUMBER), text, pa.scalar(None, text.type))
        named = by_row(_named_float, pa.float64(), text.filter(pc.is_null(good)))
        numbers = by_row(float, pa.float64(), good)
        return pc.cast(pc.replace_with_mask(numbers, pc.is_null(good), named), target, safe=False)
    if pt.is_timestamp(source):
        micros = rescale(value, pa.timestamp("us", source.tz)).cast(pa.int64())
        return pc.cast(pc.divide(pc.cast(micros, pa.float64(), safe=False), 1e6), target)
    return None


def _named_float(text: str) -> float | None:
    match = re.fullmatch(r"([+-]?)(nan|inf|infinity)", text, re.IGNORECASE)
    if match is None:
        return None
    return math.nan if match[2].lower() == "nan" else float(match[1] + "inf")


def _to_decimal(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    source, precision, scale = value.type, target.precision, target.scale
    if pt.is_integer(source) or pt.is_decimal(source) or pt.is_boolean(source):
        if pt.is_boolean(source):
            value = pc.cast(value, pa.int8())
        if pt.is_integer(value.type) or value.type.scale <= scale:
            try:
                return pc.cast(value, target)
            except pa.ArrowInvalid:
                pass
        return by_row(lambda n: fitted(Decimal(n), precision, scale), target, value)
    if pt.is_floating(source):
        doubles = pc.cast(value, pa.float64())
        return by_row(lambda x: fitted(shortest(x), precision, scale), target, doubles)
    if is_text(source):
        text = pc.utf8_trim_whitespace(value)
        good = pc.if_else(pc.match_substring_regex(text, _NUMBER), text, pa.scalar(None, text.type))
        return by_row(lambda s: fitted(Decimal(s), precision, scale), target, good)
    return None


def _to_text(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    source = value.type
    if is_text(source) or pt.is_boolean(source) or pt.is_integer(source) or pt.is_date(source):
        return pc.cast(value, target)
    if is_bytes(source):
        return by_row(_utf8, target, value)
    if pt.is_floating(source):
        return pc.cast(float_text(value), target)
    if pt.is_decimal(source):
        return by_row(lambda d: format(d, "f"), target, value)
    if pt.is_timestamp(source):
        micros = rescale(value, pa.timestamp("us", source.tz))
        text = pc.strftime(micros, format="%Y-%m-%d %H:%M:%S")
        return pc.cast(pc.replace_substring_regex(text, r"\.?0+$", ""), target)
    return None


def _utf8(octets: bytes) -> str | None:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return None


def _to_bytes(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    return pc.cast(value, target) if is_text(value.type) or is_bytes(value.type) else None


def _to_boolean(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    if is_number(value.type):
        return pc.not_equal(to_double(value), 0.0)
    if is_text(value.type):
        words = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}
        return by_row(lambda s: words.get(s.strip().lower()), target, value)
    return None


def _to_timestamp(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    source = value.type
    if pt.is_timestamp(source):
        if (source.tz is None) == (target.tz is None):
            return rescale(value, target) if source.unit != target.unit else pc.cast(value, target)
        if source.tz is None:
            return convert(by_the_clock(value, target.tz), target)
        return convert(pc.local_timestamp(value), target)
    if pt.is_date(source):
        naive = rescale(midnight(value), pa.timestamp(target.unit))
        return convert(naive, target)
    if pt.is_integer(source):
        seconds = _narrowed(value, pa.int64())
        return rescale(seconds.cast(pa.timestamp("s", target.tz)), target)
    if is_text(source):
        return by_row(lambda s: _moment(s, target), target, value)
    return None


def by_the_clock(value: pa.Array, zone: str) -> pa.Array:
    """Convert local times of a zone to instants.

    Of two instants, the earlier one. Times that a change of clocks skips follow the offset before
    it, as in Java: with 2:00 to 3:00 left out, 2:30 is 3:30.
    """
    sooner = pc.assume_timezone(value, zone, ambiguous="earliest", nonexistent="latest")
    shown = pc.local_timestamp(sooner)
    if pc.all(pc.equal(shown, value), min_count=0).as_py() is not False:
        return sooner
    unit = value.type.unit
    # The end of a gap is the first instant after it; the one before shows the clock before it.
    one = pa.scalar(1, pa.int64()).cast(pa.duration(unit))
    before = pc.add(pc.local_timestamp(pc.subtract(sooner, one)), one)
    inside = pc.fill_null(pc.not_equal(shown, value), False)
    return pc.if_else(inside, pc.add(sooner, pc.subtract(value, before)), sooner)


def midnight(value: Value) -> Value:
    """The beginning of a date, as a timestamp that reaches as far as dates do."""
    return pc.cast(value, pa.timestamp("s" if pt.is_date32(value.type) else "ms"))


def has_zone(text: str) -> bool:
    """Whether a timestamp's text names its time zone.

    >>> has_zone("2024-01-01 10:00:00Z"), has_zone("2024-01-01 10:00:00")
    (True, False)
    """
    match = _MOMENT.fullmatch(text.strip())
    return match is not None and match["zone"] is not None


def _moment(text: str, target: pa.DataType) -> int | None:
    """Units since the epoch; a zone in the text counts only where the target has zones."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    date = [int(part) for part in match["date"].split("-")]
    year, month, day = (*date, 1, 1)[:3]
    hour, minute, second = (int(match[part] or 0) for part in "hms")
    try:
        local = dt.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    nanos = int((match["f"] or "").ljust(9, "0"))
    if target.tz is not None:
        if match["zone"]:
            local -= _offset(match["zone"])
        else:
            import zoneinfo

            try:
                zone = zoneinfo.ZoneInfo(target.tz)
            except (zoneinfo.ZoneInfoNotFoundError, ValueError):
                local -= _offset(target.tz)
            else:
                local = local.replace(tzinfo=zone).astimezone(dt.UTC).replace(tzinfo=None)
    seconds = (local - _EPOCH) // dt.timedelta(seconds=1)
    per_second = PER_SECOND[target.unit]
    units = seconds * per_second + nanos * per_second // 1_000_000_000
    return units if -(2**63) < units < 2**63 else None


def _offset(zone: str) -> dt.timedelta:
    match = re.fullmatch(r"([+-])(\d{1,2}):?(\d{2})", zone)
    if match is None:
        return dt.timedelta(0)
    size = dt.timedelta(hours=int(match[2]), minutes=int(match[3]))
    return -size if match[1] == "-" else size


def _to_date(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    source = value.type
    if pt.is_date(source):
        return pc.cast(value, target, safe=False)
    if is_text(source):
        value = _to_timestamp(value, pa.timestamp("s"))
    elif not pt.is_timestamp(source):
        return None
    elif source.tz is not None:
        value = pc.local_timestamp(value)
    days = ints(rescale(value, pa.timestamp("s"))) // DAY
    outside = (days >= 2**31) | (days < -(2**31))
    inside = np.where(outside, 0, days).astype(np.int32)
    return pc.cast(masked(inside, pa.date32(), outside, value), target)


def _to_duration(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    return rescale(value, target) if pt.is_duration(value.type) else None


def _to_time(value: pa.Array, target: pa.DataType) -> pa.Array | None:
    return pc.cast(value, target, safe=False) if pt.is_time(value.type) else None


_CONVERSIONS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array | None]], ...
] = (
    (pt.is_integer, _to_integer),
    (pt.is_floating, _to_float),
    (pt.is_decimal, _to_decimal),
    (is_text, _to_text),
    (is_bytes, _to_bytes),
    (pt.is_boolean, _to_boolean),
    (pt.is_timestamp, _to_timestamp),
    (pt.is_date, _to_date),
    (pt.is_duration, _to_duration),
    (pt.is_time, _to_time),
)
