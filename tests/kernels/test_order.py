"""Counting sort by time: a permutation, in order but for neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.kernels.order import time_order

TIMES = st.integers(-(2**61), 2**61) | st.integers(-3, 3)


@given(st.lists(TIMES, max_size=200))
def test_all_rows_once_and_in_order_up_to_the_span(times: list[int]) -> None:
    given_ = np.array(times, np.int64)
    order = time_order(given_, 4)
    assert sorted(order.tolist()) == list(range(len(times)))
    if len(times):
        ordered = given_[order]
        span = max(1, (int(given_.max()) - int(given_.min())) // max(1, len(times) // 4)) * 2
        newest = np.maximum.accumulate(ordered)
        assert int((newest - ordered).max()) < span or len(times) < 4


@pytest.mark.parametrize("spread", [1, 1000, 10**12])
def test_rows_in_order_stay_as_they_are(spread: int) -> None:
    times = np.sort(np.random.default_rng(1).integers(0, spread, 5000))
    assert np.array_equal(times[time_order(times, 4)], times)


def test_disorder_is_small() -> None:
    times = np.random.default_rng(2).permutation(100_000)
    ordered = times[time_order(times, 4)]
    assert int((np.maximum.accumulate(ordered) - ordered).max()) < 8
