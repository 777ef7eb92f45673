"""The types in which values meet."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.query.values.forms import Unfit
from plait.query.values.unify import unify


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([pa.null(), pa.null()], pa.null()),
        ([pa.int8(), pa.int8()], pa.int8()),
        ([pa.int8(), pa.int32()], pa.int64()),
        ([pa.int64(), pa.uint64()], pa.decimal128(20, 0)),
        ([pa.int64(), pa.float32()], pa.float64()),
        ([pa.decimal128(4, 2), pa.float32()], pa.float64()),
        ([pa.decimal128(4, 2), pa.int32()], pa.decimal128(12, 2)),
        ([pa.decimal128(38, 0), pa.decimal128(38, 38)], pa.decimal256(76, 38)),
        ([pa.string(), pa.dictionary(pa.int8(), pa.string())], pa.string()),
        ([pa.string(), pa.large_string(), pa.null()], pa.large_string()),
        ([pa.binary(), pa.large_binary()], pa.large_binary()),
        ([pa.date32(), pa.date64()], pa.date64()),
        ([pa.date32(), pa.timestamp("ms")], pa.timestamp("ms")),
        ([pa.timestamp("s"), pa.timestamp("ns")], pa.timestamp("ns")),
        ([pa.timestamp("s", "UTC"), pa.timestamp("s", "Asia/Tokyo")], pa.timestamp("s", "UTC")),
        ([pa.duration("s"), pa.duration("ms")], pa.duration("ms")),
        ([pa.time32("s"), pa.time64("us")], pa.time64("ns")),
    ],
)
def test_common_types(types: list[pa.DataType], expected: pa.DataType) -> None:
    assert unify(types) == expected
    assert unify(types[::-1]) == expected


@pytest.mark.parametrize(
    ("types", "remedy"),
    [
        ([pa.string(), pa.int64()], "no common type"),
        ([pa.timestamp("s"), pa.timestamp("s", "UTC")], "time zone"),
        ([pa.decimal256(76, 0), pa.decimal128(5, 5)], "enough digits"),
    ],
)
def test_no_common_type(types: list[pa.DataType], remedy: str) -> None:
    with pytest.raises(Unfit, match=remedy):
        unify(types)
