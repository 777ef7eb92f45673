"""Cutting a batch: all rows, in slices of event time that are the same for all streams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import Slice, cut, cut_rows


def arrivals(*streams: Sequence[int]) -> dict[int, Arrivals]:
    return {s: Arrivals(np.sort(np.array(t, np.int64)), {}, {}) for s, t in enumerate(streams)}


def check(batch: dict[int, Arrivals], cuts: list[tuple[int, Slice]]) -> None:
    """Every row once, in order of time, and none after a time that was said to be reached."""
    done = dict.fromkeys(batch, 0)
    before = -(2**63)
    for reached, part in cuts:
        assert part, "a slice without rows"
        assert reached >= before
        for s, (start, stop) in part.items():
            assert start == done[s] < stop
            assert (batch[s].times[start:stop] <= reached).all()
            done[s] = stop
        for s, a in batch.items():
            assert (a.times[done[s] :] >= reached).all(), "a row that comes too late"
        before = reached
    assert done == {s: len(a) for s, a in batch.items()}


LEAST = 8192
"""Rows of a slice, at least."""

TIMES = st.lists(st.one_of(st.integers(-20, 20), st.integers(-(2**61), 2**61)), max_size=30)


@given(st.lists(TIMES, min_size=1, max_size=4), st.integers(0, 50), st.integers(1, 7))
def test_every_row_is_in_one_slice_whatever_the_times(
    streams: list[list[int]], step: int, rows_per_slice: int
) -> None:
    batch = arrivals(*streams)
    cuts = cut(batch, step, rows_per_slice)
    check(batch, cuts)
    rows = sum(map(len, streams))
    assert len(cuts) <= max(1, rows // rows_per_slice), "slices too small on average"


def test_no_rows_no_slices() -> None:
    assert cut({}, 10, LEAST) == []
    assert cut(arrivals([], []), 10, LEAST) == []


def test_a_small_batch_stays_whole_however_long_it_lasts() -> None:
    batch = arrivals([0, 10**12], [5])
    assert cut(batch, 1, LEAST) == [(10**12 + 1, {0: (0, 2), 1: (0, 1)})]


def test_a_large_batch_within_one_step_stays_whole() -> None:
    batch = arrivals(range(3 * LEAST), [0])
    (only,) = cut(batch, 4 * LEAST, LEAST)
    assert only == (3 * LEAST, {0: (0, 3 * LEAST), 1: (0, 1)})


def test_a_large_batch_of_many_windows_is_cut_evenly() -> None:
    rows = 10 * LEAST
    batch = arrivals(range(rows), range(0, 2 * rows, 2))
    cuts = cut(batch, 100, LEAST)
    check(batch, cuts)
    assert len(cuts) == 20
    widths = np.diff([0, *(reached for reached, _ in cuts)])
    assert widths.max() - widths.min() <= 1


def test_slices_are_at_least_a_step_long() -> None:
    rows = 40 * LEAST
    batch = arrivals(range(rows))
    cuts = cut(batch, rows // 7, LEAST)
    check(batch, cuts)
    assert len(cuts) == 7
    assert all(stop - start >= rows // 7 for _, part in cuts for start, stop in part.values())


def test_all_rows_at_one_instant() -> None:
    batch = arrivals([7] * (3 * LEAST), [7])
    assert cut(batch, 0, LEAST) == [(8, {0: (0, 3 * LEAST), 1: (0, 1)})]


def test_a_stream_far_ahead_of_the_others() -> None:
    rows = 2 * LEAST
    batch = arrivals(range(rows), [10**15 + i for i in range(rows)])
    cuts = cut(batch, 10, LEAST)
    check(batch, cuts)
    assert [sorted(part) for _, part in cuts] == [[0], [1]]


@given(st.lists(TIMES, min_size=1, max_size=4), st.integers(1, 9))
def test_slices_of_a_number_of_rows(streams: list[list[int]], rows: int) -> None:
    batch = arrivals(*streams)
    cuts = cut_rows(batch, rows)
    check(batch, cuts)
    sizes = [sum(stop - start for start, stop in part.values()) for _, part in cuts]
    total = sum(map(len, streams))
    whole, left = divmod(total, rows)
    assert sizes == [rows] * whole + [left] * (left > 0)
    if total:
        assert cuts[-1][0] == max(t for times in streams for t in times) + 1
