"""Values of every type as JSON."""

from __future__ import annotations

import datetime as dt
import decimal
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.local.json_lines import json_lines


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None], pa.int8()), [1, None]),
        (pa.array([True, None]), [True, None]),
        (pa.array([0.1, None]), [0.1, None]),
        (pa.array([1e300, float("nan"), float("inf"), -float("inf")]),
         [1e300, "NaN", "Infinity", "-Infinity"]),
        (pa.array([decimal.Decimal("1.50"), None]), ["1.50", None]),
        (pa.array([0, None], pa.timestamp("ms")), ["1970-01-01T00:00:00.000", None]),
        (pa.array([0], pa.timestamp("us", "UTC")), ["1970-01-01T00:00:00.000000Z"]),
        (pa.array([dt.date(2024, 2, 29), None]), ["2024-02-29", None]),
        (pa.array([b"\xff", None]), ["/w==", None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (pa.array([{"d": dt.date(2024, 1, 1)}, None]), [{"d": "2024-01-01"}, None]),
        (pa.nulls(2), [None, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)  # fmt: skip
def test_values_of_a_type(array: pa.Array, expected: list[object]) -> None:
    lines = json_lines(pa.RecordBatch.from_arrays([array], names=["x"])).decode().splitlines()
    assert [json.loads(line)["x"] for line in lines] == expected


@given(st.lists(st.none() | st.text()), st.text(min_size=1))
def test_any_text_survives(texts: list[str | None], name: str) -> None:
    try:
        rows = pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=[name])
    except UnicodeEncodeError:
        return
    lines = json_lines(rows).decode().split("\n")[:-1]
    assert [json.loads(line) for line in lines] == [{name: text} for text in texts]
