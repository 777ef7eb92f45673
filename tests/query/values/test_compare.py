"""Comparisons between values of different types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from plait.query.values.compare import compare, extreme, member
from plait.query.values.forms import Unfit

NAN = float("nan")
FAR = 2**40


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (pa.scalar(1, pa.int8()), pa.scalar(2**40)),
        (pa.scalar(2**63 - 1), pa.scalar(2**63, pa.uint64())),
        (pa.scalar(2**53), pa.scalar(Decimal(2**53 + 1))),
        (pa.scalar(1), pa.scalar(1.5)),
        (pa.scalar(1.0, pa.float16()), pa.scalar(1.5, pa.float16())),
        (pa.scalar(Decimal("0.7")), pa.scalar(0.8)),
        (pa.scalar(Decimal("1.50")), pa.scalar(Decimal("1.501"))),
        (pa.scalar(1e308), pa.scalar(NAN)),
        (pa.scalar(float("inf")), pa.scalar(NAN)),
        (pa.scalar("a"), pa.scalar("b", pa.large_string())),
        (pa.scalar(b"a"), pa.scalar(b"b", pa.large_binary())),
        (pa.scalar(False), pa.scalar(True)),
        (pa.scalar(1, pa.timestamp("us")), pa.scalar(1001, pa.timestamp("ns"))),
        (pa.scalar(1, pa.timestamp("ns")), pa.scalar(FAR, pa.timestamp("s"))),
        (pa.scalar(-FAR, pa.timestamp("s")), pa.scalar(1, pa.timestamp("ns"))),
        (pa.scalar(1, pa.timestamp("us", "UTC")), pa.scalar(2, pa.timestamp("us", "Asia/Tokyo"))),
        (pa.scalar(dt.date(1970, 1, 1)), pa.scalar(1, pa.timestamp("ns"))),
        (pa.scalar(1, pa.timestamp("ns")), pa.scalar(dt.date(9000, 1, 1))),
        (pa.scalar(0, pa.date32()), pa.scalar(86_400_000, pa.date64())),
        (pa.scalar(1, pa.duration("ms")), pa.scalar(1001, pa.duration("us"))),
        (pa.scalar(1, pa.time32("s")), pa.scalar(1_000_001, pa.time64("us"))),
    ],
)
def test_the_smaller_is_smaller(a: Any, b: Any) -> None:
    holds = {"eq": False, "ne": True, "lt": True, "le": True, "gt": False, "ge": False}
    for op, expected in (*holds.items(), ("nseq", False)):
        assert compare(op, pa.repeat(a, 1), b).to_pylist() == [expected], op
        assert compare(op, a, pa.repeat(b, 1)).to_pylist() == [expected], op
    for value in (a, b):
        assert compare("eq", pa.repeat(value, 1), value).to_pylist() == [True]
        assert compare("ge", pa.repeat(value, 1), value).to_pylist() == [True]
        assert compare("lt", pa.repeat(value, 1), value).to_pylist() == [False]


def test_signed_zeros_are_equal() -> None:
    assert compare("eq", pa.array([0.0]), pa.array([-0.0])).to_pylist() == [True]
    assert compare("lt", pa.array([-0.0, NAN]), pa.array([0.0, 1.0])).to_pylist() == [False, False]


def test_a_decimal_literal_equals_the_double_it_writes() -> None:
    assert compare("eq", pa.array([0.7, 0.1]), pa.scalar(Decimal("0.7"))).to_pylist() == [
        True,
        False,
    ]


def test_null_is_unknown_except_to_nseq() -> None:
    assert compare("eq", pa.array([1, None]), pa.scalar(None)).to_pylist() == [None, None]
    assert compare("nseq", pa.array([1, None]), pa.scalar(None)).to_pylist() == [False, True]
    assert compare("lt", pa.nulls(1), pa.nulls(1)).to_pylist() == [None]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (pa.string(), pa.int64()),
        (pa.string(), pa.timestamp("us")),
        (pa.bool_(), pa.int64()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.date32(), pa.timestamp("us", "UTC")),
        (pa.binary(), pa.string()),
        (pa.duration("us"), pa.int64()),
        (pa.decimal256(70, 0), pa.decimal128(38, 30)),
    ],
)
def test_what_cannot_be_compared(a: pa.DataType, b: pa.DataType) -> None:
    with pytest.raises(Unfit):
        compare("eq", pa.nulls(0, a), pa.nulls(0, b))


def test_membership_of_narrow_and_large_types() -> None:
    small = pa.array([1, 2, None], pa.int16())
    assert member(small, [pa.scalar(1), pa.scalar(70_000)]).to_pylist() == [True, False, None]
    large = pa.array(["a", "b"], pa.large_string())
    assert member(large, [pa.scalar("a")]).to_pylist() == [True, False]
    assert member(pa.array([NAN, -0.0]), [pa.scalar(NAN), pa.scalar(0.0)]).to_pylist() == [
        True,
        True,
    ]
    assert member(pa.array([1]), [pa.array([1]), pa.scalar(None)]).to_pylist() == [True]
    assert member(pa.array([1]), [pa.scalar(None)]).to_pylist() == [None]


def test_extremes_skip_nulls_and_know_nan() -> None:
    values = [pa.array([1.0, None, None]), pa.array([NAN, 2.0, None]), pa.scalar(1.5)]
    assert repr(extreme("greatest", values).to_pylist()) == "[nan, 2.0, 1.5]"
    assert extreme("least", values).to_pylist() == [1.0, 1.5, 1.5]
    assert extreme("least", [pa.array(["b"]), pa.array(["a"])]).to_pylist() == ["a"]
