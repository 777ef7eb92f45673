"""Results that wait: per track, in the order of their latest time, as columns of their own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from plait.engine.ingest import Arrivals
from plait.engine.migrate.held import Held
from plait.engine.windows import Windows
from plait.plan.examples import clique
from plait.query.query import Query
from plait.tuning import Tuning


def filled(query: Query, times: list[list[int]]) -> Windows:
    by_key = {s: [(0,)] for s in range(len(times))}
    windows = Windows(query, by_key, tuning=Tuning(portion_rows=2))
    for base, own in zip(windows.bases, times, strict=True):
        n = len(own)
        base.append(Arrivals(np.array(own), {0: np.zeros(n, np.int64)}, {}), 0, n)
    return windows


def test_results_come_by_their_latest_time_and_track_by_track() -> None:
    windows = filled(clique(2), [[0, 5, 9], [1, 3, 20]])
    held = Held(windows)
    pairs = {"old": [(2, 0), (0, 2)], "new": [(1, 0), (0, 1), (0, 0)]}
    for track, rows in pairs.items():
        for row in rows:
            held.add(track, {s: np.array([r], np.int32) for s, r in enumerate(row)})
    assert held.nbytes > 0
    for base in windows.bases:
        base.window.drop(len(base))
    new = pa.Table.from_batches(list(held.release("new")))
    assert new["a_ts"].cast(pa.int64()).to_pylist() == [0, 0, 5]
    assert new["b_ts"].cast(pa.int64()).to_pylist() == [1, 3, 1]
    old = pa.Table.from_batches(list(held.release("old")))
    assert old["a_ts"].cast(pa.int64()).to_pylist() == [9, 0]
    assert held.nbytes == 0 and not list(held.release("old"))
