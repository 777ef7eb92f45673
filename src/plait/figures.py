"""Numbers, amounts and times as people read them: on the console, the command line, in messages.

Every figure in a text for people is written here, so it looks the same everywhere. Figures for
programs stay numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_LONG = ((63e6, 31_557_600, "years"), (172_800, 86_400, "d"), (5400, 3600, "h"), (120, 60, "min"))
"""Each long unit: the seconds from which it is used, the seconds it has, and its name."""
_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(value: float | None, unit: str = "") -> str:
    """Write a number with three digits.

    >>> short(1234), short(56789, "rows/s"), short(None), short(0.00321), short(7)
    ('1.23 k', '56.8 k rows/s', '–', '0.00321', '7')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    for step, prefix in _STEPS:
        if abs(value) >= step * 0.9995:
            return f"{value / step:.3g} {prefix}{'' if unit == 'B' else ' '}{unit}".rstrip()
    text = f"{value:.3g}"
    return f"{text} {unit}" if unit else text


def size(value: float | None) -> str:
    """Write a number of bytes.

    >>> size(1536), size(0), size(23_500_000)
    ('1.54 kB', '0 B', '23.5 MB')
    """
    return short(value, "B")


def duration(seconds: float | None) -> str:
    """Write a length of time.

    >>> duration(0.0123), duration(0.742), duration(3.21), duration(200), duration(9000)
    ('12 ms', '742 ms', '3.2 s', '3.33 min', '2.5 h')
    >>> duration(2e5), duration(0.0031), duration(6.9e-5), duration(6.9e-7), duration(0)
    ('2.31 d', '3.1 ms', '69 µs', 'less than 1 µs', '0 s')
    """
    if seconds is None or math.isnan(seconds):
        return "–"
    if math.isinf(seconds):
        return "∞" if seconds > 0 else "-∞"
    for least, unit, name in _LONG:
        if abs(seconds) >= least:
            return f"{seconds / unit:.3g} {name}"
    if abs(seconds) >= 0.9995:
        return f"{seconds:.3g} s" if abs(seconds) >= 9.95 else f"{seconds:.1f} s"
    if abs(seconds) >= 0.00995:
        return f"{seconds * 1e3:.0f} ms"
    if abs(seconds) >= 0.0009995:
        return f"{seconds * 1e3:.1f} ms"
    if not seconds:
        return "0 s"
    return f"{seconds * 1e6:.0f} µs" if abs(seconds) >= 1e-6 else "less than 1 µs"


def one_in(probability: float | None) -> str:
    """Write a probability; a small one as 1 in N.

    >>> one_in(0.0005), one_in(0.4), one_in(None), one_in(0)
    ('1 in 2,000', '40%', 'unknown', 'never')
    """
    if probability is None:
        return "unknown"
    if probability <= 0:
        return "never"
    if probability > 0.1:
        return f"{probability:.0%}"
    many = 1 / probability
    digits = max(0, math.floor(math.log10(many)) - 1)
    return f"1 in {round(many / 10**digits) * 10**digits:,.0f}"


def instant(when: float | None) -> str:
    """Write a time in UTC, given in seconds since 1970.

    >>> instant(0), instant(None)
    ('1970-01-01 00:00:00', '–')
    """
    if when is None or math.isnan(when):
        return "–"
    try:
        return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return f"{when:.0f} s"


def event_time(micros: int | None) -> str:
    """Write an event time, given in microseconds since 1970, with its milliseconds.

    >>> event_time(1_704_067_200_250_000)
    '2024-01-01 00:00:00.250'
    """
    if micros is None:
        return "–"
    try:
        stamp = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} µs"
    return stamp.isoformat(sep=" ", timespec="milliseconds")


def count(number: int, one: str, many: str = "") -> str:
    """Write a number of things, with the noun in the singular or plural.

    >>> count(1, "row"), count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def ranges(numbers: Sequence[int]) -> str:
    """Write a list of integers, consecutive ones as a range.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0–2, 5, 7–8'
    """
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][-1] + 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number])
    return ", ".join(str(f[0]) if len(f) == 1 else f"{f[0]}–{f[-1]}" for f in found)


def processors(numbers: Sequence[int]) -> str:
    """Name processors by their numbers.

    >>> processors([3]), processors([0, 1, 2])
    ('processor 3', 'processors 0–2')
    """
    return f"processor{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"
