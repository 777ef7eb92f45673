"""Law 1: the same multiset as the oracle for every split into batches and every arrival order.

The order is free within the watermark; a row that comes later still is late, and then counted and
handed out instead of joined.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations, product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.query.bounds import Constraint
from plait.query.expr import Call, Column
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.testing.oracle.answer import oracle, split_late
from plait.tuning import Tuning
from plait_lab.laws.checks import Late, assert_lawful
from plait_lab.laws.strategies.histories import History, Row, cases, crowds

pytestmark = pytest.mark.slow


@given(cases())
def test_oracle_every_split_and_order(history: History) -> None:
    _, late = split_late(history.query, history.batches)
    assert not any(late.values()), "the strategy made a late row"
    assert_lawful(history)


@given(st.one_of(cases(late=True), crowds(late=True)), st.integers(0, 2**64 - 1))
def test_oracle_late_rows(history: History, seed: int) -> None:
    assert_lawful(history, seed=seed)


@given(cases())
def test_oracle_hash_that_always_collides(history: History) -> None:
    assert_lawful(history, hash_bits=0)


@settings(max_examples=60)
@given(crowds(), st.integers(1, 3))
def test_oracle_slices_and_portions(history: History, portion: int) -> None:
    """As if batches were so large that the engine cuts them, and results so many."""
    assert_lawful(replace(history, tuning=Tuning(slice_rows=1, portion_rows=portion)))


@pytest.mark.campaign
@settings(max_examples=1000)
@given(cases(late=True), st.sampled_from((64, 0, 2)))
def test_oracle_thoroughly(history: History, hash_bits: int) -> None:
    assert_lawful(history, hash_bits=hash_bits)


def _three_streams() -> Query:
    """b is 1 to 3 after a, c 0 to 2 before b; rows may be 2 out of order."""
    fields = (Field("ts", pa.timestamp("us")), Field("k", pa.int64()), Field("id", pa.int64()))
    streams = [Stream(name, fields, "ts", 2) for name in "abc"]
    keys = [Call("eq", (Column(x, "k"), Column(y, "k"))) for x, y in ("ab", "bc")]
    bounds = (Constraint(0, 1, 3), Constraint(1, 0, -1), Constraint(1, 2, 0), Constraint(2, 1, 2))
    return make_query(streams, keys, bounds, [Output(x, Column(x, "id")) for x in "abc"])


ARRIVALS: list[tuple[str, Row]] = [
    ("a", {"ts": 1, "k": 7, "id": 0}),
    ("b", {"ts": 4, "k": 7, "id": 0}),
    ("c", {"ts": 2, "k": 7, "id": 0}),
    ("b", {"ts": 2, "k": 7, "id": 1}),
    ("a", {"ts": 3, "k": 7, "id": 1}),
    ("c", {"ts": 4, "k": 7, "id": 1}),
]


def test_oracle_every_split_of_one_history() -> None:
    """All 32 ways to cut six arrivals, in a tenth of the 90 orders that keep each stream's."""
    query = _three_streams()
    rows = {name: [row for n, row in ARRIVALS if n == name] for name in "abc"}
    orders = set(permutations([name for name, _ in ARRIVALS]))
    assert len(orders) == 90
    results = oracle(query, rows)
    nothing_late: Late = {name: Counter() for name in query.names}
    assert results.total() == 5
    for order in sorted(orders)[::10]:
        nth = {name: iter(rows[name]) for name in "abc"}
        arrivals = [(name, next(nth[name])) for name in order]
        for cuts in product((False, True), repeat=len(arrivals) - 1):
            batches: list[dict[str, list[Row]]] = [{}]
            for cut, (name, row) in zip((False, *cuts), arrivals, strict=True):
                if cut:
                    batches.append({})
                batches[-1].setdefault(name, []).append(row)
            assert_lawful(History(query, tuple(batches)), answer=(results, nothing_late))
