"""Windows against brute force: any sequence of appends, drops, new indexes and probes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.index import finished, new_cursor
from plait.kernels.jit import Ints
from plait.kernels.ring import ids_of
from plait.kernels.window import Window
from plait.tuning import USUAL, Tuning
from plait_lab.laws.strategies.tunings import TUNINGS

FAR = 2**62
FIRST_IDS = (0, 0xFFFF_FF80, 0xFFFF_FFFF)
Pairs = Counter[tuple[int, int]]


@dataclass
class Row:
    id: int
    earliest: int
    latest: int
    codes: dict[int, int]


@dataclass
class Model:
    """A window over two key classes, 0 and 1, and the rows that it stands for."""

    indexes: Sequence[tuple[int, ...]] = ((0,),)
    spans: bool = False
    hash_bits: int = 64
    tuning: Tuning = USUAL
    cutoff: int = 0
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.window = Window(
            (0, 1),
            self.indexes,
            spans=self.spans,
            hash_bits=self.hash_bits,
            tuning=self.tuning,
        )
        self.window.ring.add_column("tag", np.int64)

    def append(self, latest: Ints, codes: dict[int, Ints], lengths: Ints | None = None) -> None:
        earliest = latest if lengths is None else latest - lengths
        next_id = self.window.ring.next_id
        for i in range(len(latest)):
            row_codes = {c: int(values[i]) for c, values in codes.items()}
            row = Row((next_id + i) % 2**32, int(earliest[i]), int(latest[i]), row_codes)
            self.rows.append(row)
        given = earliest if self.spans else None
        self.window.append(latest, codes, given, {"tag": latest * 3 - earliest})

    def expire(self, cutoff: int) -> None:
        """Drop from the front what ended before `cutoff`; later probes begin there."""
        self.cutoff = cutoff
        n = next((i for i, row in enumerate(self.rows) if row.latest >= cutoff), len(self.rows))
        self.rows = self.rows[n:]
        self.window.drop(n)

    def probe(
        self, classes: tuple[int, ...], codes: dict[int, Ints], lo: Ints, hi: Ints, limit: int
    ) -> Pairs:
        """The pairs that the window finds, less those whose codes the caller must refuse."""
        keys, cursor, found = (
            self.window.keys(classes, codes, len(lo)),
            new_cursor(self.tuning.walkers),
            Pairs(),
        )
        while not finished(cursor, len(lo)):
            probes, rows, _ = self.window.probe(classes, keys, lo, hi, cursor, limit)
            assert len(probes) == len(rows) < limit + self.tuning.walkers
            equal = np.ones(len(rows), np.bool_)
            for c in classes:
                equal &= self.window.codes(c)[rows] == codes[c][probes]
            assert equal.all() or len(classes) > 1, "one class needs no verification"
            ids = ids_of(self.window.ring.header, rows)
            found.update(zip(probes[equal].tolist(), ids[equal].tolist(), strict=True))
        return found

    def expected(
        self, classes: tuple[int, ...], codes: dict[int, Ints], lo: Ints, hi: Ints
    ) -> Pairs:
        return Pairs(
            (p, row.id)
            for row in self.rows
            for p in range(len(lo))
            if lo[p] <= row.earliest
            and row.latest <= hi[p]
            and all(codes[c][p] == row.codes[c] for c in classes)
        )

    def check(self) -> None:
        """The columns of all rows, oldest first."""
        window = self.window
        assert len(window) == len(self.rows)
        order = np.r_[: len(window.ring.columns["tag"])]
        order = np.roll(order, -int(window.ring.header[1]))[: len(self.rows)]
        assert ids_of(window.ring.header, order.astype(np.int32)).tolist() == [
            row.id for row in self.rows
        ]
        assert window.latest[order].tolist() == [row.latest for row in self.rows]
        assert window.earliest[order].tolist() == [row.earliest for row in self.rows]
        for c in (0, 1):
            assert window.codes(c)[order].tolist() == [row.codes[c] for row in self.rows]
        tags = [row.latest * 3 - row.earliest for row in self.rows]
        assert window.ring.columns["tag"][order].tolist() == tags


ALL_INDEXES: tuple[tuple[int, ...], ...] = ((0,), (1,), (0, 1))
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(("append", "append", "drop", "index")),
        st.sampled_from((0, 1, 2, 10, 63, 64, 65, 150, 300)),
        st.integers(0, 2**16),
    ),
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=50)
@given(
    OPERATIONS,
    st.sampled_from([(), ((0,),), ((0, 1),), ((0,), (1,)), ALL_INDEXES]),
    st.booleans(),
    st.sampled_from((64, 2, 0)),
    TUNINGS,
    st.sampled_from((1, 3, 40, 10_000)),
    st.sampled_from((1, 7, 1000)),
)
def test_oracle_any_sequence_of_operations(
    operations: list[tuple[str, int, int]],
    indexes: Sequence[tuple[int, ...]],
    spans: bool,
    hash_bits: int,
    tuning: Tuning,
    keys: int,
    limit: int,
) -> None:
    model = Model(indexes, spans, hash_bits, tuning)
    for operation, size, seed in operations:
        rng = np.random.default_rng(seed)
        codes = {c: rng.integers(-keys, keys, size) for c in (0, 1)}
        if operation == "append":
            latest = model.cutoff + rng.integers(0, 30, size)
            if seed % 2:
                latest.sort()
            model.append(latest, codes, rng.integers(0, 20, size) if spans else None)
        elif operation == "drop":
            model.expire(model.cutoff + size % 40)
        else:
            model.window.add_index(ALL_INDEXES[seed % 3])
        model.check()
        codes = {c: rng.integers(-keys, keys, 15) for c in (0, 1)}
        lo = model.cutoff + rng.integers(0, 30, 15)
        hi = lo + rng.integers(-1, 40, 15)
        for classes in model.window.indexes:
            found = model.probe(classes, codes, lo, hi, limit)
            assert found == model.expected(classes, codes, lo, hi)


@pytest.mark.slow
@pytest.mark.parametrize("spans", [False, True])
@pytest.mark.parametrize("hash_bits", [64, 0])
def test_a_window_that_grows_shrinks_and_turns_keeps_its_chains(
    spans: bool, hash_bits: int
) -> None:
    """From 64 rows to thousands and back, so that buckets are renewed in both directions."""
    rng = np.random.default_rng(5)
    model = Model(ALL_INDEXES, spans, hash_bits, Tuning(first_id=0xFFFF_F800))
    buckets = []
    for size in [10, 1500, 700, 3, 20, 1, 40, 2, 900]:
        codes = {c: rng.integers(0, 50, size) for c in (0, 1)}
        lengths = rng.integers(0, 5, size) if spans else None
        model.append(model.cutoff + rng.integers(0, 100, size), codes, lengths)
        model.expire(model.cutoff + 110 if size < 100 else model.cutoff + 20)
        model.check()
        codes = {c: rng.integers(0, 50, 40) for c in (0, 1)}
        lo = model.cutoff + rng.integers(-5, 60, 40).clip(0)
        for classes in ALL_INDEXES:
            found = model.probe(classes, codes, lo, lo + 30, 1000)
            assert found == model.expected(classes, codes, lo, lo + 30)
        buckets.append(len(model.window.indexes[0,].heads))
    assert max(buckets) >= 2048, "at least as many buckets as rows"
    assert min(buckets[2:]) < max(buckets) / 4, "buckets are given back"


def test_a_span_matches_only_as_a_whole() -> None:
    model = Model(spans=True)
    model.append(np.array([10]), {0: np.array([1]), 1: np.array([1])}, np.array([4]))
    codes = {0: np.ones(5, np.int64)}
    lo = np.array([6, 7, 6, 5, 10])
    hi = np.array([10, 10, 9, 11, 10])
    assert model.probe((0,), codes, lo, hi, 100) == Pairs([(0, 0), (3, 0)])


def test_a_later_row_that_begins_too_early_does_not_hide_an_earlier_one() -> None:
    """Rows of one key: 0 to 9 is out of range, 5 to 8 is not."""
    model = Model(spans=True)
    codes = {c: np.zeros(2, np.int64) for c in (0, 1)}
    model.append(np.array([9, 8]), codes, np.array([9, 3]))
    one = {0: np.zeros(1, np.int64)}
    assert model.probe((0,), one, np.array([5]), np.array([20]), 100) == Pairs([(0, 1)])


@pytest.mark.parametrize("spans", [False, True])
def test_the_widest_range_finds_every_row_of_a_key(spans: bool) -> None:
    model = Model(ALL_INDEXES, spans=spans)
    times = np.array([-FAR, 0, FAR])
    model.append(times, {c: np.zeros(3, np.int64) for c in (0, 1)})
    one = {c: np.zeros(1, np.int64) for c in (0, 1)}
    for classes in ALL_INDEXES:
        found = model.probe(classes, one, np.array([-FAR]), np.array([FAR]), 100)
        assert found == Pairs([(0, 0), (0, 1), (0, 2)])


def test_an_empty_window_is_probed_in_vain() -> None:
    model = Model(ALL_INDEXES, tuning=Tuning(first_id=0xFFFF_FFFF))
    for n in (100, 0):
        codes = {c: np.arange(n) for c in (0, 1)}
        for classes in ALL_INDEXES:
            assert model.probe(classes, codes, np.full(n, -FAR), np.full(n, FAR), 10) == Pairs()


def test_classes_in_another_order_are_another_key() -> None:
    """A hash of several codes tells (1, 2) from (2, 1), (0, 3), (1, 3) and (3, 2)."""
    window = Window((0, 1), [(0, 1)])
    codes = {0: np.array([1, 2, 0, 1, 3, 1]), 1: np.array([2, 1, 3, 3, 2, 2])}
    first, *others, again = window.keys((0, 1), codes, 6).tolist()
    assert len({first, *others}) == 5
    assert first == again


def test_buckets_are_swept_now_and_then() -> None:
    """Or the id of a row long gone would come to mean a new one after 2^32 rows."""
    model = Model(tuning=Tuning(sweep_rows=100))
    for size, swept in ((1, False), (50, False), (49, True)):
        codes = np.full(size, 7 if size == 1 else 8)
        model.append(np.full(size, model.cutoff), {0: codes, 1: codes})
        assert (0 in model.window.indexes[0,].heads) == (not swept)
        model.expire(model.cutoff + 1)


@pytest.mark.parametrize("first_id", FIRST_IDS)
@pytest.mark.parametrize("begin", [(), ((0,),), ((0, 1),)], ids=str)
def test_an_index_on_a_filled_window_finds_what_was_there_and_what_comes(
    begin: tuple[tuple[int, ...], ...], first_id: int
) -> None:
    """The window has grown, turned and lost rows before."""
    rng = np.random.default_rng(6)
    model = Model(begin, tuning=Tuning(first_id=first_id))

    def more() -> None:
        codes = {c: rng.integers(0, 3, 100) for c in (0, 1)}
        model.append(model.cutoff + rng.integers(0, 30, 100), codes)
        model.expire(model.cutoff + 10)

    for _ in range(5):
        more()
    for added in ALL_INDEXES:
        model.window.add_index(added)
        for _ in range(2):
            for classes in model.window.indexes:
                codes = {c: rng.integers(0, 4, 20) for c in (0, 1)}
                lo = model.cutoff + rng.integers(0, 20, 20)
                found = model.probe(classes, codes, lo, lo + 5, 1000)
                assert found == model.expected(classes, codes, lo, lo + 5)
                assert found
            more()
            model.check()


@pytest.mark.parametrize("first_id", FIRST_IDS)
def test_an_index_can_go_and_come_back(first_id: int) -> None:
    """What only its nodes kept of a row, the window keeps elsewhere meanwhile."""
    rng = np.random.default_rng(7)
    model = Model(ALL_INDEXES, tuning=Tuning(first_id=first_id))

    def more() -> None:
        codes = {c: rng.integers(0, 3, 100) for c in (0, 1)}
        model.append(model.cutoff + rng.integers(0, 30, 100), codes)
        model.expire(model.cutoff + 10)
        model.check()

    def look(classes: tuple[int, ...]) -> None:
        codes = {c: rng.integers(0, 4, 20) for c in (0, 1)}
        lo = model.cutoff + rng.integers(0, 20, 20)
        found = model.probe(classes, codes, lo, lo + 5, 1000)
        assert found == model.expected(classes, codes, lo, lo + 5)
        assert found

    for _ in range(3):
        more()
    row_bytes = model.window.row_bytes
    for dropped in ALL_INDEXES:
        before = model.window.nbytes
        model.window.drop_index(dropped)
        model.window.drop_index(dropped)
        assert model.window.nbytes < before or not model.window.indexes
        assert model.window.row_bytes == row_bytes, "the same columns, wherever they lie"
        more()
        for classes in model.window.indexes:
            look(classes)
    for added in ALL_INDEXES:
        model.window.add_index(added)
        look(added)
        more()


def test_adding_an_index_twice_changes_nothing() -> None:
    window = Window((0, 1), [(0,)])
    window.append(np.arange(3), {0: np.arange(3), 1: np.arange(3)})
    index = window.indexes[0,]
    window.add_index((0,))
    assert window.indexes[0,] is index


def test_an_index_adds_9_bytes_a_row_to_its_time_and_key() -> None:
    """The time and the key of a row lie in the node; a second index repeats them."""
    rows = 1 << 16
    codes = {c: np.arange(rows) for c in (0, 1)}
    sizes = {}
    for indexes in ((), ((0,),), ((0,), (1,))):
        window = Window((0, 1), indexes)
        window.ring.reserve(rows)
        window.append(np.arange(rows), codes)
        capacity = window.ring.capacity
        sizes[len(indexes)] = window.ring.nbytes / capacity
        assert window.row_bytes == 24, "one time and two codes, wherever they lie"
        assert window.nbytes == window.ring.nbytes + sum(
            index.heads.nbytes for index in window.indexes.values()
        )
        for index in window.indexes.values():
            assert capacity <= len(index.heads) <= 2 * capacity
    assert sizes == {0: 24, 1: 24 + 9, 2: 24 + 9 + 17}


def test_row_bytes_counts_what_the_owner_adds() -> None:
    window = Window((0,), [(0,)], spans=True)
    assert window.row_bytes == 3 * 8
    window.ring.add_column("small", np.uint8)
    window.ring.add_column("pair", np.int64, words=2)
    assert window.row_bytes == 3 * 8 + 1 + 16


@pytest.mark.slow
def test_rows_that_come_ever_older_are_linked_anew() -> None:
    """Without it, each would have to pass all the others."""
    rows = 20_000
    window = Window((0,), [(0,)])
    for time in range(rows)[::-1]:
        window.append(np.array([time]), {0: np.zeros(1, np.int64)})
    for oldest in (0, 1, rows // 3, rows - 6):
        lo, hi = np.array([oldest]), np.array([oldest + 4])
        keys = np.zeros(1, np.int64)
        found, _, visited = window.probe((0,), keys, lo, hi, new_cursor(), 1 << 16)
        assert len(found) == 5
        assert visited <= 6 * rows**0.5
