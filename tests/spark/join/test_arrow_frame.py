"""Values within arrays and structs on their way through PySpark's conversion of pandas frames."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql.conversion import PandasToArrowConversion

from plait.spark.join.arrow_frame import arrow_frame
from plait.spark.join.instants import with_micros
from plait.spark.join.schemas import spark_schema

NANOS = pa.array([43_200_123_456_789]).cast(pa.time64("ns"))


@pytest.mark.parametrize(
    "column",
    [
        # Regression: NaN came out as null, and each of the others ended the query.
        pa.array([None, [1, None]], pa.list_(pa.int64())),
        pa.array([[float("nan"), None, -0.0]], pa.list_(pa.float64())),
        pa.ListArray.from_arrays([0, 1], NANOS),
        pa.array([[dt.timedelta(days=-1)], None], pa.list_(pa.duration("us"))),
        pa.array([[None], None], pa.list_(pa.null())),
        pa.array([{"x": None}, None, {"x": [2.5]}], pa.struct([("x", pa.list_(pa.float64()))])),
    ],
    ids=lambda column: str(column.type),
)
def test_values_within_others_are_not_touched(column: pa.Array) -> None:
    batch = pa.record_batch({"x": column})
    schema = spark_schema(batch.schema)
    passed = PandasToArrowConversion.convert(arrow_frame(batch), schema, timezone="UTC")
    assert str(passed.column(0).cast(column.type)) == str(column)


def test_a_null_struct_with_a_struct_that_is_never_null() -> None:
    """Regression: Arrow refused to make a pandas frame of it, which ended the query."""
    inner = pa.struct([pa.field("n", pa.int64(), nullable=False)])
    outer = pa.struct([pa.field("in", inner, nullable=False)])
    column = pa.array([{"in": {"n": 1}}, None], outer).cast(with_micros(outer))
    assert arrow_frame(pa.record_batch({"x": column}))["x"].isna().to_list() == [False, True]
