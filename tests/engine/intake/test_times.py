"""Event times in microseconds, and those that cannot be counted with."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.intake.times import BEFORE_ALL_TIMES, MOST_DISTANT_TIME, event_times, with_times

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
UNITS = st.sampled_from(sorted(NANOSECONDS))
RAW = st.integers(-(2**63), 2**63 - 1)
NEAR_THE_LIMIT = st.sampled_from(
    [sign * (MOST_DISTANT_TIME // n + d) for n in (1, 10**3, 10**6) for d in (-1, 0, 1)
     for sign in (-1, 1)]
)  # fmt: skip


def rows_of(times: list[int | None], unit: str) -> pa.RecordBatch:
    array = pa.array(times, pa.int64()).cast(pa.timestamp(unit))
    return pa.record_batch({"ts": array, "n": pa.array(range(len(times)), pa.int64())})


def usable(time: int | None, unit: str) -> bool:
    """By the definition, in whole nanoseconds; those that nanoseconds can say are all near."""
    if time is None or (unit == "ns" and time == -(2**63)):
        return False
    return abs(time) * NANOSECONDS[unit] <= MOST_DISTANT_TIME * 10**3


@given(st.lists(st.none() | RAW | NEAR_THE_LIMIT, max_size=6), UNITS, st.integers(0, 2))
def test_oracle_rows_are_told_apart_by_their_time(
    times: list[int | None], unit: str, skipped: int
) -> None:
    rows = rows_of(times, unit).slice(skipped)
    numbers = range(skipped, len(times))
    good, bad = with_times(rows, "ts")
    assert good.column("n").to_pylist() == [n for n in numbers if usable(times[n], unit)]
    wrong = [n for n in numbers if not usable(times[n], unit)]
    assert (None if bad is None else bad.column("n").to_pylist()) == (wrong or None)


@given(st.lists(RAW | NEAR_THE_LIMIT, min_size=1, max_size=6), UNITS, st.integers(0, 2))
def test_oracle_usable_times_are_whole_microseconds_rounded_down(
    times: list[int], unit: str, skipped: int
) -> None:
    good = [t for t in times if usable(t, unit)]
    array = rows_of([*good], unit).slice(skipped).column("ts")
    assert event_times(array).tolist() == [t * NANOSECONDS[unit] // 10**3 for t in good[skipped:]]


@pytest.mark.parametrize("unit", sorted(NANOSECONDS))
def test_sums_with_usable_times_do_not_overflow(unit: str) -> None:
    """A bound may be as long as the time between the two most distant rows."""
    times = [t for t in (2**62, -(2**62), MOST_DISTANT_TIME) if usable(t, unit)]
    for time in event_times(rows_of([*times], unit).column("ts")).tolist():
        assert abs(time) + 2 * MOST_DISTANT_TIME < 2**63
        assert time > BEFORE_ALL_TIMES + MOST_DISTANT_TIME


def test_rows_that_are_all_usable_are_not_copied() -> None:
    rows = rows_of([1, 2, 3], "us")
    good, bad = with_times(rows, "ts")
    assert good is rows and bad is None
