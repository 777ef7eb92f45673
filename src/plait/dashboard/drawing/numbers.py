"""Numbers, sizes and times as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

_LONG = ((63e6, 31_557_600, "years"), (172_800, 86_400, "d"), (5400, 3600, "h"), (120, 60, "min"))
"""From how many seconds on a unit is used, and how many it has."""
_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(value: float | None, unit: str = "") -> str:
    """A number with three digits.

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
    """An amount of memory.

    >>> size(1536), size(0), size(23_500_000)
    ('1.54 kB', '0 B', '23.5 MB')
    """
    return short(value, "B")


def seconds(value: float | None) -> str:
    """A length of time.

    >>> seconds(0.0123), seconds(0.742), seconds(3.21), seconds(200), seconds(9000), seconds(2e5)
    ('12 ms', '742 ms', '3.2 s', '3.33 min', '2.5 h', '2.31 d')
    """
    if value is None or math.isnan(value):
        return "–"
    for least, unit, name in _LONG:
        if abs(value) >= least:
            return f"{value / unit:.3g} {name}"
    if abs(value) >= 1:
        return f"{value:.3g} s" if abs(value) >= 10 else f"{value:.1f} s"
    if abs(value) >= 0.01:
        return f"{value * 1000:.0f} ms"
    return f"{value * 1000:.2g} ms" if value else "0 s"


def one_in(probability: float | None) -> str:
    """A small probability.

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
    """A moment in UTC, in seconds since 1970.

    >>> instant(0), instant(None)
    ('1970-01-01 00:00:00', '–')
    """
    if when is None or math.isnan(when):
        return "–"
    try:
        return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return f"{when:.0f} s"


def ranges(numbers: Sequence[int]) -> str:
    """Numbers with those that follow each other put together.

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
    """Which processors, in words.

    >>> processors([3]), processors([0, 1, 2])
    ('processor 3', 'processors 0–2')
    """
    return f"processor{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"
