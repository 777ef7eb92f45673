"""Decimals against exact fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.query.values.decimals import (
    as_decimal,
    bounded,
    decimal_arithmetic,
    decimal_round,
    decimal_whole,
)
from plait.query.values.forms import Unfit

TYPES = [pa.decimal128(4, 2), pa.decimal128(38, 0), pa.decimal128(38, 18), pa.decimal128(10, 10)]


def rounded(exact: Fraction | None, type_: pa.DataType) -> Decimal | None:
    """Half away from zero, None if it does not fit."""
    if exact is None:
        return None
    units = math.floor(abs(exact) * 10**type_.scale + Fraction(1, 2))
    if units >= 10**type_.precision:
        return None
    return Decimal((int(exact < 0), tuple(map(int, str(units))), -type_.scale))


def exactly(op: str, a: Fraction, b: Fraction) -> Fraction | None:
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case _ if b == 0:
            return None
        case "div":
            return a / b
    return a - b * int(a / b)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[pa.DataType, list[Decimal | None]]:
    type_ = draw(st.sampled_from(TYPES))
    most = 10**type_.precision - 1
    number = st.one_of(st.integers(-3, 3), st.integers(-most, most), st.just(most))
    values = draw(st.lists(st.one_of(st.none(), number), min_size=3, max_size=3))
    return type_, [
        None if v is None else Decimal((int(v < 0), tuple(map(int, str(abs(v)))), -type_.scale))
        for v in values
    ]


@given(st.sampled_from(["add", "sub", "mul", "div", "mod"]), decimals(), decimals())
def test_arithmetic_is_exact_up_to_the_digits_of_its_type(
    op: str,
    left: tuple[pa.DataType, list[Decimal | None]],
    right: tuple[pa.DataType, list[Decimal | None]],
) -> None:
    result = decimal_arithmetic(op, pa.array(left[1], left[0]), pa.array(right[1], right[0]))
    expected = [
        None
        if a is None or b is None
        else rounded(exactly(op, Fraction(a), Fraction(b)), result.type)
        for a, b in zip(left[1], right[1], strict=True)
    ]
    assert result.to_pylist() == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [("add", (11, 2)), ("sub", (11, 2)), ("mul", (15, 3)), ("div", (18, 8)), ("mod", (5, 2))],
)
def test_the_digits_are_those_of_spark(op: str, expected: tuple[int, int]) -> None:
    left, right = pa.nulls(1, pa.decimal128(10, 2)), pa.nulls(1, pa.decimal128(4, 1))
    type_ = decimal_arithmetic(op, left, right).type
    if op == "div":  # scale = max(6, s1 + p2 + 1) = 7, precision = p1 - s1 + s2 + scale
        expected = (16, 7)
    assert (type_.precision, type_.scale) == expected


def test_too_many_digits_are_bounded_as_in_spark() -> None:
    assert bounded(50, 10) == pa.decimal128(38, 6)
    assert bounded(40, 10) == pa.decimal128(38, 8)
    assert bounded(60, 2) == pa.decimal128(38, 2)
    with pytest.raises(Unfit, match="more than 38 digits"):
        as_decimal(pa.nulls(1, pa.decimal256(50, 2)))


@given(decimals(), st.integers(-5, 20))
def test_rounding(column: tuple[pa.DataType, list[Decimal | None]], digits: int) -> None:
    type_, values = column
    result = decimal_round(pa.array(values, type_), digits)
    for value, found in zip(values, result.to_pylist(), strict=True):
        if value is None:
            assert found is None
            continue
        kept = min(digits, type_.scale)
        units = math.floor(abs(Fraction(value)) * Fraction(10) ** kept + Fraction(1, 2))
        exact = units / Fraction(10) ** kept * (-1 if value < 0 else 1)
        assert found == rounded(exact, result.type)


@given(decimals())
def test_floor_and_ceil(column: tuple[pa.DataType, list[Decimal | None]]) -> None:
    type_, values = column
    for op, function in (("floor", math.floor), ("ceil", math.ceil)):
        result = decimal_whole(op, pa.array(values, type_))
        assert result.type.scale == 0
        assert result.to_pylist() == [None if v is None else function(v) for v in values]
