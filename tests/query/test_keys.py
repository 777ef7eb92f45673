"""Which types can be equal to which."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.query.keys import common_type, plain


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([pa.int8(), pa.uint32()], pa.int64()),
        ([pa.int64(), pa.uint64()], pa.decimal128(20, 0)),
        ([pa.int64(), pa.decimal128(10, 4)], pa.decimal128(23, 4)),
        ([pa.decimal128(38, 0), pa.decimal128(38, 10)], None),
        ([pa.float32(), pa.float64()], pa.float64()),
        ([pa.int64(), pa.float64()], None),
        ([pa.string(), pa.dictionary(pa.int32(), pa.string())], pa.large_string()),
        ([pa.string(), pa.string_view(), pa.large_string()], pa.large_string()),
        ([pa.string(), pa.binary()], None),
        ([pa.binary(), pa.binary(4)], pa.large_binary()),
        ([pa.timestamp("s"), pa.timestamp("ns")], pa.timestamp("ns")),
        ([pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo")], pa.timestamp("us", "UTC")),
        ([pa.timestamp("us"), pa.timestamp("us", "UTC")], None),
        ([pa.duration("us"), pa.duration("ns")], pa.duration("ns")),
        ([pa.date32(), pa.date64()], pa.date64()),
        ([pa.date32(), pa.date32()], pa.date32()),
        ([pa.date32(), pa.timestamp("us")], None),
        ([pa.time32("s"), pa.time64("us")], pa.time64("ns")),
        ([pa.bool_(), pa.bool_()], pa.bool_()),
        ([pa.bool_(), pa.int64()], None),
        ([pa.list_(pa.int64()), pa.list_(pa.int64())], None),
    ],
)
def test_common_types(types: list[pa.DataType], expected: pa.DataType | None) -> None:
    assert common_type(types) == expected
    assert common_type(types[::-1]) == expected


def test_encodings_do_not_count() -> None:
    nested = pa.run_end_encoded(pa.int32(), pa.string())
    assert plain(nested) == pa.string()
    assert plain(pa.dictionary(pa.int8(), pa.int64())) == pa.int64()
