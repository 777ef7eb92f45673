"""Looking tuples up against the definition: keys, bounds, conditions, and who was there first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.engine.counters import StepCounters
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.probe import Lookup, chosen_tuples, length
from plait.engine.states import CombinedState, Tuples
from plait.engine.windows import Windows
from plait.kernels.jit import Bytes, Ids
from plait.query.bounds import Constraint, global_window
from plait.query.expr import Call, Column, Expr
from plait.query.query import Field, Query, Stream, make_query
from plait.tuning import Tuning

Row = tuple[int, int, int, int]
"""Event time, the keys x and y, and a value."""

ROWS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 1), st.integers(0, 1), st.integers(0, 3)),
    max_size=7,
)
UNEVEN = (Constraint(0, 1, 3), Constraint(1, 0, 1), Constraint(1, 2, 2), Constraint(2, 1, 0))
BOUNDS = (global_window(3, 3), UNEVEN)
HASH_BITS = (64, 0)
DIFFER: Expr = Call("ne", (Column("a", "v"), Column("b", "v")))
BOTH = (0, 1)
INDEXES: dict[int, list[tuple[int, ...]]] = {s: [(0,), (1,), BOTH] for s in range(3)}


def query_of(bounds: Sequence[Constraint]) -> Query:
    """Streams a, b, c with the key classes x and y, and a condition on a and b."""
    fields = (
        Field("ts", pa.timestamp("us")),
        *(Field(name, pa.int64()) for name in ("x", "y", "v")),
    )
    keys = [Call("eq", (Column(p, k), Column(q, k))) for p, q in ("ab", "bc") for k in "xy"]
    return make_query([Stream(name, fields, "ts") for name in "abc"], [*keys, DIFFER], bounds)


def filled(
    query: Query, streams: Sequence[Sequence[Row]], hash_bits: int, portion: int = 1000
) -> Windows:
    tuning = Tuning(portion_rows=portion)
    windows = Windows(query, INDEXES, hash_bits=hash_bits, tuning=tuning)
    for s, rows in enumerate(streams):
        store(windows, s, rows)
    return windows


def store(windows: Windows, stream: int, rows: Sequence[Row]) -> None:
    """Rows in the order of their arrival, each a batch of its own."""
    for row in rows:
        columns = [pa.array([value], pa.int64()) for value in row]
        columns[0] = columns[0].cast(pa.timestamp("us"))
        batch = pa.RecordBatch.from_arrays(columns, names=["ts", "x", "y", "v"])
        admitted = windows.admit(stream, batch, BEFORE_ALL_TIMES)
        windows.bases[stream].append(admitted.arrivals, 0, 1)


def near(query: Query, times: dict[int, int]) -> bool:
    matrix = query.bounds.matrix
    return all(times[j] - times[i] <= matrix[i][j] for i, j in product(times, times))


def everyone(windows: Windows, stream: int) -> Tuples:
    return {stream: np.arange(len(windows.bases[stream]), dtype=np.int32)}


def found(lookup: Lookup, tuples: Tuples, limits: Ids | None = None) -> Counter[tuple[int, ...]]:
    """The combinations as row numbers, in the order of the streams."""
    answer: Counter[tuple[int, ...]] = Counter()
    counters = StepCounters()
    for match in lookup.matches(tuples, counters, limits):
        assert length(match) > 0, "an empty portion"
        answer.update(zip(*(match[s].tolist() for s in sorted(match)), strict=True))
    assert counters.probes == length(tuples)
    assert counters.matches == answer.total() <= counters.visited
    return answer


@pytest.mark.slow
@settings(max_examples=60)
@given(ROWS, ROWS, st.sampled_from(BOUNDS), st.sampled_from(HASH_BITS), st.sampled_from((1, 2, 99)))
def test_oracle_a_base_window(
    a: list[Row], b: list[Row], bounds: Sequence[Constraint], hash_bits: int, portion: int
) -> None:
    query = query_of(bounds)
    windows = filled(query, (a, b, ()), hash_bits, portion)
    for by in (None, (0,), (1,), BOTH):
        lookup = Lookup(windows, frozenset({0}), windows.bases[1], BOTH, [0], by)
        assert found(lookup, everyone(windows, 0)) == Counter(
            (i, j)
            for (i, p), (j, q) in product(enumerate(a), enumerate(b))
            if p[1:3] == q[1:3] and p[3] != q[3] and near(query, {0: p[0], 1: q[0]})
        )


@pytest.mark.slow
@settings(max_examples=60)
@given(ROWS, ROWS, ROWS, st.sampled_from(BOUNDS), st.sampled_from(HASH_BITS))
def test_oracle_a_combined_state(
    a: list[Row], b: list[Row], c: list[Row], bounds: Sequence[Constraint], hash_bits: int
) -> None:
    """All pairs of a and b that may be together, looked up by c; and c looked up by them."""
    query = query_of(bounds)
    windows = filled(query, (a, b, c), hash_bits)
    state = CombinedState(query, frozenset({0, 1}), windows.bases, [BOTH], hash_bits)
    pairs = [
        (i, j)
        for (i, p), (j, q) in product(enumerate(a), enumerate(b))
        if p[1:3] == q[1:3] and near(query, {0: p[0], 1: q[0]})
    ]
    combined: Tuples = {s: np.array([pair[s] for pair in pairs], np.int32) for s in (0, 1)}
    state.insert(combined)
    wanted = Counter(
        (i, j, k)
        for (i, j), (k, r) in product(pairs, enumerate(c))
        if a[i][1:3] == r[1:3] and near(query, {0: a[i][0], 1: b[j][0], 2: r[0]})
    )
    up = Lookup(windows, frozenset({2}), state, BOTH, [])
    assert found(up, everyone(windows, 2)) == wanted
    down = Lookup(windows, frozenset({0, 1}), windows.bases[2], BOTH, [])
    assert found(down, combined) == wanted


@pytest.mark.slow
@settings(max_examples=60)
@given(ROWS, ROWS, st.lists(st.integers(0, 8), min_size=7, max_size=7))
def test_oracle_only_rows_older_than_the_limit(
    a: list[Row], b: list[Row], firsts: list[int]
) -> None:
    query = query_of(global_window(3, 3))
    windows = filled(query, (a, b, ()), 64)
    lookup = Lookup(windows, frozenset({0}), windows.bases[1], BOTH, [])
    limits: Ids = np.array(firsts[: len(a)], np.uint32)
    assert found(lookup, everyone(windows, 0), limits=limits) == Counter(
        (i, j)
        for (i, p), (j, q) in product(enumerate(a), enumerate(b))
        if p[1:3] == q[1:3] and abs(p[0] - q[0]) <= 3 and j < firsts[i]
    )


def test_a_combination_whose_part_is_gone_is_not_found() -> None:
    """It can match nothing to come, but it may not have been dropped yet."""
    query = query_of(global_window(3, 3))
    row: Row = (0, 0, 0, 0)
    windows = filled(query, ([row, row], [row], [row]), 64)
    state = CombinedState(query, frozenset({0, 1}), windows.bases, [BOTH], 64)
    state.insert({0: np.array([0, 1], np.int32), 1: np.zeros(2, np.int32)})
    windows.bases[0].window.drop(1)
    lookup = Lookup(windows, frozenset({2}), state, BOTH, [])
    assert found(lookup, everyone(windows, 2)) == Counter([(1, 0, 0)])


def test_portions_are_about_as_large_as_asked() -> None:
    query = query_of(global_window(3, 3))
    row: Row = (0, 0, 0, 0)
    windows = filled(query, ([row] * 40, [row] * 50, ()), 64, portion=100)
    lookup = Lookup(windows, frozenset({0}), windows.bases[1], BOTH, [])
    sizes = [length(match) for match in lookup.matches(everyone(windows, 0), StepCounters())]
    assert sum(sizes) == 2000
    assert max(sizes) < 200


def test_chosen_tuples() -> None:
    tuples: Tuples = {0: np.array([4, 5, 6], np.int32), 2: np.array([7, 8, 9], np.int32)}
    keep: Bytes = np.array([1, 0, 1], np.uint8)
    assert {s: p.tolist() for s, p in chosen_tuples(tuples, keep).items()} == {0: [4, 6], 2: [7, 9]}
    assert chosen_tuples(tuples, None) is tuples
    assert chosen_tuples(tuples, np.ones(3, np.uint8)) is tuples
    assert length(chosen_tuples(tuples, np.zeros(3, np.uint8))) == 0


@pytest.mark.parametrize("hash_bits", HASH_BITS)
def test_no_tuples_find_nothing(hash_bits: int) -> None:
    windows = filled(query_of(global_window(3, 3)), ((), [(0, 0, 0, 0)], ()), hash_bits)
    lookup = Lookup(windows, frozenset({0}), windows.bases[1], BOTH, [0])
    assert found(lookup, everyone(windows, 0)) == Counter()
