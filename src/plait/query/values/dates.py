"""Functions of dates, on days since 1970-01-01 in the Gregorian calendar at all times.

A timestamp becomes a date first (`CAST(ts AS DATE)`), which is where its time zone counts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.forms import (
    Bools,
    Ints,
    Unfit,
    Value,
    as_text,
    as_whole,
    ints,
    masked,
    rows,
    spread,
)

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_LONG_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
}
"""The names of the units of `trunc`."""


def as_date(value: Value) -> Value:
    """The value as a date; NULL without a type is a null date."""
    if pt.is_null(value.type) or pt.is_date64(value.type):
        return pc.cast(value, pa.date32())
    if not pt.is_date(value.type):
        raise Unfit("this takes a date; use CAST(... AS DATE)")
    return value


def constant_text(value: Value, what: str) -> str | None:
    """A string literal in its place; None for NULL."""
    text = as_text(value)
    if not isinstance(text, pa.Scalar):
        raise Unfit(f"{what} is a string literal; write it in quotes")
    return text.as_py() if text.is_valid else None


def date_field(field: str, value: Value) -> Value:
    """A part of a date, as an INT.

    >>> date_field("quarter", pa.array(["2024-05-17"]).cast(pa.date32())).to_pylist()
    [2]
    """
    (dates,) = _both(as_date(value))
    return masked(_FIELDS[field](days_of(dates)).astype(np.int32), pa.int32(), dates)


def _year_begin(days: Ints) -> Ints:
    return first_days(months_of(days) // 12 * 12)


def _thursday(days: Ints) -> Ints:
    """The Thursday of the week, whose year is that of the week."""
    return days - (days + 3) % 7 + 3


_FIELDS: dict[str, Callable[[Ints], Ints]] = {
    "year": lambda days: months_of(days) // 12 + 1970,
    "quarter": lambda days: months_of(days) % 12 // 3 + 1,
    "month": lambda days: months_of(days) % 12 + 1,
    "day": lambda days: days - first_days(months_of(days)) + 1,
    "dayofyear": lambda days: days - _year_begin(days) + 1,
    "weekofyear": lambda days: (_thursday(days) - _year_begin(_thursday(days))) // 7 + 1,
    "yearofweek": lambda days: months_of(_thursday(days)) // 12 + 1970,
    "dayofweek": lambda days: (days + 4) % 7 + 1,
    "weekday": lambda days: (days + 3) % 7,
}
"""1970-01-01 was a Thursday; `dayofweek` is 1 on Sunday, `weekday` 0 on Monday."""


def day_name(value: Value) -> Value:
    """`Mon` to `Sun`."""
    names = pa.array([day[:3].title() for day in _LONG_DAYS])
    return names.take(date_field("weekday", value))


def month_name(value: Value) -> Value:
    """`Jan` to `Dec`."""
    place = pc.subtract(date_field("month", value), pa.scalar(1, pa.int32()))
    return pa.array(_MONTHS).take(place)


def days_of(value: Value) -> Ints:
    """Days since 1970-01-01, whatever in null rows."""
    return ints(pc.cast(value, pa.int32()))


def from_days(days: Ints, *nulls: Bools | pa.Array) -> pa.Array:
    """Dates of these days, null where 32 bits do not hold them."""
    outside = (days >= 2**31) | (days < -(2**31))
    inside = np.where(outside, 0, days).astype(np.int32)
    return masked(inside, pa.date32(), outside, *nulls)


def months_of(days: Ints) -> Ints:
    """Months since 1970-01."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def first_days(months: Ints) -> Ints:
    """The first day of each month."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def date_add(value: Value, count: Value) -> Value:
    """Add days.

    >>> date_add(pa.array(["2024-02-28"]).cast(pa.date32()), pa.scalar(2)).to_pylist()
    [datetime.date(2024, 3, 1)]
    """
    dates, many = _both(as_date(value), as_whole(count))
    return from_days(days_of(dates) + np.clip(ints(many), -(2**40), 2**40), dates, many)


def _both(*values: Value) -> list[pa.Array]:
    count = rows(values)
    return [spread(v, count) for v in values]


def date_diff(end: Value, start: Value) -> Value:
    """The days from `start` to `end`."""
    a, b = _both(as_date(end), as_date(start))
    distance = days_of(a) - days_of(b)
    return masked(distance.astype(np.int32), pa.int32(), a, b)


def add_months(value: Value, count: Value) -> Value:
    """Add months; the last day of the month where it has no such day.

    >>> add_months(pa.array(["2024-01-31"]).cast(pa.date32()), pa.scalar(1)).to_pylist()
    [datetime.date(2024, 2, 29)]
    """
    dates, many = _both(as_date(value), as_whole(count))
    days, added = days_of(dates), ints(many)
    months = months_of(days)
    far = np.abs(added) > 2**31
    target = months + np.where(far, 0, added)
    first = first_days(target)
    last = first_days(target + 1) - first - 1
    return from_days(first + np.minimum(days - first_days(months), last), far, dates, many)


def last_day(value: Value) -> Value:
    """The last day of the month."""
    (dates,) = _both(as_date(value))
    return from_days(first_days(months_of(days_of(dates)) + 1) - 1, dates)


def next_day(value: Value, name: Value) -> Value:
    """The first day after the date that has this name; null if no day has it.

    >>> next_day(pa.array(["2024-05-17"]).cast(pa.date32()), pa.scalar("Fri")).to_pylist()
    [datetime.date(2024, 5, 24)]
    """
    (dates,) = _both(as_date(value))
    wanted = (constant_text(name, "the name of the day") or "").upper()
    places = [i for i in range(7) if wanted in (_DAYS[i], _LONG_DAYS[i][:3], _LONG_DAYS[i])]
    if not places:
        return pa.nulls(len(dates), pa.date32())
    days = days_of(dates)
    # 1970-01-01 was a Thursday.
    return from_days(days + 1 + (places[0] - 4 - days) % 7, dates)


def date_unit(name: str | None) -> str | None:
    """Find the unit of `trunc` by its name: year, quarter, month or week."""
    return None if name is None else _UNITS.get(name.upper())


def truncated_days(days: Ints, unit: str) -> Ints:
    """The first day of the year, quarter, month or week (which begins on Monday)."""
    if unit == "week":
        return days - (days + 3) % 7
    size = {"year": 12, "quarter": 3, "month": 1}[unit]
    return first_days(months_of(days) // size * size)


def truncate_date(value: Value, unit: Value) -> Value:
    """The first day of the date's year, quarter, month or week; null for other units.

    >>> truncate_date(pa.array(["2024-05-17"]).cast(pa.date32()), pa.scalar("MM")).to_pylist()
    [datetime.date(2024, 5, 1)]
    """
    (dates,) = _both(as_date(value))
    named = date_unit(constant_text(unit, "the unit"))
    if named is None:
        return pa.nulls(len(dates), pa.date32())
    return from_days(truncated_days(days_of(dates), named), dates)


def civil_days(year: Ints, month: Ints, day: Ints) -> tuple[Ints, Bools]:
    """Compute days since 1970-01-01, and mark where there is no such day."""
    wrong = (month < 1) | (month > 12) | (day < 1) | (np.abs(year) > 9_999_999)
    months = np.where(wrong, 0, (year - 1970) * 12 + month - 1)
    first = first_days(months)
    wrong |= day > first_days(months + 1) - first
    return first + np.where(wrong, 0, day - 1), wrong


def make_date(year: Value, month: Value, day: Value) -> Value:
    """Make a date from year, month and day; null if there is no such date.

    >>> make_date(pa.array([2024, 2023]), pa.scalar(2), pa.scalar(29)).to_pylist()
    [datetime.date(2024, 2, 29), None]
    """
    parts = _both(*(as_whole(v) for v in (year, month, day)))
    days, wrong = civil_days(*(ints(p) for p in parts))
    return from_days(days, wrong, *parts)


def unix_date(value: Value) -> Value:
    """Days since 1970-01-01."""
    return pc.cast(as_date(value), pa.int32())


def from_unix_date(value: Value) -> Value:
    """Return the date that is `days` after 1970-01-01."""
    (count,) = _both(as_whole(value))
    return from_days(ints(count), count)
