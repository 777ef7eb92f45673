"""Parse durations as people write them, in microseconds.

>>> micros("10 seconds"), micros("1.5 min"), micros("250ms")
(10000000, 90000000, 250000)
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

from plait.errors import WindowError

Duration = str | dt.timedelta

_UNITS = {
    "us": 1,
    "microsecond": 1,
    "ms": 1_000,
    "millisecond": 1_000,
    "s": 1_000_000,
    "sec": 1_000_000,
    "second": 1_000_000,
    "min": 60_000_000,
    "minute": 60_000_000,
    "h": 3_600_000_000,
    "hour": 3_600_000_000,
    "d": 86_400_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")
LONGEST = 100 * 365 * 86_400_000_000
"""Bounds beyond a century are refused: sums of them must stay far from the end of int64."""


def unit_micros(unit: str) -> int | None:
    """Return the microseconds of one `unit`, singular or plural, or None for an unknown unit."""
    lower = unit.lower()
    return _UNITS.get(lower) or _UNITS.get(lower.removesuffix("s"))


def micros(duration: Duration, *, what: str = "duration") -> int:
    """Convert a duration to microseconds; `what` names it in errors. May be negative."""
    if isinstance(duration, dt.timedelta):
        total = duration // dt.timedelta(microseconds=1)
    elif isinstance(duration, str):
        total = _parse(duration, what)
    else:
        raise WindowError(
            f"{what} is {duration!r}, not a length of time", remedy="write for example '10 seconds'"
        )
    if abs(total) > LONGEST:
        raise WindowError(f"{what} {duration!r} is longer than a century")
    return total


def positive(duration: Duration, *, what: str = "window") -> int:
    """Convert the length of a window to microseconds; it must be positive.

    >>> positive("10 s")
    10000000
    """
    total = micros(duration, what=what)
    if total <= 0:
        raise WindowError(
            f"{what} is {str(duration)!r}: a window must be longer than 0",
            remedy="write for example '10 seconds'",
        )
    return total


def _parse(text: str, what: str) -> int:
    position, total = 0, Decimal(0)
    while position < len(text):
        part = _PART.match(text, position)
        unit = unit_micros(part[2]) if part else None
        if part is None or unit is None:
            break
        total += Decimal(part[1]) * unit
        position = part.end()
    if position < len(text) or position == 0 or total != int(total):
        raise WindowError(
            f"{what} {text!r} is not a length of time in whole microseconds",
            remedy="write for example '10 seconds', '250 ms' or '1 hour 30 minutes'",
        )
    return int(total)


def show_micros(duration: int) -> str:
    """Write a duration as short as is exact.

    >>> show_micros(10_000_000), show_micros(1_500_000), show_micros(-90_000_000), show_micros(0)
    ('10 s', '1500 ms', '-90 s', '0 s')
    """
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000)):
        if duration and duration % size == 0:
            return f"{duration // size} {unit}"
    for unit, size in (("s", 1_000_000), ("ms", 1_000)):
        if duration % size == 0:
            return f"{duration // size} {unit}"
    return f"{duration} us"
