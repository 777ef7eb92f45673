"""Pictures of long histories keep sums and peaks."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from plait.dashboard.reading.series import Series
from plait.node.reports.history import HistoryEntry


@pytest.mark.parametrize("most", [1, 2, 7, 100])
def test_buckets_keep_sums_peaks_and_ends(most: int) -> None:
    chance = Random(most)
    lines = [
        HistoryEntry(n, n, at=n + 1.0, took=chance.random(), rows={"a": chance.randrange(9)},
             watermarks={"a": n * 1_000_000 - chance.randrange(5_000_000)}, state_bytes=n)
        for n in range(57)
    ]  # fmt: skip
    series = Series().with_lines(lines[:20]).with_lines(lines[20:])
    few = series.bucketed(most)
    assert len(few) <= most
    for name in ("rows", "took", "batches"):
        assert few[name].sum() == pytest.approx(series[name].sum())
    for name in ("slowest", "lag", "state"):
        assert few[name].max() == series[name].max()
    assert (few["first"][0], few["last"][-1]) == (0, 56)
    assert (few["first"][1:] == few["last"][:-1] + 1).all()


def test_what_is_not_known_is_not_zero() -> None:
    series = Series().with_lines(
        [HistoryEntry(0, 0), HistoryEntry(1, 1, at=9.0, watermarks={"a": 2_000_000})]
    )
    assert np.isnan(series["lag"][0]) and series["lag"][1] == 7.0
    assert np.isnan(series["at"][0]) and series.bucketed(1)["lag"][0] == 7.0


def test_the_last_batches() -> None:
    series = Series().with_lines(
        [HistoryEntry(0, 9, batches=10), HistoryEntry(10, 10), HistoryEntry(11, 11)]
    )
    assert series.last(2)["last"].tolist() == [10, 11] and len(series.last(None)) == 3
    assert len(Series().last(3)) == 0
