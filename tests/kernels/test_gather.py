"""Gathering kernels against the same in numpy or plain Python."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.kernels.gather import (
    copy_bytes,
    keep_equal,
    keep_near,
    lengths_to_offsets,
    take,
    take_bytes,
    tighten,
    widen,
)
from plait.kernels.jit import Bytes, Ints, Positions

NOWHERE: Positions = np.empty(0, np.int32)
POSITIONS: Positions = np.array([3, 0, 0, 2, 3], np.int32)
TIMES: Ints = np.array([10, 20, -30, 2**61], np.int64)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32], ids=str
)
def test_take_is_indexing(dtype: type[np.generic]) -> None:
    values: np.ndarray[Any, Any] = np.array([1, 2, 3, 100], dtype)
    assert take(values, POSITIONS).tolist() == [100, 1, 1, 3, 100]
    assert take(values, POSITIONS).dtype == dtype
    assert take(values, NOWHERE).tolist() == []


def test_take_from_a_column_of_a_table() -> None:
    """The times of a window are every third word of its nodes."""
    nodes = np.arange(12).reshape(4, 3)
    assert take(nodes[:, 1], POSITIONS).tolist() == [10, 1, 1, 7, 10]


def test_tighten_narrows_to_what_every_partner_allows() -> None:
    lo, hi = np.array([0, -(2**62), 12, 0, 0]), np.array([2**62, 15, 2**62, 0, 0])
    tighten(lo, hi, TIMES, POSITIONS, 5, 7)
    assert lo.tolist() == [2**61 - 5, 5, 12, 0, 2**61 - 5]
    assert hi.tolist() == [2**61 + 7, 15, 17, -23, 0]


def test_tighten_with_bounds_that_are_not_around_the_partner() -> None:
    """`b` between 3 and 8 after `a`: back is -3."""
    lo, hi = np.array([-(2**62)]), np.array([2**62])
    tighten(lo, hi, TIMES, np.array([0], np.int32), -3, 8)
    assert (lo[0], hi[0]) == (13, 18)


def test_widen_extends_to_contain_every_part() -> None:
    latest, earliest = np.array([0, 15, 10, 0, 0]), np.array([0, 15, 10, 0, 0])
    widen(latest, earliest, TIMES, POSITIONS)
    assert latest.tolist() == [2**61, 15, 10, 0, 2**61]
    assert earliest.tolist() == [0, 10, 10, -30, 0]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=10),
    st.integers(-2, 4),
    st.integers(-2, 4),
)
def test_oracle_keep_near(pairs: list[tuple[int, int, bool]], back: int, ahead: int) -> None:
    left, right = np.array([10, 11, 13, 12]), np.array([9, 12, 13, 14])
    keep: Bytes = np.array([k for _, _, k in pairs], np.uint8)
    rows = (np.array([pair[i] for pair in pairs], np.int32) for i in (0, 1))
    left_rows, right_rows = rows
    keep_near(keep, left, left_rows, right, right_rows, back, ahead)
    assert keep.tolist() == [k and -back <= right[r] - left[l_] <= ahead for l_, r, k in pairs]


def test_keep_equal_never_brings_back_what_was_refused() -> None:
    keep: Bytes = np.array([1, 0, 1, 0], np.uint8)
    left, right = np.array([7, 8]), np.array([8, 7, 2**62])
    zeros, places = np.zeros(4, np.int32), np.array([1, 1, 0, 2], np.int32)
    keep_equal(keep, left, zeros, right, places)
    assert keep.tolist() == [1, 0, 0, 0]


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=8), st.data())
def test_oracle_strings_are_gathered_and_copied(strings: list[bytes], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=12))
    base = data.draw(st.sampled_from((0, 1000, 2**40)))
    heap: Bytes = np.frombuffer(b"??" + b"".join(strings) + b"?", np.uint8)
    lengths: Ints = np.array([len(s) for s in strings], np.int64)
    starts = 2 + np.cumsum(lengths) - lengths
    positions: Positions = np.array(rows, np.int32)
    offsets = lengths_to_offsets(lengths, positions)
    taken = take_bytes(heap, starts + base, base, positions, offsets).tobytes()
    wanted = [strings[row] for row in rows]
    assert taken == b"".join(wanted)
    ends = offsets.tolist()
    assert [taken[a:b] for a, b in pairwise(ends)] == wanted

    target: Bytes = np.zeros(len(taken) + 7, np.uint8)
    where = copy_bytes(heap, starts[rows], lengths[rows], target, 3).tolist()
    assert target.tobytes() == b"\0\0\0" + taken + b"\0\0\0\0"
    assert where == [3 + end for end in ends[:-1]]
