from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from plait.kernels.jit import Ints
from plait.query.query import Stream
from plait.testing.examples import clique
from plait.testing.oracle.checksum import checksum
from plait_lab.workloads.changing import Key, Regime, make_batches
from plait_lab.workloads.drawing import drawn_tables, equal_keys, owners, uniform_times
from plait_lab.workloads.keyed import keyed_query, keyed_tables

QUERY = clique(3)


def draw(number: int, stream: Stream, rng: np.random.Generator) -> dict[str, Ints]:
    """More rows for the streams that come later."""
    rows = 5 * (number + 1)
    return {"k": rng.integers(0, 9, rows), "ts": uniform_times(rows, 1000, rng)}


def test_tables_have_the_schema_of_their_streams() -> None:
    found = drawn_tables(QUERY, [1], draw)
    assert {name: t.schema for name, t in found.items()} == {
        s.name: s.schema for s in QUERY.streams
    }
    assert [t.num_rows for t in found.values()] == [5, 10, 15]
    for table in found.values():
        times = table.column("ts").cast(pa.int64()).to_pylist()
        assert times == sorted(times) and 0 <= times[0] <= times[-1] < 1000


def test_streams_are_drawn_apart_and_by_the_whole_seed() -> None:
    three, two = drawn_tables(QUERY, [1], draw), drawn_tables(clique(2), [1], draw)
    assert three["b"].equals(two["b"])
    assert not drawn_tables(QUERY, [2], draw)["b"].equals(three["b"])
    assert not drawn_tables(QUERY, [1, 0], draw)["a"].equals(drawn_tables(QUERY, [1, 1], draw)["a"])


def test_keys_join_all_streams_that_have_them() -> None:
    having = owners("abc", [["k"], ["l", "k"], ["l"]])
    assert list(having.items()) == [("k", ["a", "b"]), ("l", ["b", "c"])]
    assert [str(c) for k, names in having.items() for c in equal_keys(k, names)] == [
        "a.k = b.k",
        "b.l = c.l",
    ]
    assert equal_keys("k", ["a"]) == []


@pytest.mark.parametrize(
    ("name", "wanted"), [("keyed", 1956779619932337723), ("changing", 18143576522446524705)]
)
def test_the_same_seed_draws_the_rows_that_figures_were_measured_with(
    name: str, wanted: int
) -> None:
    query = keyed_query([["k"], ["k", "l"], ["l"]], 1000)
    regime = Regime((90.0, 60.0, 30.0), {"k": Key(10, share=0.5), "l": Key(7, power=2.0)})
    tables = {
        "keyed": lambda: keyed_tables(query, 500, 50, 1, disorder=1000, share=0.3),
        "changing": lambda: make_batches(query, [regime], 2.0, 1)[0],
    }[name]()
    assert checksum(pa.concat_tables(t.select(["ts", "v"]) for t in tables.values())) == wanted
