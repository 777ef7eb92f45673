"""Who was there first, by ids that wrap around 2^32."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.kernels.arrival import behind_first, keep_first, older
from plait.kernels.jit import Ids, Positions
from plait.kernels.ring import ID_MASK, Ring, first_positions
from plait.tuning import Tuning

FIRST_IDS = (0, 0xFFFF_FFE0, 0x7FFF_FFF0)


@given(
    st.lists(st.tuples(st.integers(0, 49), st.integers(0, 3)), max_size=30),
    st.lists(st.integers(-60, 60), min_size=4, max_size=4),
    st.integers(0, 63),
    st.sampled_from(FIRST_IDS),
)
def test_oracle_rows_before_the_limit_of_their_probe(
    pairs: list[tuple[int, int]], limits: list[int], turned: int, first_id: int
) -> None:
    """50 rows, limits counted from the oldest: before it, among the rows, and beyond them."""
    ring = Ring(tuning=Tuning(first_id=(first_id - turned) & 0xFFFF_FFFF))
    ring.extend(turned)
    ring.drop(turned)
    ring.extend(50)
    places = first_positions(ring.header, 0, 50)
    ages = [age for age, _ in pairs]
    rows: Positions = places[ages] if ages else np.empty(0, np.int32)
    probes: Positions = np.array([probe for _, probe in pairs], np.int32)
    ids: Ids = np.array([(first_id + limit) & ID_MASK for limit in limits], np.uint32)
    chosen = older(ring.header, rows, probes, ids).tolist()
    assert chosen == [i for i, (age, probe) in enumerate(pairs) if age < limits[probe]]


@pytest.mark.parametrize("first_id", FIRST_IDS)
def test_a_limit_may_be_far_behind_the_oldest_row(first_id: int) -> None:
    """A tuple that waited while rows came and went finds only rows that are too new for it."""
    ring = Ring(tuning=Tuning(first_id=first_id))
    ring.extend(3)
    rows = first_positions(ring.header, 0, 3)
    for behind in (1, 1000, 2**31):
        limit: Ids = np.array([(first_id - behind) & ID_MASK], np.uint32)
        assert older(ring.header, rows, np.zeros(3, np.int32), limit).tolist() == []


@given(
    st.lists(st.integers(0, 49), max_size=30),
    st.integers(0, 60),
    st.integers(0, 63),
    st.sampled_from(FIRST_IDS),
)
def test_oracle_the_first_rows_and_those_behind_them(
    ages: list[int], n: int, turned: int, first_id: int
) -> None:
    ring = Ring(tuning=Tuning(first_id=(first_id - turned) & 0xFFFF_FFFF))
    ring.extend(turned)
    ring.drop(turned)
    ring.extend(50)
    rows = first_positions(ring.header, 0, 50)[ages] if ages else np.empty(0, np.int32)
    behind = behind_first(ring.header, rows, n).tolist()
    assert behind == [i for i, age in enumerate(ages) if age >= n]
    keep = np.array([i % 3 == 0 for i in range(len(ages))], np.uint8)
    keep_first(keep, ring.header, rows, n)
    assert keep.tolist() == [int(i % 3 == 0 or age < n) for i, age in enumerate(ages)]
