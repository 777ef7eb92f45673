from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.groups.balance.cluster import GroupSnapshot, Work
from plait.groups.balance.spread import best_spread, part_shares, whole_work

ROWS = st.tuples(st.integers(0, 90), st.integers(0, 90), st.integers(0, 90))
WORK = st.builds(Work, st.floats(0.1, 5.0), st.floats(0.1, 5.0))


@given(ROWS, ROWS, st.integers(0, 2), st.integers(2, 6), WORK)
def test_the_whole_is_found_from_a_part(
    arrived: tuple[int, ...], stored: tuple[int, ...], stream: int, many: int, whole: Work
) -> None:
    group = GroupSnapshot(0, tuple(range(many)), arrived, stored, spread=stream)
    share = part_shares(group, stream, many)
    assert share is not None and 1 / many <= share.rows <= 1 and 1 / many <= share.matches <= 1
    part = Work(whole.rows * share.rows, whole.matches * share.matches)
    assert whole_work(group, part) == pytest.approx(whole)


def test_parts_together_are_more_than_the_whole() -> None:
    """Rows of the other stream are copied, so dividing the faster stream copies less."""
    group = GroupSnapshot(0, (0,), arrived=(90, 10), stored=(90, 10))
    fast, slow = part_shares(group, 0, 4), part_shares(group, 1, 4)
    assert fast == pytest.approx(Work((90 / 4 + 10) / 100, 1 / 4))
    assert slow == pytest.approx(Work((90 + 10 / 4) / 100, 1 / 4))


def test_pairs_of_other_streams_are_not_divided() -> None:
    group = GroupSnapshot(0, (0,), arrived=(1, 1, 1), stored=(2, 3, 5))
    share = part_shares(group, 0, 2)
    assert share is not None and share.matches == pytest.approx((2 * 8 / 2 + 3 * 5) / 31)


@given(
    ROWS,
    ROWS,
    WORK,
    st.lists(st.floats(0.0, 2.0), min_size=2, max_size=6),
    st.integers(1, 2),
    st.floats(0.0, 0.5),
)
def test_oracle_no_choice_is_better_by_more_than_the_slack(
    arrived: tuple[int, ...],
    stored: tuple[int, ...],
    whole: Work,
    loads: list[float],
    holders: int,
    slack: float,
) -> None:
    group = GroupSnapshot(0, tuple(range(holders)), arrived, stored)
    apart = dict(enumerate(loads))
    found = best_spread(group, whole, apart, list(apart), slack)
    assert found is not None and len(found.processors) >= 2
    left = max(apart[p] for p in group.holders)

    def slowest(stream: int, many: int) -> float:
        share = part_shares(group, stream, many)
        assert share is not None
        part = whole.rows * share.rows + whole.matches * share.matches
        return max(left, sorted(loads)[many - 1] + part)

    many = len(found.processors)
    assert sorted(apart[p] for p in found.processors) == sorted(loads)[:many], "the least loaded"
    assert found.slowest == pytest.approx(slowest(found.stream, many))
    best = min(slowest(s, k) for s in range(3) for k in range(2, len(loads) + 1))
    assert found.slowest <= best + slack + 1e-9
    fewer = [slowest(s, k) for s in range(3) for k in range(2, many)]
    assert all(other > best + slack - 1e-9 for other in fewer), "fewer would have been enough"
    share = part_shares(group, found.stream, many)
    assert share is not None
    assert found.part == pytest.approx(Work(whole.rows * share.rows, whole.matches * share.matches))


def test_of_equal_processors_those_that_have_the_group_come_first() -> None:
    group = GroupSnapshot(0, (3,), arrived=(90, 10), stored=(90, 10))
    found = best_spread(group, Work(1.0, 1.0), dict.fromkeys(range(4), 0.1), range(4), 10.0)
    assert found is not None and found.processors == (0, 3)


def test_nothing_is_spread_blindly_or_over_one() -> None:
    known = GroupSnapshot(0, (0,), arrived=(90, 10), stored=(90, 10))
    assert best_spread(known, Work(1.0, 1.0), {0: 0.1}, [0], 0.1) is None
    for unknown in (GroupSnapshot(0, (0,), (9, 1)), GroupSnapshot(0, (0,), None, (9, 1))):
        assert best_spread(unknown, Work(1.0, 1.0), {0: 0.1, 1: 0.1}, [0, 1], 0.1) is None
        assert part_shares(unknown, 0, 2) is None and whole_work(unknown, Work(1.0, 1.0)) is None
