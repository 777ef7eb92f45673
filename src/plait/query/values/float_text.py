"""Floating-point numbers as text, as Spark casts them: Java's Double.toString and Float.toString.

The digits are those of the shortest decimal that is read back as the same number *of its type*, and
of several such the nearest: the float 0.1 is "0.1", although as a double it is
0.10000000149011612. That is the rule of Java 19 and later; `older_digits` has that of Java 17 and
18, which prints a digit too many now and then. There are at least two digits, so the smallest
double is "4.9E-324", where one digit, 5E-324, would do. From 0.001 to below 10,000,000 the number
is written plainly, "123.0"; else with one digit before the point and an exponent, "1.0E7",
"1.5E-4". Then there are "NaN", "Infinity", "-Infinity", "0.0" and "-0.0". A half float, which Spark
does not have, is written like a float.

*Cost.* Everything is one pass over columns, but for the few numbers that Java 17 may write
otherwise: `doubtful` finds them without looking at their digits, and they are written one by one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.query.values.older_digits import (
    WHOLE,
    Bools,
    Numbers,
    doubtful,
    older_digits,
    whole_digits,
)

_PARTS = r"^(?P<sign>-?)(?P<whole>\d+)\.?(?P<fraction>\d*)e?(?P<exponent>[+-]?\d*)$"


def float_text(values: pa.Array, *, older: bool = False) -> pa.Array:
    """The texts of floating-point numbers, null where they are null; `older` are Java 17's.

    >>> float_text(pa.array([0.1, 1e10, 1.5e-4, float("inf")], pa.float32())).to_pylist()
    ['0.1', '1.0E10', '1.5E-4', 'Infinity']
    >>> float_text(pa.array([2e23, 0.1]), older=True).to_pylist()
    ['1.9999999999999998E23', '0.1']
    """
    if values.type == pa.float16():
        values = values.cast(pa.float32())
    # Arrow finds the same digits, and writes them plainly at least from 1E-5 to 1E15.
    texts = values.cast(pa.string())
    numbers = np.abs(np.asarray(pc.fill_null(values, 0.0)))
    plainly = (numbers == 0) | ((numbers >= 1e-3) & (numbers < 1e7))
    if plainly.all():
        return _with_point(texts)
    scientific = pa.array(~plainly & np.isfinite(numbers))
    named = pc.if_else(pc.is_nan(values), "NaN", "Infinity")
    named = pc.if_else(pc.less(values, 0), "-Infinity", named)
    finite = pc.if_else(pa.array(plainly), _with_point(texts), named)
    chosen = _with_exponent(texts.filter(scientific), values.filter(scientific), older)
    return pc.replace_with_mask(finite, scientific, chosen)


def _with_point(texts: pa.Array) -> pa.Array:
    whole = pc.invert(pc.match_substring(texts, "."))
    return pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)


def _with_exponent(texts: pa.Array, values: pa.Array, older: bool) -> pa.Array:
    """From Arrow's form to one digit, a point, at least one more, and an exponent."""
    texts = _as_before(texts, values) if older else _with_two_digits(texts, values)
    parts = pc.extract_regex(texts, _PARTS)
    sign, whole, fraction, exponent = (parts.field(i) for i in range(4))
    written = pc.binary_join_element_wise(whole, fraction, "")
    digits = pc.utf8_ltrim(written, "0")
    given = pc.if_else(pc.equal(exponent, ""), "0", pc.utf8_ltrim(exponent, "+"))
    zeros = pc.subtract(pc.utf8_length(written), pc.utf8_length(digits))
    shift = pc.subtract(pc.subtract(pc.utf8_length(whole), 1), zeros)
    power = pc.add(given.cast(pa.int32()), shift).cast(pa.string())
    digits = pc.utf8_rtrim(digits, "0")
    tail = pc.utf8_slice_codeunits(digits, 1)
    tail = pc.if_else(pc.equal(tail, ""), "0", tail)
    head = pc.binary_join_element_wise(sign, pc.utf8_slice_codeunits(digits, 0, 1), "")
    mantissa = pc.binary_join_element_wise(head, tail, ".")
    return pc.binary_join_element_wise(mantissa, power, "E")


def _with_two_digits(texts: pa.Array, values: pa.Array) -> pa.Array:
    """Two digits for the few numbers so near to zero that neighbours differ by some percent."""
    numbers = np.asarray(values)
    tiny = np.abs(numbers) < np.finfo(numbers.dtype).smallest_subnormal * numbers.dtype.type(1000)
    if not tiny.any():
        return texts
    short = np.asarray(pc.less_equal(pc.utf8_length(pc.replace_substring_regex(
        texts, r"-|e.*", "")), 1)) & tiny  # fmt: skip
    two = pa.array([f"{number:.1e}" for number in numbers[short].tolist()], pa.string())
    return pc.replace_with_mask(texts, pa.array(short), two)


def _as_before(texts: pa.Array, values: pa.Array) -> pa.Array:
    """The texts of numbers that are written with an exponent, with the digits of Java 17."""
    signed = np.asarray(values)
    numbers = np.abs(signed)
    whole = (numbers < WHOLE) & (numbers == np.floor(numbers))
    digits, zeros = whole_digits(numbers[whole])
    exact = pc.binary_join_element_wise(
        pa.array(digits).cast(pa.string()), pa.array(zeros).cast(pa.string()), "e"
    )
    texts = _replaced(texts, whole, exact, signed)
    other = doubtful(numbers) & ~whole
    written = [older_digits(number, numbers.dtype) for number in numbers[other].tolist()]
    longer = [f"{digits[0]}.{digits[1:]}e{place}" for digits, place in written]
    return _replaced(texts, other, pa.array(longer, pa.string()), signed)


def _replaced(texts: pa.Array, where: Bools, sizes: pa.Array, signed: Numbers) -> pa.Array:
    """Other texts for some numbers, with their signs."""
    if not where.any():
        return texts
    signs = pc.if_else(pa.array(signed[where] < 0), "-", "")
    return pc.replace_with_mask(
        texts, pa.array(where), pc.binary_join_element_wise(signs, sizes, "")
    )
