"""Rows with their clock, in file order and in event-time order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.ingest import BEFORE_ALL_TIMES
from plait.runtime.order import Timed, horizon_of, in_event_time_order, in_file_order
from plait.runtime.sources.memory import BatchesSource, TableSource

ROWS = st.lists(st.lists(st.none() | st.integers(-5, 40), max_size=6), max_size=12)


def source(pieces: list[list[int | None]]) -> TableSource:
    """A table whose chunks are the pieces."""
    total = 0
    batches = []
    for piece in pieces:
        stamps = pa.array(piece, pa.timestamp("us"))
        numbers = pa.array(range(total, total + len(piece)), pa.int64())
        batches.append(pa.RecordBatch.from_arrays([stamps, numbers], names=["ts", "n"]))
        total += len(piece)
    schema = pa.schema([("ts", pa.timestamp("us")), ("n", pa.int64())])
    return TableSource(pa.Table.from_batches(batches, schema))


def together(parts: list[Timed]) -> tuple[list[int], list[int]]:
    clock = [int(c) for part in parts for c in part.clock]
    return clock, [n for part in parts for n in part.rows.column("n").to_pylist()]


@given(ROWS)
def test_event_time_order_is_a_stable_sort(pieces: list[list[int | None]]) -> None:
    rows = source(pieces)
    parts = list(in_event_time_order(rows, ["ts", "n"], "ts", horizon_of(rows, "ts")))
    clock, numbers = together(parts)
    times = [BEFORE_ALL_TIMES if t is None else t for piece in pieces for t in piece]
    dated = [n for n in numbers if times[n] > BEFORE_ALL_TIMES]
    assert sorted(numbers) == list(range(len(times)))
    assert dated == sorted(dated, key=lambda n: (times[n], n))
    clocks = dict(zip(numbers, clock, strict=True))
    assert [clocks[n] for n in dated] == [times[n] for n in dated]
    assert clock == sorted(clock), "also of the rows without an event time"


@given(ROWS)
def test_file_order_keeps_the_rows_and_never_goes_back(pieces: list[list[int | None]]) -> None:
    clock, numbers = together(list(in_file_order(source(pieces), ["ts", "n"], "ts")))
    times = [BEFORE_ALL_TIMES if t is None else t for piece in pieces for t in piece]
    assert numbers == list(range(len(times)))
    assert clock == (np.maximum.accumulate(times).tolist() if times else [])


def test_a_sorted_source_is_not_held_back() -> None:
    rows = source([[1, 2, 3], [3, 4], [5, 6, 7]])
    parts = list(in_event_time_order(rows, ["ts", "n"], "ts", horizon_of(rows, "ts")))
    assert [len(part.clock) for part in parts] == [3, 2, 3]
    assert [part.position for part in parts] == [3, 5, 8]


def test_a_shuffled_source_is_sorted_at_the_end() -> None:
    rows = source([[9, 8], [7, 6], [5, 4], [1, 0]])
    parts = list(in_event_time_order(rows, ["ts", "n"], "ts", horizon_of(rows, "ts")))
    assert [len(part.clock) for part in parts] == [8]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_clocks_are_microseconds(unit: str) -> None:
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    stamps = pa.array([3 * ticks, 1 * ticks], pa.timestamp(unit))
    batch = pa.RecordBatch.from_arrays([stamps], names=["ts"])
    (part,) = in_file_order(BatchesSource([batch], batch.schema), ["ts"], "ts")
    assert part.clock.tolist() == [3_000_000, 3_000_000]
