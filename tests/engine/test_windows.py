"""What engines share: base windows that stay when the engine is exchanged."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.windows import Windows
from plait.kernels.index import new_cursor
from plait.query.bounds import Constraint
from plait.query.expr import Call, Column
from plait.query.query import Field, Query, Stream, make_query

BOUNDS = (Constraint(0, 1, 5), Constraint(1, 0, 2))


def query_of(time: pa.DataType | None = None) -> Query:
    fields = (
        Field("ts", pa.timestamp("us") if time is None else time),
        Field("k", pa.string()),
        Field("l", pa.int64()),
    )
    keys = [Call("eq", (Column("a", c), Column("b", c))) for c in "kl"]
    return make_query([Stream(name, fields, "ts") for name in "ab"], keys, BOUNDS)


def rows(times: list[int], keys: list[str], type_: pa.DataType | None = None) -> pa.RecordBatch:
    stamps = pa.array(times, pa.timestamp("us") if type_ is None else type_)
    numbers = pa.array(range(len(times)), pa.int64())
    return pa.RecordBatch.from_arrays([stamps, pa.array(keys), numbers], names=["ts", "k", "l"])


def store(windows: Windows, stream: int, batch: pa.RecordBatch) -> None:
    admitted = windows.admit(stream, batch, BEFORE_ALL_TIMES)
    windows.bases[stream].append(admitted.arrivals, 0, len(admitted.arrivals))


def test_an_index_added_later_finds_the_rows_that_are_there() -> None:
    windows = Windows(query_of(), {0: [(0,)], 1: [(0,)]})
    store(windows, 0, rows([1, 2, 3], ["x", "y", "x"]))
    windows.index_by({0: [(1,), (0, 1), (0,)], 1: []})
    window = windows.bases[0].window
    assert set(window.indexes) == {(0,), (1,), (0, 1)}
    assert set(windows.bases[1].window.indexes) == {(0,)}
    by_l = np.array([0, 2, 7])
    everything = np.full(3, -(2**62)), np.full(3, 2**62)
    (l_class,) = (k for k, c in enumerate(windows.query.graph.classes) if c.columns[0] == ("l",))
    probes, found, _ = window.probe((l_class,), by_l, *everything, new_cursor(), 100)
    assert dict(zip(probes.tolist(), window.latest[found].tolist(), strict=True)) == {0: 1, 1: 3}


def test_the_cutoff_is_what_the_bounds_say() -> None:
    """b comes at most 5 after a, a at most 2 after b."""
    windows = Windows(query_of(), {0: [(0,)], 1: [(0,)]})
    assert windows.cutoff(0, [100, 50]) == 45
    assert windows.cutoff(1, [100, 50]) == 98


def test_codes_are_shared_by_the_streams_of_a_class() -> None:
    windows = Windows(query_of(), {0: [(0,)], 1: [(0,)]})
    store(windows, 0, rows([1, 2], ["x", "y"]))
    store(windows, 1, rows([1, 2], ["y", "z"]))
    (k_class,) = (k for k, c in enumerate(windows.query.graph.classes) if c.columns[0] == ("k",))
    x, y = windows.bases[0].live_codes(k_class).tolist()
    again, z = windows.bases[1].live_codes(k_class).tolist()
    assert y == again
    assert len({x, y, z}) == 3


def test_keys_that_no_live_tuple_has_are_forgotten() -> None:
    windows = Windows(query_of(), {0: [(0,)], 1: [(0,)]})
    store(windows, 0, rows([0] * 5000, [f"old {i}" for i in range(5000)]))
    store(windows, 1, rows([100], ["young"]))
    full = windows.nbytes
    windows.forget_keys()
    assert windows.nbytes >= full, "all keys are in use"
    store(windows, 0, rows([0] * 6000, [f"more {i}" for i in range(6000)]))
    windows.bases[0].drop_before(100)
    grown = windows.nbytes
    windows.forget_keys()
    assert windows.nbytes < grown / 2
    store(windows, 0, rows([100], ["young"]))
    assert set(windows.bases[0].live_codes(0)) & set(windows.bases[1].live_codes(0))


def test_sizes_name_the_streams() -> None:
    windows = Windows(query_of(), {0: [(0,), (0, 1)], 1: [(0,)]})
    store(windows, 0, rows([1, 2], ["x", "y"]))
    a, b = windows.sizes()
    assert (a.streams, a.rows, a.indexes) == (("a",), 2, 2)
    assert (b.streams, b.rows, b.indexes) == (("b",), 0, 1)
    assert windows.nbytes >= a.bytes + b.bytes


def test_keys_of_arrivals_that_are_not_yet_stored_are_not_forgotten() -> None:
    """A batch is encoded at once and stored in parts; between two parts keys are forgotten."""
    windows = Windows(query_of(), {0: [(0,)], 1: [(0,)]})
    keys = [f"key {i}" for i in range(10_000)]
    store(windows, 0, rows([0] * 10_000, keys))
    windows.bases[0].drop_before(100)
    held = windows.admit(1, rows([100] * 10_000, keys), BEFORE_ALL_TIMES).arrivals.part(2, 5)
    again = windows.admit(0, rows([100], ["key 3"]), BEFORE_ALL_TIMES).arrivals
    windows.forget_keys()
    windows.bases[1].append(held, 0, len(held))
    store(windows, 0, rows([100] * 3, ["key 4", "key 2", "other"]))
    windows.bases[0].append(again, 0, 1)
    k_class = next(k for k, c in enumerate(windows.query.graph.classes) if c.columns[0] == ("k",))
    two, three, four = windows.bases[1].live_codes(k_class).tolist()
    assert windows.bases[0].live_codes(k_class).tolist()[:2] == [four, two]
    assert windows.bases[0].live_codes(k_class).tolist()[3] == three


def test_keys_of_a_batch_that_nobody_holds_are_forgotten() -> None:
    windows = Windows(query_of(), {0: [(0,)], 1: [(0,)]})
    windows.admit(0, rows([0] * 10_000, [f"key {i}" for i in range(10_000)]), BEFORE_ALL_TIMES)
    grown = windows.nbytes
    windows.forget_keys()
    assert windows.nbytes < grown / 2
