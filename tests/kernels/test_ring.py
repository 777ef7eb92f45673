"""A ring against a plain list of rows, with ids that wrap around 2^32."""

from __future__ import annotations

from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.kernels.jit import Ids
from plait.kernels.ring import (
    ID_MASK,
    Ring,
    expired_prefix,
    first_positions,
    ids_of,
    last_positions,
    positions_of,
)
from plait.tuning import Tuning

FIRST_IDS = (0, 0xFFFF_FFF0, 0xFFFF_FFFF, 0x7FFF_FFF0)
SIZES = (0, 1, 2, 5, 63, 64, 65, 200)
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(("append", "drop", "shrink")), st.sampled_from(SIZES)), max_size=20
)


class Model:
    """A ring of numbered rows and the list that it stands for: (id, number) of each live row."""

    def __init__(self, first_id: int) -> None:
        self.ring = Ring(tuning=Tuning(first_id=first_id))
        self.ring.add_column("number", np.int64)
        self.ring.add_column("pair", np.int32, words=2)
        self.rows: list[tuple[int, int]] = []
        self.dropped: list[int] = []
        self._id, self._number = first_id, 0

    def append(self, n: int) -> None:
        ring = self.ring
        numbers = np.arange(self._number, self._number + n)
        self.rows += [((self._id + i) & ID_MASK, int(v)) for i, v in enumerate(numbers)]
        self._id, self._number = self._id + n, self._number + n
        ring.reserve(n)
        first, second = ring.extend(n)
        split = first.stop - first.start
        for name, values in (("number", numbers), ("pair", np.stack([numbers, -numbers], axis=1))):
            ring.columns[name][first] = values[:split]
            ring.columns[name][second] = values[split:]

    def drop(self, n: int) -> None:
        n = min(n, len(self.rows))
        self.dropped += [id_ for id_, _ in self.rows[:n]]
        self.rows = self.rows[n:]
        self.ring.drop(n)

    def check(self) -> None:
        ring, n = self.ring, len(self.rows)
        assert len(ring) == n <= ring.capacity
        assert ring.next_id == self._id & ID_MASK
        ids: Ids = np.array([id_ for id_, _ in self.rows], np.uint32)
        numbers = [number for _, number in self.rows]
        positions = positions_of(ring.header, ids)
        assert len(set(positions.tolist())) == n, "two rows in one place"
        assert ring.columns["number"][positions].tolist() == numbers
        assert ring.columns["pair"][positions].tolist() == [[v, -v] for v in numbers]
        assert ids_of(ring.header, positions).tolist() == ids.tolist()
        for size in {0, 1, n // 2, n}:
            if size <= n:
                assert last_positions(ring.header, size).tolist() == positions[n - size :].tolist()
                for start in {0, (n - size) // 2, n - size}:
                    got = first_positions(ring.header, start, size)
                    assert got.tolist() == positions[start : start + size].tolist()
        absent = self.dropped[-300:] + [(self._id + i) & ID_MASK for i in (0, 1, 1000)]
        assert set(positions_of(ring.header, np.array(absent, np.uint32)).tolist()) == {-1}


@given(OPERATIONS, st.sampled_from(FIRST_IDS))
def test_a_ring_is_a_list_that_keeps_its_ids(
    operations: list[tuple[str, int]], first_id: int
) -> None:
    model = Model(first_id)
    for operation, n in operations:
        if operation == "append":
            model.append(n)
        elif operation == "drop":
            model.drop(n)
        else:
            model.ring.shrink()
        model.check()


@pytest.mark.parametrize("first_id", FIRST_IDS)
def test_a_row_keeps_its_id_while_the_ring_turns_many_times(first_id: int) -> None:
    model = Model(first_id)
    model.append(60)
    for n in [7, 1, 30, 59, 3] * 20:
        model.drop(n)
        model.append(n)
        model.check()
    assert model.ring.capacity == 64, "a ring that keeps its size keeps its memory"


def test_a_growing_ring_has_a_sixteenth_to_spare() -> None:
    ring = Ring()
    ring.add_column("v", np.int64)
    assert not ring.reserve(64)
    assert ring.reserve(1000)
    assert ring.capacity == 1000 + 1000 // 16
    assert not ring.reserve(ring.capacity)
    assert len(ring.columns["v"]) == ring.capacity


@pytest.mark.slow
def test_growing_costs_a_few_moves_per_row() -> None:
    """Amortised: the rows copied by all resizes together stay within a multiple of the rows."""
    ring = Ring()
    ring.add_column("v", np.int8)
    moved, rows = 0, 100_000
    for _ in range(rows):
        before = len(ring)
        if ring.reserve(1):
            moved += before
        ring.extend(1)
    assert moved <= 20 * rows


def test_a_ring_three_quarters_empty_shrinks_to_its_rows() -> None:
    model = Model(5)
    model.append(1000)
    model.drop(730)
    assert not model.ring.shrink(), "more than a quarter is in use"
    model.drop(10)
    bytes_before = model.ring.nbytes
    assert model.ring.shrink()
    assert model.ring.capacity == 260 + 260 // 16
    assert model.ring.nbytes * 3 < bytes_before
    model.check()
    model.drop(260)
    assert model.ring.shrink()
    assert not model.ring.shrink()
    assert model.ring.capacity == 64, "the smallest ring there is"
    model.check()


@given(
    st.lists(st.integers(-5, 5), max_size=80),
    st.integers(0, 70),
    st.integers(-7, 7),
    st.sampled_from(FIRST_IDS),
)
def test_the_expired_prefix_ends_at_the_first_live_row(
    times: list[int], turned: int, cutoff: int, first_id: int
) -> None:
    ring = Ring(tuning=Tuning(first_id=first_id))
    ring.add_column("ts", np.int64)
    ring.extend(turned % 64)
    ring.drop(turned % 64)
    ring.reserve(len(times))
    first, second = ring.extend(len(times))
    ring.columns["ts"][np.r_[first, second]] = times
    expired = len(list(takewhile(lambda t: t < cutoff, times)))
    assert expired_prefix(ring.header, ring.columns["ts"], cutoff) == expired


def test_an_empty_ring_has_no_rows_to_find() -> None:
    ring = Ring(tuning=Tuning(first_id=0xFFFF_FFFF))
    ring.add_column("ts", np.int64)
    assert first_positions(ring.header, 0, 0).tolist() == []
    assert last_positions(ring.header, 0).tolist() == []
    assert expired_prefix(ring.header, ring.columns["ts"], 2**62) == 0
    ids: Ids = np.array([0, 0xFFFF_FFFF, 0xFFFF_FFFE], np.uint32)
    assert positions_of(ring.header, ids).tolist() == [-1, -1, -1]
