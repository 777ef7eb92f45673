"""Casts, each as TRY_CAST has it: a value or null, never an error on a row."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.query.values.convert import convert, fitted, has_zone, rescale, to_double
from plait.query.values.forms import Unfit

NAN = math.nan
D = Decimal


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([1, 127, 128, -129, None], pa.int64(), pa.int8(), [1, 127, None, None, None]),
        ([1, 2**63], pa.uint64(), pa.int64(), [1, None]),
        ([-1, 5], pa.int64(), pa.uint8(), [None, 5]),
        ([1.9, -1.9, NAN, math.inf, 1e19, 2.0**63], pa.float64(), pa.int64(),
         [1, -1, None, None, None, None]),
        ([-(2.0**63)], pa.float64(), pa.int64(), [-(2**63)]),
        ([1.5, 300.0], pa.float32(), pa.int8(), [1, None]),
        ([D("1.99"), D("-1.99")], pa.decimal128(5, 2), pa.int32(), [1, -1]),
        ([" 12 ", "+3", "-4", "1.5", "0x1F", "", "a", "9223372036854775808", None], pa.string(),
         pa.int64(), [12, 3, -4, None, None, None, None, None, None]),
        ([True, False, None], pa.bool_(), pa.int64(), [1, 0, None]),
        ([1_999_999, -1], pa.timestamp("us"), pa.int64(), [1, -1]),
        ([1, 2**53 + 1], pa.int64(), pa.float64(), [1.0, 2.0**53]),
        (["1e3", " 2.5 ", ".5", "5.", "nan", "-Infinity", "inf", "1d", "x", None], pa.string(),
         pa.float64(), [1000.0, 2.5, 0.5, 5.0, NAN, -math.inf, math.inf, None, None, None]),
        ([1e300, 0.1], pa.float64(), pa.float32(), [math.inf, 0.10000000149011612]),
        ([True, None], pa.bool_(), pa.float64(), [1.0, None]),
        ([1_500_000], pa.timestamp("us"), pa.float64(), [1.5]),
        ([5, 1000], pa.int64(), pa.decimal128(4, 1), [D("5.0"), None]),
        ([D("1.25"), D("-1.25"), D("99.95")], pa.decimal128(5, 2), pa.decimal128(3, 1),
         [D("1.3"), D("-1.3"), None]),
        ([0.7, 2.675, NAN, 1e300], pa.float64(), pa.decimal128(5, 2),
         [D("0.70"), D("2.68"), None, None]),
        (["1.005", "1e2", "x", "1e2000"], pa.string(), pa.decimal128(5, 2),
         [D("1.01"), D("100.00"), None, None]),
        ([True], pa.bool_(), pa.decimal128(2, 1), [D("1.0")]),
        ([7, None], pa.int32(), pa.string(), ["7", None]),
        ([1.0, 0.001, 1e7, -1.5e-4, NAN, -0.0], pa.float64(), pa.string(),
         ["1.0", "0.001", "1.0E7", "-1.5E-4", "NaN", "-0.0"]),
        ([0.1, 16777216.0, 1e10, None], pa.float32(), pa.large_string(),
         ["0.1", "1.6777216E7", "1.0E10", None]),
        ([D("0.00000001"), D("12.50")], pa.decimal128(10, 8), pa.string(),
         ["0.00000001", "12.50000000"]),
        ([True, False], pa.bool_(), pa.string(), ["true", "false"]),
        ([b"ab", b"\xff"], pa.binary(), pa.string(), ["ab", None]),
        (["ñ"], pa.string(), pa.binary(), ["ñ".encode()]),
        ([0, 1_500_000, 10, -1], pa.timestamp("us"), pa.string(),
         ["1970-01-01 00:00:00", "1970-01-01 00:00:01.5", "1970-01-01 00:00:00.00001",
          "1969-12-31 23:59:59.999999"]),
        ([0], pa.date32(), pa.string(), ["1970-01-01"]),
        ([" True", "n", "YES", "0", "maybe"], pa.string(), pa.bool_(),
         [True, False, True, False, None]),
        ([0.0, NAN, 2.0], pa.float64(), pa.bool_(), [False, True, True]),
        ([0, 3], pa.int64(), pa.bool_(), [False, True]),
        ([-1], pa.timestamp("us"), pa.date32(), [dt.date(1969, 12, 31)]),
        (["2024-02-29", "2023-02-29", "2024-2-3 10:00", "2024", "x"], pa.string(), pa.date32(),
         [dt.date(2024, 2, 29), None, dt.date(2024, 2, 3), dt.date(2024, 1, 1), None]),
        ([0, 1], pa.date32(), pa.timestamp("us"),
         [dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 2)]),
        ([1, 2**62], pa.int64(), pa.timestamp("us"), [dt.datetime(1970, 1, 1, 0, 0, 1), None]),
        (["2024-01-02 03:04:05.678901", "2024-01-02T03:04", "2024-13-01", "25:00"], pa.string(),
         pa.timestamp("us"),
         [dt.datetime(2024, 1, 2, 3, 4, 5, 678901), dt.datetime(2024, 1, 2, 3, 4), None, None]),
        ([1_000_000], pa.duration("us"), pa.duration("s"), [dt.timedelta(seconds=1)]),
        ([None], pa.null(), pa.decimal128(3, 1), [None]),
        ([3_600_000_000], pa.time64("us"), pa.time32("s"), [dt.time(1)]),
        ([0], pa.date32(), pa.date64(), [dt.date(1970, 1, 1)]),
    ],
)  # fmt: skip
def test_casts(
    values: list[Any], source: pa.DataType, target: pa.DataType, expected: list[Any]
) -> None:
    result = convert(pa.array(values, source), target)
    assert result.type == target
    assert repr(result.to_pylist()) == repr(expected)
    for value, wanted in zip(values, expected, strict=True):
        single = convert(pa.scalar(value, source), target)
        assert repr(single.as_py()) == repr(wanted)


def test_zones_go_by_their_wall_clock() -> None:
    noon = pa.array([dt.datetime(2024, 7, 1, 12)], pa.timestamp("us"))
    paris = convert(noon, pa.timestamp("us", "Europe/Paris"))
    assert paris.cast(pa.int64())[0].as_py() == noon.cast(pa.int64())[0].as_py() - 7_200_000_000
    assert convert(paris, pa.timestamp("us")).equals(noon)
    assert convert(paris, pa.string()).to_pylist() == ["2024-07-01 12:00:00"]
    assert convert(paris, pa.date32()).to_pylist() == [dt.date(2024, 7, 1)]
    assert convert(pa.array(["2024-07-01 12:00:00"]), paris.type).equals(paris)
    utc = pa.timestamp("us", "UTC")
    assert convert(pa.array(["2024-07-01 12:00:00+02:00"]), utc).equals(convert(paris, utc))
    assert convert(pa.array(["2024-07-01 10:00:00Z"]), utc).equals(convert(paris, utc))
    offset = pa.timestamp("us", "+02:00")
    assert convert(pa.array(["2024-07-01 12:00"]), offset).cast(utc).equals(paris.cast(utc))


@pytest.mark.parametrize(
    ("source", "target"),
    [(pa.bool_(), pa.date32()), (pa.float64(), pa.timestamp("us")), (pa.int64(), pa.binary()),
     (pa.date32(), pa.int64()), (pa.duration("us"), pa.string()), (pa.int64(), pa.duration("us")),
     (pa.binary(), pa.bool_()), (pa.timestamp("us"), pa.decimal128(5)),
     (pa.int64(), pa.time64("us")), (pa.int64(), pa.list_(pa.int64()))],
)  # fmt: skip
def test_types_without_a_cast(source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(Unfit, match="nothing of type"):
        convert(pa.nulls(0, source), target)


@given(st.lists(st.one_of(st.none(), st.decimals(-(10**16), 10**16, places=3)), max_size=5))
def test_decimals_become_the_nearest_double(values: list[Decimal | None]) -> None:
    array = pa.array([None, *values], pa.decimal128(20, 3))[1:]
    expected = [None if v is None else float(v) for v in values]
    assert to_double(array).to_pylist() == expected


def test_wide_decimals_become_the_nearest_double() -> None:
    exact = [D("0.12345678901234567890123"), D(2) ** 70]
    array = pa.array(exact, pa.decimal256(60, 30))
    assert to_double(array).to_pylist() == [float(v) for v in exact]


@given(st.floats(allow_nan=False))
def test_a_double_survives_its_text(number: float) -> None:
    numbers = pa.array([number])
    assert convert(convert(numbers, pa.string()), pa.float64()).to_pylist() == [number]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63) + 1, 2**63 - 1)), max_size=4))
def test_rescaling_rounds_down_or_is_null(values: list[int | None]) -> None:
    down = rescale(pa.array(values, pa.timestamp("ns")), pa.timestamp("us")).cast(pa.int64())
    assert down.to_pylist() == [None if v is None else v // 1000 for v in values]
    up = rescale(pa.array(values, pa.duration("s")), pa.duration("ns")).cast(pa.int64())
    fits = [None if v is None or abs(v * 10**9) >= 2**63 else v * 10**9 for v in values]
    assert up.to_pylist() == fits


def test_fitted_and_has_zone() -> None:
    assert fitted(D("NaN"), 5, 2) is None
    assert fitted(D("-0.005"), 5, 2) == D("-0.01")
    assert has_zone("2024-01-01T00:00:00+05:30") and not has_zone("nonsense")
