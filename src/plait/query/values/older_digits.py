"""The digits that Java 17 and 18 write for floating-point numbers: not always the shortest.

The *gap* is the distance to the next larger number of the same precision. All numbers here are
positive and finite.

- A whole number below 2**63 has all its digits, but for the last n, where 10**n <= gap / 4: these
  are rounded off, half up.
- Of others, digits are written one by one. They end where the number cut off there, or the next
  larger one with as many digits, is nearer than half a gap, or a quarter for powers of two. If both
  are, the nearer one is written, the even one of two. Numbers at exactly half a gap are not near
  enough, even where they are read back as the same number: 2E23 is 1.9999999999999998E23.
- Numbers that are written with an exponent have at least two digits. The place of the first is
  estimated, by the tangent to the logarithm at 1.5. Where it is one too high, the first digit is a
  zero, which counts if the number would be rounded up there: 9.88E-324 is 1.0E-323.
- Numbers are scaled to integers. Where ten units of the first digit fit into a word of 64 bits,
  sums are computed in it, and one that overflows counts as small: 9.67139367E24 as a float is
  9.6713936E24.

This was found by experiments, and is compared with what Java 17 printed for millions of numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

WHOLE = 2.0**63
"""Whole numbers below have rules of their own."""
_WORD = 2**63
_SLOPE = 1 / (1.5 * math.log(10))
_PRECISION = {np.dtype(np.float32): (24, -149), np.dtype(np.float64): (53, -1074)}
"""Digits in base two, and the exponent of the smallest gap."""


def older_digits(number: float, kind: np.dtype[Any] | None = None) -> tuple[str, int]:
    """The digits of a number of this type (a double if none is given), and the first one's place.

    >>> older_digits(2e23), older_digits(0.5)
    (('19999999999999998', 23), ('5', -1))
    """
    kind = kind or np.dtype(np.float64)
    if number < WHOLE and number.is_integer():
        rounded, zeros = (int(array[0]) for array in whole_digits(np.array([number], kind)))
        written = str(rounded)
        return written.rstrip("0"), len(written) - 1 + zeros
    precision, lowest = _PRECISION[kind]
    mantissa, exponent = math.frexp(number)
    gap = max(exponent - precision, lowest)
    place = math.floor(
        (2 * mantissa - 1.5) * _SLOPE + math.log10(1.5) + (exponent - 1) * math.log10(2)
    )
    return _one_by_one(int(math.ldexp(number, -gap)), gap, place)


def _one_by_one(count: int, gap: int, place: int) -> tuple[str, int]:
    """The digits of count * 2**gap, of which the first is expected at 10**place."""
    near = gap - 1 - (count & (count - 1) == 0)
    up, down = 5 ** max(-place, 0), 5 ** max(place, 0)
    shift = max(place - near, 0)
    rest, half = up * count << gap - place + shift, up << near - place + shift
    unit = down << shift
    fits = 10 * unit < _WORD
    digits, length, first = 0, 0, True
    while True:
        digit, rest = divmod(rest, unit)
        rest, half = 10 * rest, 10 * half
        overflows = fits and half < _WORD <= rest + half
        below, above = rest < half, rest + half > 10 * unit and not overflows
        if first and digit == 0 and not above:
            place -= 1
        else:
            digits, length = 10 * digits + digit, length + 1
        if (below or above) and (not first or -3 <= place < 7):
            break
        first = False
    if above and (not below or (2 * rest, digits % 2) > (10 * unit, 0)):
        digits += 1
    written = str(digits)
    return written.rstrip("0"), place + len(written) - length


def whole_digits(numbers: Numbers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The digits of whole numbers below 2**63 as integers, and how many zeros follow.

    >>> whole_digits(np.array([2.0**60]))
    (array([115292150460684698]), array([1]))
    """
    precision, _ = _PRECISION[numbers.dtype]
    gaps = np.frexp(numbers)[1].astype(np.int64) - precision
    # No power of two but 1 is one of ten, so that the logarithm is never near an integer.
    zeros = np.floor(np.maximum(gaps - 2, 0) * math.log10(2)).astype(np.int64)
    power = 10**zeros
    return (numbers.astype(np.int64) + power // 2) // power, zeros


def doubtful(numbers: Numbers) -> Bools:
    """Which of these numbers may have other digits than the shortest; whole ones left aside.

    They are: powers of two; the smallest, for the place of their first digit; those whose sums
    may overflow; and those from which a decimal of few digits is exactly half a gap away. Such a
    decimal is d * 10**e = (2n ± 1) * 2**(gap - 1), so that 5**e divides 2n ± 1, where n is even and
    e at least the number's own exponent less the most digits that a number needs.
    """
    dtype = numbers.dtype
    precision, _ = _PRECISION[dtype]
    mantissas, exponents = np.frexp(numbers)
    counts = np.ldexp(mantissas, precision).astype(np.int64)
    most = 17 if precision == 53 else 9
    with np.errstate(divide="ignore"):
        places = np.floor(np.log10(numbers.astype(np.float64)) - 1e-9) + 1 - most
    fives = 5 ** np.clip(places, 0, 24).astype(np.int64)
    halfway = ((2 * counts + 1) % fives == 0) | ((2 * counts - 1) % fives == 0)
    smallest = numbers < np.finfo(dtype).smallest_subnormal * dtype.type(1000)
    overflowing = (exponents > 82) & (exponents <= 86)
    return np.asarray(
        (mantissas == 0.5)
        | smallest
        | overflowing
        | ((numbers >= WHOLE) & (counts % 2 == 0) & halfway),
        np.bool_,
    )
