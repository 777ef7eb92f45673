"""Results that wait: per track, in the order of their latest time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from plait.engine.held import Held
from plait.engine.intake.ingest import Arrivals
from plait.engine.mark import Mark
from plait.engine.windows import Windows
from plait.query.query import Query
from plait.testing.examples import clique
from plait.tuning import Tuning


def filled(query: Query, times: list[list[int]]) -> Windows:
    by_key = {s: [(0,)] for s in range(len(times))}
    windows = Windows(query, by_key, tuning=Tuning(portion_rows=2))
    store(windows, times)
    return windows


def store(windows: Windows, times: list[list[int]]) -> None:
    for base, own in zip(windows.bases, times, strict=True):
        n = len(own)
        base.append(Arrivals(np.array(own, np.int64), {0: np.zeros(n, np.int64)}, {}), 0, n)


def test_results_come_by_their_latest_time_and_track_by_track() -> None:
    """A pair is old if its first row is one of the first two, which were there at the mark."""
    windows = filled(clique(2), [[0, 5], []])
    mark = Mark(windows.bases)
    store(windows, [[9, 10], [1, 3, 20]])
    held = Held(windows, mark)
    for pairs in ([(1, 0), (2, 0)], [(0, 2), (3, 2)], [(2, 1)], [(0, 0)]):
        held.add({s: np.array(rows, np.int32) for s, rows in enumerate(zip(*pairs, strict=True))})
    assert held.nbytes > 0
    for base in windows.bases:
        base.window.drop(len(base))
    assert times(held.close_batch()) == [(0, 1), (5, 1), (0, 20)]
    assert times(held.close_batch()) == [] and held.nbytes > 0
    assert times(held.finish()) == [(9, 1), (9, 3), (10, 20)]
    assert held.nbytes == 0 and not list(held.finish())


def times(found: Iterable[pa.RecordBatch]) -> list[tuple[int, ...]]:
    rows = []
    for batch in found:
        assert len(batch) <= 2, "in portions"
        columns = [batch[name].cast(pa.int64()).to_pylist() for name in ("a_ts", "b_ts")]
        rows += list(zip(*columns, strict=True))
    return rows
