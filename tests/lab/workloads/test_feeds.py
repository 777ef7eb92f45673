"""Feeds cut tables into batches without losing, repeating or reordering rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import PlaitError
from plait.testing.streams.generate import START, generate
from plait.testing.streams.specs import Payload, StreamSpec
from plait_lab.workloads.feeds import batches


def _table(*times: int | None) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "n": list(range(len(times)))})


@given(
    st.lists(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=8), min_size=1, max_size=3),
    st.one_of(
        st.integers(1, 5).map(lambda n: {"rows": n}),
        st.sampled_from((1e-6, 3e-6)).map(lambda s: {"seconds": s}),
    ),
)
def test_every_row_once_and_in_order(times: list[list[int | None]], size: dict[str, Any]) -> None:
    tables = {str(i): _table(*column) for i, column in enumerate(times)}
    feed = list(batches(tables, **size))
    for name, table in tables.items():
        parts = [batch[name].column("n") for batch in feed]
        assert [n for part in parts for n in part.to_pylist()] == table.column("n").to_pylist()
    if "rows" in size and feed:
        sizes = [sum(t.num_rows for t in batch.values()) for batch in feed]
        assert all(n == size["rows"] for n in sizes[:-1])
        assert 0 < sizes[-1] <= size["rows"]


def test_batches_by_seconds_are_aligned() -> None:
    specs = [StreamSpec(n, payload=(Payload("n", "sequence"),), rate=50) for n in "ab"]
    feed = list(batches(generate(specs, 10, 1), seconds=2))
    assert len(feed) == 5
    first = min(t.column("ts").cast(pa.int64())[0].as_py() for t in feed[0].values())
    assert first >= START
    for number, batch in enumerate(feed):
        for table in batch.values():
            for stamp in table.column("ts").cast(pa.int64()).to_pylist():
                assert (stamp - first) // 2_000_000 == number


def test_columns_may_be_named_for_each_stream() -> None:
    tables = {"a": _table(0, 5), "b": _table(1).rename_columns(["at", "n"])}
    feed = list(batches(tables, seconds=2e-6, time={"a": "ts", "b": "at"}))
    assert [[t.num_rows for t in batch.values()] for batch in feed] == [[1, 1], [0, 0], [1, 0]]


def test_rows_without_times_only() -> None:
    assert [b["a"].num_rows for b in batches({"a": _table(None, None)}, seconds=1)] == [2]


@pytest.mark.parametrize("size", [{}, {"rows": 1, "seconds": 1}, {"rows": 0}, {"seconds": -1}])
def test_sizes_that_make_no_sense(size: dict[str, Any]) -> None:
    with pytest.raises(PlaitError, match="give one of them, above 0"):
        list(batches({"a": _table(0)}, **size))
