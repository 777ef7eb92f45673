"""Rows with their clock, in file order and in event-time order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.local.order import Timed, horizon_of, in_event_time_order, in_file_order
from plait.local.sources.memory import BatchesSource, TableSource

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


INFINITY = 2**63 - 1
FAR = {
    "s": [2**60 // 10**6 + 1, 2**62 // 10**6 + 1, 2**64 // 10**6 + 1],
    "ms": [2**60 // 10**3 + 1, 2**62 // 10**3 + 1, 2**64 // 10**3 + 1],
    "us": [2**60 + 1, 2**62 - 1, 2**62, 2**62 + 1],
    "ns": [],
}
"""Ticks that are too far away; the last of s and ms would be near 1970 if the product wrapped."""


@pytest.mark.parametrize("unit", FAR)
def test_far_times_are_no_times(unit: str) -> None:
    """The clock and the horizon know nothing of them, in either order."""
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    far = [*FAR[unit], *(-t for t in FAR[unit]), -(2**63)]
    if unit != "ns":
        far.append(INFINITY)
    times = [t for i, f in enumerate(far) for t in (f, i * ticks)] + [None, -5 * ticks]
    rows = TableSource(
        pa.table({"ts": pa.array(times, pa.timestamp(unit)), "n": range(len(times))})
    )
    clock, _ = together(list(in_file_order(rows, ["ts", "n"], "ts")))
    seconds = [i for i in range(len(far)) for _ in range(2)]
    assert clock[1:-2] == [s * 10**6 for s in seconds[:-1]]
    assert clock[0] == BEFORE_ALL_TIMES
    assert clock[-2:] == [clock[-3]] * 2
    horizon = horizon_of(rows, "ts")
    assert horizon.after(0) == -5 * 10**6
    (part,) = in_event_time_order(rows, ["ts", "n"], "ts", horizon)
    assert part.undated.tolist() == list(range(len(far) + 1))
    assert part.clock[len(far) + 1 :].tolist() == [s * 10**6 for s in (-5, *range(len(far)))]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_the_most_distant_times_are_times(unit: str) -> None:
    most = 2**60 // {"s": 10**6, "ms": 10**3, "us": 1}[unit]
    rows = TableSource(pa.table({"ts": pa.array([most, -most], pa.timestamp(unit))}))
    (part,) = in_event_time_order(rows, ["ts"], "ts", horizon_of(rows, "ts"))
    assert part.dates == 2
    assert part.clock[1] == -part.clock[0] > 2**60 - 10**6
