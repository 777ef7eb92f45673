"""Floating-point numbers as Java 17 writes them: what it printed, and its rule once more."""

from __future__ import annotations

import csv
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plait.query.values.convert import as_java_17_writes
from plait.query.values.float_text import float_text
from plait.query.values.older_digits import doubtful, older_digits
from plait.testing.oracle.scalar_cast import java_17_decimal, java_17_text

PRINTED = Path(__file__).parent / "java17_texts.csv"
"""Numbers, by their bits, and what Java 17.0.15 printed for them."""
KINDS = {"double": (pa.float64(), ">d"), "float": (pa.float32(), ">f")}


@pytest.mark.parametrize("kind", KINDS)
def test_oracle_what_java_17_printed(kind: str) -> None:
    type_, form = KINDS[kind]
    with PRINTED.open() as file:
        rows = [row for row in csv.DictReader(file) if row["type"] == kind]
    texts = [row["text"] for row in rows]
    numbers = [struct.unpack(form, bytes.fromhex(row["bits"]))[0] for row in rows]
    assert len(numbers) > 200
    assert float_text(pa.array(numbers, type_), older=True).to_pylist() == texts
    assert [java_17_text(number, type_) for number in numbers] == texts
    shortest = float_text(pa.array(numbers, type_)).to_pylist()
    assert sum(a != b for a, b in zip(shortest, texts, strict=True)) > 50


def from_bits(bits: int) -> dict[pa.DataType, list[float]]:
    """Numbers of many sizes, with many and few digits in base two, and beside a power of two."""
    patterns = [bits, bits & ~(2**40 - 1), bits >> 52 << 52, (bits >> 52 << 52) + 1, bits >> 40]
    single = [pattern >> 32 for pattern in patterns] + [bits >> 55 << 23 & 2**32 - 1]
    return {
        pa.float64(): [struct.unpack("d", struct.pack("Q", b))[0] for b in patterns],
        pa.float32(): [struct.unpack("f", struct.pack("I", b))[0] for b in single],
    }


@given(st.integers(0, 2**64 - 1))
@example(0x4530_A784_379D_99DB)
def test_oracle_every_pattern_of_bits(bits: int) -> None:
    for type_, numbers in from_bits(bits).items():
        expected = [java_17_text(number, type_) for number in numbers]
        assert float_text(pa.array(numbers, type_), older=True).to_pylist() == expected


@given(st.integers(1, 10**17), st.integers(-30, 40))
@example(2, 23)
def test_oracle_short_decimals(digits: int, exponent: int) -> None:
    """Also those that are half a gap away from the number, and whole numbers of all sizes."""
    number = float(f"{digits}e{exponent}")
    for type_ in (pa.float64(), pa.float32()):
        value = pa.array([number]).cast(type_, safe=False)
        if np.isfinite(near := value[0].as_py()):
            texts = float_text(value, older=True).to_pylist()
            assert texts == [java_17_text(near, type_)]
    assert as_java_17_writes(number) == java_17_decimal(number)


def test_few_numbers_are_written_one_by_one() -> None:
    """The cost: numbers of daily life never are, of random bits one in two hundred at most."""
    rng = np.random.default_rng(1)
    prices = rng.integers(1, 10**9, 10_000) / rng.choice([1, 10, 100, 1000], 10_000)
    assert not doubtful(prices[(prices < 1e-3) | (prices >= 1e7)]).any()
    anything = np.abs(rng.integers(0, 2**64, 100_000, np.uint64).view(np.float64))
    anything = anything[np.isfinite(anything)]
    assert 0 < doubtful(anything).mean() < 0.005


def test_numbers_that_are_not_doubtful_have_the_shortest_digits() -> None:
    rng = np.random.default_rng(2)
    numbers = np.exp2(rng.uniform(63, 140, 3000))
    for number in numbers[~doubtful(numbers)].tolist():
        digits, place = older_digits(number)
        assert float(f"{digits[0]}.{digits[1:]}e{place}") == number
        assert digits == repr(number).split("e")[0].replace(".", "").rstrip("0")
