"""Rows come back from bytes as they went in."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.groups.routing.rows import decode_rows, encode_rows, gathered

INT64 = st.integers(-(2**63), 2**63 - 1)
NEAR = st.builds(lambda least, steps: [least + s for s in steps], st.integers(-(2**62), 2**62),
                 st.lists(st.integers(0, 2**33), max_size=20))  # fmt: skip
COLUMNS = st.one_of(st.lists(st.none() | INT64, max_size=20), NEAR)


@given(COLUMNS, st.sampled_from([pa.int64(), pa.timestamp("us"), pa.timestamp("ns", "UTC")]))
def test_any_column(values: list[int | None], type_: pa.DataType) -> None:
    array = pa.array(values, pa.int64()).view(type_)
    text = pa.array([str(v) for v in values], pa.string())
    rows = pa.record_batch([array, text], ["k", "text"])
    (found,) = decode_rows(encode_rows(rows))
    assert found.equals(rows) and found.schema == rows.schema
    part = rows.slice(len(values) // 2)
    assert decode_rows(encode_rows(part))[0].equals(part)


def test_streams_one_after_the_other() -> None:
    parts = [pa.record_batch({"k": list(range(n, n + 5))}) for n in (0, 10**12, 7)]
    found = decode_rows(b"".join(map(encode_rows, parts)))
    assert [f.equals(p) for f, p in zip(found, parts, strict=True)] == [True] * 3


@pytest.mark.parametrize(("span", "most"), [(200, 2), (60_000, 3), (2**31, 5)])
def test_near_values_take_few_bytes(span: int, most: int) -> None:
    rows = 10_000
    near = pa.record_batch({"k": [10**15 + i * span // rows for i in range(rows)]})
    assert len(encode_rows(near)) < most * rows


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 25))
def test_gathered_batches_are_the_same_rows(sizes: list[int], enough: int) -> None:
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    batches = [
        pa.record_batch({"k": pa.array(range(start, start + n), pa.int64())})
        for start, n in zip(starts, sizes, strict=True)
    ]
    found = list(gathered(iter(batches), enough))
    assert [k for batch in found for k in batch["k"].to_pylist()] == list(range(sum(sizes)))
    assert all(batch.num_rows >= enough for batch in found[:-1])
    assert all(0 < batch.num_rows < enough + 9 for batch in found)


def test_gathering_ends_before_offsets_overflow() -> None:
    batches = [pa.record_batch({"text": ["x" * n]}) for n in (400, 400, 400, 5000, 10)]
    assert [batch.num_rows for batch in gathered(batches, 100, 1000)] == [2, 1, 1, 1]
