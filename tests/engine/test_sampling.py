"""Joined samples: exact where everything is drawn, fair where it is not, and never much work."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.engine.driver import Engine
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.migrate.strategy import migrate
from plait.engine.sampling import CHECKED_PER_ROW, sample
from plait.engine.states import Tuples
from plait.engine.windows import Windows
from plait.errors import DisconnectedJoin, PlanError, StatisticsError
from plait.kernels.jit import Bytes
from plait.kernels.memory import HEAP, Memory
from plait.plan.jtree import parse_shape
from plait.plan.observed import Evidence
from plait.query.bounds import Constraint, global_window
from plait.query.expr import Call, Column, Expr
from plait.query.query import Field, Query, Stream, make_query
from plait.spark.arena.engines import Arena, Places
from plait.testing.examples import chain
from plait.testing.oracle.answer import oracle
from plait_lab.laws.strategies.histories import History, cases

Row = tuple[int, str, int, int | None]
"""Event time, the keys x and y, and a value."""
Rows = Sequence[Sequence[Row]]

ALL = 10**6
HASH_BITS = (64, 0)
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us")), ("x", pa.string()), ("y", pa.int64()), ("v", pa.int64())]
)
UNEVEN = (Constraint(0, 1, 6), Constraint(1, 0, 2), Constraint(1, 2, 5), Constraint(2, 1, 0))
SHIFTED = (Constraint(0, 1, 6), Constraint(1, 0, -1), Constraint(1, 2, 5), Constraint(2, 1, 3))
BOUNDS = (global_window(3, 4), UNEVEN, SHIFTED)

A, B, C = (Column(name, "v") for name in "abc")
TWO: Expr = Call("ne", (A, B))
THREE: Expr = Call("le", (Call("add", (A, C)), Call("mul", (B, C))))
CONDITIONS: tuple[tuple[Expr, ...], ...] = ((), (TWO,), (THREE,), (TWO, THREE))

ROWS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.sampled_from(("", "p", "quite a long key")),
        st.integers(0, 1),
        st.sampled_from((0, 1, 2, None)),
    ),
    max_size=8,
)


def query_of(bounds: Sequence[Constraint], conditions: Sequence[Expr] = ()) -> Query:
    """a and b share x, b and c share x and y: two key classes, one of strings."""
    fields = tuple(Field(f.name, f.type) for f in SCHEMA)
    keys = [
        Call("eq", (Column(p, k), Column(q, k)))
        for p, q, k in (("a", "b", "x"), ("b", "c", "x"), ("b", "c", "y"))
    ]
    return make_query([Stream(n, fields, "ts") for n in "abc"], [*keys, *conditions], bounds)


def filled(
    query: Query, streams: Rows, hash_bits: int = 64, memory: Memory = HEAP, gone: int = 0
) -> Windows:
    """Windows of these rows, with `gone` others before them that have been dropped."""
    windows = Windows(query, {}, hash_bits=hash_bits, memory=memory)
    for s, rows in enumerate(streams):
        for part in ([(0, "gone", 0, 0)] * gone, rows):
            columns = zip(*part, strict=True) if part else [()] * 4
            arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
            arrivals = windows.admit(s, batch, BEFORE_ALL_TIMES).arrivals
            windows.bases[s].append(arrivals, 0, len(arrivals))
        windows.bases[s].window.drop(gone)
    return windows


def holds(condition: Expr, row: dict[int, Row]) -> bool:
    """The definition of the conditions, for rows of the streams that they read."""
    a, b, c = (row[s][3] if s in row else None for s in range(3))
    if condition == TWO:
        return a is not None and b is not None and a != b
    assert condition == THREE
    return a is not None and b is not None and c is not None and a + c <= b * c


def by_definition(
    query: Query, streams: Rows, order: Sequence[int], conditions: Sequence[Expr]
) -> list[Evidence]:
    """What joining everything shows, by nested loops."""
    needs = {TWO: {0, 1}, THREE: {0, 1, 2}}
    keys = [(1, {0, 1, 2}), (2, {1, 2})]
    found: list[dict[int, Row]] = [{order[0]: row} for row in streams[order[0]]]
    evidence = []
    for n, stream in enumerate(order[1:], 1):
        gathered, together = set(order[:n]), set(order[: n + 1])
        near = [
            {**combination, stream: row}
            for combination, row in product(found, streams[stream])
            if all(
                -query.bounds.matrix[stream][i] <= row[0] - old[0] <= query.bounds.matrix[i][stream]
                for i, old in combination.items()
            )
        ]
        decidable = [c for c in conditions if needs[c] <= together and not needs[c] <= gathered]
        found = [
            c
            for c in near
            if all(c[stream][k] == c[i][k] for k, have in keys if stream in have
                   for i in gathered & have)
            and all(holds(condition, c) for condition in decidable)
        ]  # fmt: skip
        evidence.append(Evidence(frozenset(gathered), frozenset({stream}), len(near), len(found)))
    return evidence


@pytest.mark.slow
@settings(max_examples=100)
@given(
    st.tuples(ROWS, ROWS, ROWS),
    st.sampled_from(BOUNDS),
    st.sampled_from(CONDITIONS),
    st.sampled_from(HASH_BITS),
    st.sampled_from((0, 50)),
)
def test_oracle_everything_drawn_is_exact(
    streams: Rows,
    bounds: Sequence[Constraint],
    conditions: Sequence[Expr],
    hash_bits: int,
    gone: int,
) -> None:
    query = query_of(bounds, conditions)
    windows = filled(query, streams, hash_bits, gone=gone)
    for order in (*permutations(range(3)), (1, 2), (0, 2)):
        wanted = by_definition(query, streams, order, conditions)
        assert sample(windows, order, ALL, 0) == wanted


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(), st.integers(0, 5), st.sampled_from(HASH_BITS))
def test_oracle_the_last_step_finds_the_results(
    history: History, first: int, hash_bits: int
) -> None:
    """Every kind of key, bounds and condition: all rows joined are the query's answer."""
    query = history.query
    windows = Windows(query, {}, hash_bits=hash_bits)
    for tables in history.tables():
        for name, table in tables.items():
            stream = query.index(name)
            for batch in table.to_batches():
                arrivals = windows.admit(stream, batch, BEFORE_ALL_TIMES).arrivals
                windows.bases[stream].append(arrivals, 0, len(arrivals))
    order = connected(query, first % len(query.streams))
    evidence = sample(windows, order, ALL, 0)
    assert evidence[-1].matches == oracle(query, history.rows()).total()
    assert all(e.matches <= e.pairs for e in evidence)
    assert [e.gathered | e.target for e in evidence] == [
        frozenset(order[: n + 1]) for n in range(1, len(order))
    ]


def connected(query: Query, first: int) -> list[int]:
    order = [first]
    while len(order) < len(query.streams):
        others = (s for s in range(len(query.streams)) if s not in order)
        order.append(next(s for s in others if query.graph.shared(order, {s})))
    return order


def many(seed: int, rows: int, keys: int, span: int) -> Rows:
    """Rows of three streams with skewed keys: key k is twice as frequent as k + 1."""
    random = np.random.default_rng(seed)
    share = 0.5 ** np.arange(keys)
    return [
        [
            (int(t), f"key {x}", int(y), int(v))
            for t, x, y, v in zip(
                random.integers(0, span, rows),
                random.choice(keys, rows, p=share / share.sum()),
                random.integers(0, 2, rows),
                random.integers(0, 4, rows),
                strict=True,
            )
        ]
        for _ in range(3)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bounds", "conditions", "keys", "rows"),
    [
        (global_window(3, 20), (), 6, 40),
        (UNEVEN, (), 3, 50),
        (global_window(3, 20), (TWO, THREE), 4, 40),
        # So few rows and keys that steps check and go on with some of what they find.
        (global_window(3, 100), (TWO, THREE), 1, 20),
        (global_window(3, 20), (), 2, 30),
    ],
)
def test_oracle_samples_are_fair(
    bounds: Sequence[Constraint], conditions: Sequence[Expr], keys: int, rows: int
) -> None:
    """Over many seeds the ratios are those of the whole windows, within four standard errors."""
    query = query_of(bounds, conditions)
    streams = many(1, 120, keys, 50)
    windows = filled(query, streams)
    for order in ((0, 1, 2), (2, 1, 0)):
        truth = sample(windows, order, ALL, 0)
        seen = [sample(windows, order, rows, seed) for seed in range(400)]
        for step, exact in enumerate(truth):
            pairs = np.array([run[step].pairs for run in seen])
            matches = np.array([run[step].matches for run in seen])
            ratio, wanted = matches.sum() / pairs.sum(), exact.matches / exact.pairs
            error = (matches - ratio * pairs).std() / math.sqrt(len(seen)) / pairs.mean()
            assert error < wanted / 15, "too few seeds to tell"
            assert abs(ratio - wanted) <= 4 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conditions", "rows"),
    [
        ((), 20),  # 400 candidates, goes on with 20 of them
        ((TWO,), 20),  # checks 160 of them
        ((TWO,), 60),  # checks all, goes on with 60 of those that match
    ],
)
def test_what_is_left_out_is_left_out_at_random(conditions: Sequence[Expr], rows: int) -> None:
    """All rows are drawn, and only the later half of b can match c."""
    streams = (
        [(0, "key", 0, 1)] * 20,
        [(0, "key", int(i >= 10), 2) for i in range(20)],
        [(0, "key", 1, 3)] * 20,
    )
    windows = filled(query_of(global_window(3, 4), conditions), streams)
    seen = [sample(windows, (1, 0, 2), rows, seed)[1] for seed in range(200)]
    assert abs(np.mean([e.matches / e.pairs for e in seen]) - 0.5) < 0.05


def test_a_step_is_bounded_however_few_keys_there_are() -> None:
    """All pairs match: they are counted, and no more than a few of them put together."""
    rows = 1500
    streams = [[(0, "the key", 0, s)] * (2 * rows) for s in range(3)]
    windows = filled(query_of(global_window(3, 4)), streams)
    sample(windows, (0, 1, 2), rows, 0)
    tracemalloc.start()
    evidence = sample(windows, (0, 1, 2), rows, 0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(e.pairs, e.matches) for e in evidence] == [(rows**2, rows**2)] * 2
    assert most < rows * 1000 < rows**2


def test_conditions_are_checked_on_few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """a and b always differ, so all that is checked matches; the pairs are counted to fit."""
    rows = 100
    streams = [[(0, "the key", 0, s)] * (2 * rows) for s in range(3)]
    windows = filled(query_of(global_window(3, 4), (TWO,)), streams)
    asked = []
    plain = windows.output.holds

    def noted(condition: Expr, tuples: Tuples) -> Bytes:
        asked.append(len(tuples[0]))
        return plain(condition, tuples)

    monkeypatch.setattr(windows.output, "holds", noted)
    first, second = sample(windows, (0, 1, 2), rows, 0)
    assert asked == [CHECKED_PER_ROW * rows]
    assert (first.pairs, first.matches) == (CHECKED_PER_ROW * rows, CHECKED_PER_ROW * rows)
    assert (second.pairs, second.matches) == (rows**2, rows**2)


def test_the_seed_decides() -> None:
    query = query_of(UNEVEN, (TWO,))
    windows = filled(query, many(2, 300, 4, 40))
    runs = [sample(windows, (1, 0, 2), 40, seed) for seed in (7, 7, 8)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.slow
def test_samples_are_drawn_from_all_rows_alike() -> None:
    """Every row of the one side has a key of its own, and is found as often as the others."""
    streams = [[(0, f"{i}", 0, 0) for i in range(8)], [(0, f"{i}", 0, 0) for i in range(8)], []]
    counts = []
    for lonely in range(8):
        windows = filled(query_of(global_window(3, 4)), [streams[0], [streams[1][lonely]], []])
        counts.append(sum(sample(windows, (0, 1), 2, seed)[0].matches for seed in range(400)))
    assert all(abs(count - 100) < 4 * math.sqrt(75) for count in counts)


def test_empty_windows() -> None:
    query = query_of(global_window(3, 4), (TWO,))
    row: Row = (0, "k", 0, 0)
    histories: list[Rows] = [([], [], []), ([row], [], [row]), ([], [row], [row])]
    for streams in histories:
        evidence = sample(filled(query, streams), (0, 1, 2), 10, 0)
        assert [(e.pairs, e.matches) for e in evidence] == [(0, 0), (0, 0)]
    assert sample(filled(query, ([], [], [])), (0,), 10, 0) == []


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Memory]:
    places = Places(tmp_path / "memory", tmp_path / "disk", smallest=1)
    yield Arena("run", places).memory(0)


def test_windows_in_an_arena(arena: Memory) -> None:
    query, streams = query_of(UNEVEN, (TWO,)), many(3, 200, 3, 40)
    mapped, plain = (filled(query, streams, memory=m) for m in (arena, HEAP))
    assert sample(mapped, (0, 1, 2), 50, 1) == sample(plain, (0, 1, 2), 50, 1)


def test_indexes_and_a_parallel_track_change_nothing() -> None:
    query, streams = query_of(UNEVEN, (TWO,)), many(4, 200, 3, 40)
    windows = filled(query, streams)
    plain = sample(windows, (0, 1, 2), 50, 1)
    engine = Engine(query, parse_shape(query, "((a b) c)"), windows=windows)
    indexes = [tuple(base.window.indexes) for base in windows.bases]
    assert sample(engine.windows, (0, 1, 2), 50, 1) == plain
    assert [tuple(base.window.indexes) for base in windows.bases] == indexes
    migrate(engine, parse_shape(query, "(a (b c))"), "parallel-track")
    assert engine.migrating
    assert sample(engine.windows, (0, 1, 2), 50, 1) == plain


def test_what_is_refused() -> None:
    windows = Windows(chain(3), {})
    with pytest.raises(
        DisconnectedJoin, match="c shares no key with the streams before it in a, c"
    ):
        sample(windows, (0, 2, 1), 10, 0)
    for order in ((0, 0), (0, 3), (-1, 0), ()):
        with pytest.raises(PlanError, match="give different indexes of streams, 0 to 2"):
            sample(windows, order, 10, 0)
    with pytest.raises(StatisticsError, match="a sample of 0 rows"):
        sample(windows, (0, 1), 0, 0)
