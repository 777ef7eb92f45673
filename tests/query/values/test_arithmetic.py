"""Arithmetic of integers, doubles and times at their edges."""

from __future__ import annotations

import datetime as dt
import math
import operator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.query.values.arithmetic import absolute, arithmetic, negate, round_half_up, whole
from plait.query.values.forms import Unfit

MOST, LEAST = 2**63 - 1, -(2**63)
EDGES = st.sampled_from([0, 1, -1, 2, 2**31, 2**32 + 1, 3037000500, MOST, LEAST, LEAST + 1, None])


def bits64(number: int) -> int | None:
    return number if LEAST <= number <= MOST else None


@given(st.lists(st.tuples(EDGES, EDGES), min_size=1, max_size=5))
def test_integers_overflow_to_null_row_by_row(pairs: list[tuple[int | None, int | None]]) -> None:
    left = pa.array([a for a, _ in pairs], pa.int64())
    right = pa.array([b for _, b in pairs], pa.int64())
    for op in ("add", "sub", "mul"):
        exactly = getattr(operator, op)
        expected = [None if None in (a, b) else bits64(exactly(a, b)) for a, b in pairs]
        assert arithmetic(op, left, right).to_pylist() == expected


def remainder(number: int | None, divisor: int | None) -> int | None:
    """With the sign of the number."""
    if number is None or not divisor:
        return None
    rest = abs(number) % abs(divisor)
    return -rest if number < 0 else rest


@given(st.lists(EDGES, min_size=1, max_size=5), EDGES)
def test_remainders_by_a_constant_and_by_a_column(
    numbers: list[int | None], divisor: int | None
) -> None:
    constant = pa.scalar(divisor, pa.int64())
    for right in (constant, pa.repeat(constant, len(numbers))):
        found = arithmetic("mod", pa.array(numbers, pa.int64()), right)
        assert found.to_pylist() == [remainder(number, divisor) for number in numbers]


def test_narrow_integers_are_computed_in_64_bits() -> None:
    result = arithmetic("mul", pa.array([127], pa.int8()), pa.array([127], pa.int8()))
    assert result.type == pa.int64()
    assert result.to_pylist() == [16129]
    big = pa.array([2**63, 5], pa.uint64())
    assert arithmetic("add", big, pa.scalar(1)).to_pylist() == [None, 6]


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("mod", 7, 3, 1),
        ("mod", -7, 3, -1),
        ("mod", 7, -3, 1),
        ("mod", LEAST, -1, 0),
        ("mod", 7, 0, None),
        ("mod", -7.5, 2.0, -1.5),
        ("mod", 1.0, 0.0, None),
        ("mod", math.inf, 2.0, math.nan),
        ("div", 7, 2, 3.5),
        ("div", 1, 0, None),
        ("div", 1.0, -0.0, None),
        ("div", 1.0, math.inf, 0.0),
        ("add", 1, 0.5, 1.5),
        ("add", Decimal("0.1"), 0.2, 0.1 + 0.2),
        ("mul", 1e308, 10, math.inf),
        ("add", None, 1, None),
        ("div", None, None, None),
    ],
)
def test_numbers(op: str, a: Any, b: Any, expected: Any) -> None:
    for left, right in (
        (pa.array([a]), pa.array([b])),
        (pa.array([a]), pa.scalar(b)),
        (pa.scalar(a), pa.array([b])),
    ):
        assert repr(arithmetic(op, left, right).to_pylist()) == repr([expected])


SECOND = dt.timedelta(seconds=1)
NOON = dt.datetime(2024, 1, 1, 12)


@pytest.mark.parametrize(
    ("op", "a", "b", "type_", "expected"),
    [
        ("sub", pa.scalar(NOON), pa.scalar(NOON - SECOND), pa.duration("us"), SECOND),
        ("add", pa.scalar(NOON), pa.scalar(SECOND), pa.timestamp("us"), NOON + SECOND),
        ("add", pa.scalar(SECOND), pa.scalar(NOON), pa.timestamp("us"), NOON + SECOND),
        ("sub", pa.scalar(NOON), pa.scalar(SECOND), pa.timestamp("us"), NOON - SECOND),
        ("add", pa.scalar(SECOND), pa.scalar(SECOND), pa.duration("us"), 2 * SECOND),
        ("mul", pa.scalar(SECOND), pa.scalar(3), pa.duration("us"), 3 * SECOND),
        ("mul", pa.scalar(3), pa.scalar(SECOND), pa.duration("us"), 3 * SECOND),
        ("sub", pa.scalar(dt.date(2024, 1, 2)), pa.scalar(dt.date(2024, 1, 1)), pa.duration("us"),
         dt.timedelta(days=1)),
        ("add", pa.scalar(dt.date(2024, 1, 1)), pa.scalar(SECOND), pa.timestamp("us"),
         dt.datetime(2024, 1, 1) + SECOND),
        ("sub", pa.scalar(NOON), pa.scalar(None), pa.timestamp("us"), None),
        ("add", pa.scalar(MOST, pa.timestamp("us")), pa.scalar(SECOND), pa.timestamp("us"), None),
        ("add", pa.scalar(2**60, pa.timestamp("s")), pa.scalar(SECOND), pa.timestamp("us"), None),
    ],
)  # fmt: skip
def test_times(op: str, a: Any, b: Any, type_: pa.DataType, expected: Any) -> None:
    result = arithmetic(op, pa.repeat(a, 1), b)
    assert result.type == type_
    assert result.to_pylist() == [expected]


def test_a_difference_of_nanoseconds_is_that_of_their_microseconds() -> None:
    left, right = pa.array([1000], pa.timestamp("ns")), pa.array([999], pa.timestamp("ns"))
    assert arithmetic("sub", left, right).cast(pa.int64()).to_pylist() == [1]
    exact = arithmetic("add", right, pa.scalar(SECOND))
    assert exact.type == pa.timestamp("ns")
    assert exact.cast(pa.int64()).to_pylist() == [1_000_000_999]


@pytest.mark.parametrize(
    ("op", "a", "b"),
    [
        ("add", pa.timestamp("us"), pa.timestamp("us")),
        ("sub", pa.duration("us"), pa.timestamp("us")),
        ("mul", pa.duration("us"), pa.float64()),
        ("add", pa.date32(), pa.int64()),
        ("sub", pa.timestamp("us"), pa.timestamp("us", "UTC")),
        ("add", pa.bool_(), pa.int64()),
        ("add", pa.string(), pa.string()),
    ],
)
def test_what_has_no_arithmetic(op: str, a: pa.DataType, b: pa.DataType) -> None:
    with pytest.raises(Unfit):
        arithmetic(op, pa.nulls(0, a), pa.nulls(0, b))


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (2.5, 0, 3.0), (-2.5, 0, -3.0), (0.5, 0, 1.0), (2.675, 2, 2.68), (1.005, 2, 1.01),
        (1e300, 3, 1e300), (123.456, -1, 120.0), (125.0, -1, 130.0), (5e-324, 400, 5e-324),
        (math.inf, 1, math.inf), (15, -1, 20), (-15, -1, -20), (14, -1, 10), (7, 3, 7),
        (MOST, -1, None), (MOST, -19, None), (4 * 10**18, -19, 0),
        (6 * 10**18, -19, None), (Decimal("1.25"), 1, Decimal("1.3")), (None, 1, None),
        (Decimal("-15.5"), -1, Decimal("-20")),
    ],
)  # fmt: skip
def test_rounding_half_up(value: Any, digits: int, expected: Any) -> None:
    result = round_half_up(pa.array([value, None]), pa.scalar(digits))
    assert result.to_pylist() == [expected, None]
    assert round_half_up(pa.scalar(value), pa.scalar(digits)).as_py() == expected


def test_signs() -> None:
    edges = pa.array([5, -5, LEAST, None])
    assert negate(edges).to_pylist() == [-5, 5, None, None]
    assert absolute(edges).to_pylist() == [5, 5, None, None]
    lengths = pa.array([-1, 2], pa.duration("us"))
    assert absolute(lengths).cast(pa.int64()).to_pylist() == [1, 2]
    assert negate(lengths).cast(pa.int64()).to_pylist() == [1, -2]
    exact = pa.array([Decimal("-1.5")])
    assert absolute(exact).to_pylist() == [Decimal("1.5")]
    assert absolute(exact).type == exact.type


def test_floor_and_ceil_of_what_has_no_integer() -> None:
    odd = pa.array([math.nan, math.inf, 1e19, -1.5])
    assert whole("floor", odd).to_pylist() == [None, None, None, -2]
    assert whole("ceil", odd).to_pylist() == [None, None, None, -1]
    assert whole("ceil", pa.array([3], pa.int8())).type == pa.int64()
