"""One-way joins: rows before the head by stamp, ties by stream, and what nested loops compare."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.engine.windows import Windows
from plait.sites.site.one_way import OneWayJoins, StampedWindow, composite, keeping_all
from plait.testing.examples import clique


def rows(*keys: int) -> pa.RecordBatch:
    times = pa.array([0] * len(keys), pa.timestamp("us"))
    return pa.record_batch({"ts": times, "k": pa.array(keys, pa.int64())})


def joins(head: int, probed: int) -> tuple[OneWayJoins, StampedWindow, Windows]:
    query = clique(2)
    windows = Windows(keeping_all(query), {})
    window = StampedWindow(windows.bases[probed])
    return OneWayJoins(windows, {probed: window}, [head], [probed], query), window, windows


@pytest.mark.parametrize(("head", "found"), [(0, 1), (1, 2)])
def test_a_head_sees_rows_before_it_and_ties_by_stream(head: int, found: int) -> None:
    probed = 1 - head
    one_way, window, windows = joins(head, probed)
    for stamp in (3, 5, 9):
        window.append(windows, probed, rows(1), stamp)
    got = list(one_way.joined_with(composite(head, rows(1, 2), 5)))
    assert sum(batch.num_rows for batch in got) == found
    (step,) = one_way.steps
    assert step.compared == 2 * found, "the row with another key is compared, too"
    assert step.counters.matches == found


def test_rows_come_in_the_order_of_stamps_and_leave_from_the_front() -> None:
    _, window, windows = joins(0, 1)
    window.append(windows, 1, rows(1), 3)
    with pytest.raises(AssertionError, match="order of stamps"):
        window.append(windows, 1, rows(1), 3)
    window.append(windows, 1, rows(1, 2), 4)
    assert [(stamp, len(columns[0])) for stamp, columns in window.content(["k"])] == [
        (3, 1),
        (4, 2),
    ]
    window.clear()
    assert (len(window), window.last_stamp) == (0, -1)
