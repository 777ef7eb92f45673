"""The parts of the routing mechanism that Eddies and Teddies share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.tactics.routed import Frontiers, visit_indexes
from plait.kernels.arrival import older
from plait.local.host import LocalRun
from plait.plan.routed import Eddies
from plait.query.bounds import global_window
from plait.query.expr import Call, Column, Expr
from plait.query.query import Field, Query, Stream, make_query
from plait.testing.examples import chain, clique


@given(st.lists(st.one_of(st.just("add"), st.just("forget")), max_size=80))
def test_frontiers_remember_what_is_not_forgotten(steps: list[str]) -> None:
    frontiers, known = Frontiers(2), dict[int, tuple[int, int]]()
    for n, step in enumerate(steps):
        if step == "add":
            known[frontiers.add([n, n + 7])] = (n, n + 7)
        elif known:
            first = sorted(known)[len(known) // 2]
            frontiers.forget(first)
            known = {b: ends for b, ends in known.items() if b >= first}
        for stream in (0, 1):
            blocks = np.array(sorted(known), np.int32)
            wanted = [known[b][stream] for b in sorted(known)]
            assert frontiers.limits(blocks, stream).tolist() == wanted
            assert [frontiers.end(b, stream) for b in sorted(known)] == wanted


def test_older_compares_ids_across_the_end_of_their_range() -> None:
    """A ring of 4 places whose oldest row has the last id but one and lies at place 3."""
    ring = np.array([2**32 - 2, 3, 3, 4], np.int64)
    rows = np.array([3, 0, 1], np.int32)
    probes = np.zeros(3, np.int32)
    for limit, wanted in ((2**32 - 2, []), (2**32 - 1, [0]), (0, [0, 1]), (1, [0, 1, 2])):
        limits = np.array([limit], np.uint32)
        assert older(ring, rows, probes, limits).tolist() == wanted
    gone = np.array([2**32 - 50], np.uint32)
    assert older(ring, rows, probes, gone).tolist() == []


def test_windows_are_indexed_by_what_histories_share() -> None:
    assert visit_indexes(clique(4)) == dict.fromkeys(range(4), ((0,),))
    assert visit_indexes(chain(4))[1] == ((0,), (1,))


def _every_pair_its_own_key(streams: int) -> Query:
    """A graph in which a window could be looked up by any set of its keys."""
    names = "abcdef"[:streams]
    pairs = [(x, y) for x in names for y in names if x < y]
    made = [
        Stream(
            name,
            (
                Field("ts", pa.timestamp("us")),
                *(Field(x + y, pa.int64()) for x, y in pairs if name in (x, y)),
            ),
            "ts",
        )
        for name in names
    ]
    keys: list[Expr] = [Call("eq", (Column(x, x + y), Column(y, x + y))) for x, y in pairs]
    return make_query(made, keys, global_window(streams, 10))


def test_a_window_with_very_many_keys_is_indexed_by_each_of_them_only() -> None:
    query = _every_pair_its_own_key(5)
    assert all(
        len(by) == 4 and all(len(k) == 1 for k in by) for by in visit_indexes(query).values()
    )
    run = LocalRun(query, Eddies())
    times = pa.array([1, 2]).cast(pa.timestamp("us"))
    batch = {
        s.name: pa.table({f.name: times if f.name == "ts" else [5, 5] for f in s.fields})
        for s in query.streams
    }
    assert run.push(batch).num_rows == 2**5
    odd = batch["e"].set_column(1, "ae", pa.array([5, 6]))
    again = LocalRun(query, Eddies())
    assert again.push(batch | {"e": odd}).num_rows == 2**4
