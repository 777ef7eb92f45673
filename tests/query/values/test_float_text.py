"""Floating-point numbers as text: Java's rules, against their definition."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plait.query.values.float_text import float_text
from plait.testing.oracle.scalar_cast import casted

TEXTS = {
    pa.float32(): {
        0.1: "0.1", 0.3: "0.3", 3.4028235e38: "3.4028235E38", 1.17549435e-38: "1.1754944E-38",
        1e-45: "1.4E-45", 3e-45: "2.8E-45", 4e-45: "4.2E-45", 7e-45: "7.0E-45", 1e-44: "9.8E-45",
        16777216.0: "1.6777216E7", 9999999.0: "9999999.0", 1e7: "1.0E7", 1.2e7: "1.2E7",
        0.001: "0.001", 0.00099999: "9.9999E-4", 3.3e-4: "3.3E-4", 123456.7: "123456.7",
        1e10: "1.0E10", -1e-10: "-1.0E-10", 2.0**-44: "5.684342E-14", 8.41e21: "8.41E21",
    },
    pa.float64(): {
        0.1: "0.1", 1.0: "1.0", 100.0: "100.0", 5e-324: "4.9E-324", 1e-323: "9.9E-324",
        1.5e-323: "1.5E-323", 2e-323: "2.0E-323",
        2.2250738585072014e-308: "2.2250738585072014E-308",
        1.7976931348623157e308: "1.7976931348623157E308", 1e23: "1.0E23", 2e23: "2.0E23",
        9999999.999999998: "9999999.999999998", 1e7: "1.0E7", 12345678.9: "1.23456789E7",
        0.001: "0.001", 0.0009999999999999998: "9.999999999999998E-4", 1e15: "1.0E15",
        123456789012345680.0: "1.2345678901234568E17", 9007199254740993.0: "9.007199254740992E15",
    },
}  # fmt: skip


@pytest.mark.parametrize("type_", TEXTS, ids=str)
def test_awkward_numbers(type_: pa.DataType) -> None:
    numbers = pa.array(TEXTS[type_], type_)
    negative = pa.array([-number for number in TEXTS[type_]], type_)
    expected = list(TEXTS[type_].values())
    assert float_text(numbers).to_pylist() == expected
    assert float_text(negative).to_pylist() == [f"-{t}".replace("--", "") for t in expected]
    special = pa.array([math.nan, math.inf, -math.inf, 0.0, -0.0, None, 1.0], type_)
    words = ["NaN", "Infinity", "-Infinity", "0.0", "-0.0", None, "1.0"]
    assert float_text(special).to_pylist() == words
    assert float_text(special.slice(3, 3)).to_pylist() == words[3:6]
    assert float_text(special.slice(0, 0)).to_pylist() == []


def test_half_floats_are_written_like_floats() -> None:
    halves = pa.array(np.array([0.1, 65504.0, 6e-8], np.float16))
    assert float_text(halves).to_pylist() == ["0.099975586", "65504.0", "5.9604645E-8"]


@given(st.lists(st.none() | st.floats(), max_size=9))
def test_oracle_doubles(numbers: list[float | None]) -> None:
    expected = [None if n is None else casted(n, pa.float64(), pa.string()) for n in numbers]
    assert float_text(pa.array(numbers, pa.float64())).to_pylist() == expected


@given(st.lists(st.none() | st.floats(width=32), max_size=9))
def test_oracle_floats(numbers: list[float | None]) -> None:
    expected = [None if n is None else casted(n, pa.float32(), pa.string()) for n in numbers]
    assert float_text(pa.array(numbers, pa.float32())).to_pylist() == expected


@given(st.integers(0, 2**64 - 1))
@example(1)
def test_oracle_every_pattern_of_bits(bits: int) -> None:
    """Also the powers of two, whose neighbours are not equally far, and subnormal numbers."""
    patterns = [bits, bits & 0x7FF0_0000_0000_0000, bits >> 52, bits % 4096]
    doubles = [struct.unpack("d", struct.pack("Q", b))[0] for b in patterns]
    singles = [struct.unpack("f", struct.pack("I", b % 2**32))[0] for b in patterns]
    powers = [struct.unpack("f", struct.pack("I", b % 2**9 << 23))[0] for b in patterns]
    for type_, numbers in ((pa.float64(), doubles), (pa.float32(), singles + powers)):
        expected = [casted(number, type_, pa.string()) for number in numbers]
        assert float_text(pa.array(numbers, type_)).to_pylist() == expected
