"""Functions of timestamps: fields of the clock, truncation, differences in months.

An instant is a timestamp with a zone, and its fields are those that clocks show there; the
translation of SQL puts the session's zone into the type. A timestamp without a zone is what a clock
shows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.convert import by_the_clock, convert, rescale
from plait.query.values.dates import (
    civil_days,
    constant_text,
    date_unit,
    first_days,
    months_of,
    truncated_days,
)
from plait.query.values.forms import (
    DAY,
    Unfit,
    Value,
    as_whole,
    from_unscaled,
    ints,
    masked,
    rows,
    spread,
)

_SECOND = 1_000_000
_DAY = DAY * _SECOND
_UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": _SECOND,
    "MINUTE": 60 * _SECOND,
    "HOUR": 3600 * _SECOND,
    "DAY": _DAY,
    "DD": _DAY,
}
_NAIVE = pa.timestamp("us")


def as_timestamp(value: Value) -> Value:
    """The value as a timestamp in microseconds; NULL without a type is a null one."""
    if pt.is_null(value.type):
        return pc.cast(value, _NAIVE)
    if not pt.is_timestamp(value.type):
        raise Unfit("this takes a timestamp; use CAST(... AS TIMESTAMP)")
    return rescale(value, pa.timestamp("us", value.type.tz))


def shown(value: Value) -> Value:
    """Convert to local time, as a timestamp without a zone."""
    return pc.local_timestamp(value) if value.type.tz is not None else value


def clock_field(field: str, value: Value) -> Value:
    """Return the hour, minute or second of local time, as an INT."""
    (times,) = _both(shown(as_timestamp(value)))
    size, most = {"hour": (3600, 24), "minute": (60, 60), "second": (1, 60)}[field]
    numbers = ints(times) // (size * _SECOND) % most
    return masked(numbers.astype(np.int32), pa.int32(), times)


def seconds_with_fraction(value: Value) -> Value:
    """Return the second of local time with its fraction, as DECIMAL(8, 6)."""
    (times,) = _both(shown(as_timestamp(value)))
    return from_unscaled(ints(times) % (60 * _SECOND), pa.decimal128(8, 6), times)


def _both(*values: Value) -> list[pa.Array]:
    count = rows(values)
    return [spread(v, count) for v in values]


def truncate_timestamp(unit: Value, value: Value) -> Value:
    """Truncate local time to a unit; null for an unknown unit.

    >>> noon = pa.array(["2024-05-17 12:34:56"]).cast(pa.timestamp("us"))
    >>> truncate_timestamp(pa.scalar("HOUR"), noon).to_pylist()
    [datetime.datetime(2024, 5, 17, 12, 0)]
    """
    (times,) = _both(as_timestamp(value))
    name = constant_text(unit, "the unit")
    size = _UNITS.get((name or "").upper())
    zone = times.type.tz
    clock = shown(times)
    numbers = ints(clock)
    if size is None:
        calendar = date_unit(name)
        if calendar is None:
            return pa.nulls(len(times), times.type)
        first = truncated_days(numbers // _DAY, calendar) * _DAY
        begin = masked(first, _NAIVE, times)
        return begin if zone is None else by_the_clock(begin, zone)
    if zone is None or size <= _SECOND:
        return masked(ints(times) - ints(times) % size, times.type, times)
    back = numbers % size
    begin = masked(numbers - back, _NAIVE, times)
    # The offset that holds now is kept where the clock had it then.
    same = masked(ints(times) - back, times.type, times)
    kept = pc.equal(shown(same), begin)
    return pc.if_else(kept, same, pc.cast(by_the_clock(begin, zone), times.type))


def plus_days(value: Value, length: Value) -> Value:
    """Add a duration, whole days of which are days of the calendar.

    >>> noon = pa.array(["2024-03-30 11:00:00Z"]).cast(pa.timestamp("us", "Europe/Berlin"))
    >>> plus_days(noon, pa.scalar(86_400_000_000, pa.duration("us"))).cast(pa.int64()).to_pylist()
    [1711879200000000]
    """
    times, lengths = _both(as_timestamp(value), rescale(length, pa.duration("us")))
    zone, micros = times.type.tz, ints(lengths)
    rest = np.fmod(micros, _DAY)
    days = micros - rest
    clock = masked(ints(shown(times)) + days, _NAIVE, times, lengths)
    if zone is None:
        return masked(ints(clock) + rest, times.type, clock)
    same = masked(ints(times) + days, times.type, clock)
    moved = pc.if_else(
        pc.equal(shown(same), clock), same, pc.cast(by_the_clock(clock, zone), times.type)
    )
    return masked(ints(moved) + rest, times.type, clock)


def months_between(end: Value, start: Value, rounded: Value | None = None) -> Value:
    """Months from `start` to `end`: whole ones between equal or last days, else by months of 31
    days; rounded to 8 digits unless told not to.

    >>> a, b = (pa.array([f"2024-{m}"]).cast(pa.timestamp("us")) for m in ("03-31", "02-29"))
    >>> months_between(a, b).to_pylist()
    [1.0]
    """
    a, b = _both(as_timestamp(end), as_timestamp(start))
    if rounded is not None and not isinstance(rounded, pa.Scalar):
        raise Unfit("whether it is rounded is a literal, TRUE or FALSE")
    months, day, last, second = [], [], [], []
    for side in (a, b):
        clock = ints(shown(side))
        days = clock // _DAY
        month = months_of(days)
        first = first_days(month)
        months.append(month)
        day.append(days - first)
        last.append(days == first_days(month + 1) - 1)
        begin = masked(days * _DAY, _NAIVE, side)
        midnight = ints(begin if side.type.tz is None else by_the_clock(begin, side.type.tz))
        second.append((ints(side) - midnight) // _SECOND)
    apart = (months[0] - months[1]).astype(np.float64)
    seconds = (day[0] - day[1]) * DAY + second[0] - second[1]
    exact = apart + seconds / np.float64(31 * DAY)
    if rounded is None or rounded.as_py() is not False:
        exact = np.floor(exact * 1e8 + 0.5) / 1e8
    same = (day[0] == day[1]) | (last[0] & last[1])
    nulls = [a, b]
    if rounded is not None and not rounded.is_valid:
        nulls.append(pa.nulls(len(a)))
    return masked(np.where(same, apart, exact), pa.float64(), *nulls)


def make_timestamp(
    year: Value, month: Value, day: Value, hour: Value, minute: Value, second: Value
) -> Value:
    """Make a local time from its fields; null if there is no such time.

    Seconds have up to six digits after the point, and 60 is the beginning of the next minute.
    """
    exact = convert(second, pa.decimal128(16, 6))
    parts = [as_whole(v) for v in (year, month, day, hour, minute)]
    micros = convert(pc.multiply(exact, pa.scalar(_SECOND, pa.decimal128(7, 0))), pa.int64())
    columns = _both(*parts, micros)
    y, m, d, h, mi, fine = (ints(c) for c in columns)
    days, wrong = civil_days(y, m, d)
    wrong |= (h < 0) | (h > 23) | (mi < 0) | (mi > 59) | (fine < 0) | (fine > 60 * _SECOND)
    wrong |= np.abs(days) > 2**63 // _DAY - 1
    clock = np.where(wrong, 0, days) * _DAY + ((h * 60 + mi) * 60) * _SECOND + fine
    return masked(np.where(wrong, 0, clock), _NAIVE, wrong, *columns)


def since_epoch(unit: str, value: Value) -> Value:
    """Seconds (`s`), milliseconds (`ms`) or microseconds (`us`) since 1970-01-01 UTC, rounded down.

    >>> since_epoch("s", pa.array([-1, 2_500_000], pa.timestamp("us"))).to_pylist()
    [-1, 2]
    """
    if pt.is_null(value.type):
        return pc.cast(value, pa.int64())
    if not pt.is_timestamp(value.type):
        raise Unfit(f"{_EPOCHS[unit]} takes a timestamp; cast it to one")
    return pc.cast(rescale(value, pa.timestamp(unit, value.type.tz)), pa.int64())


_EPOCHS = {"s": "unix_seconds", "ms": "unix_millis", "us": "unix_micros"}


def from_epoch(unit: str) -> Callable[[Value], Value]:
    """Return the instant that is `count` units after 1970-01-01 UTC; null beyond the range."""

    def instant(value: Value) -> Value:
        (count,) = _both(as_whole(value))
        return rescale(count.cast(pa.timestamp(unit, "UTC")), pa.timestamp("us", "UTC"))

    return instant
