from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import StatisticsError
from plait.groups.balance.cluster import (
    ClusterSnapshot,
    GroupSnapshot,
    ProcessorSnapshot,
    Work,
    divided_work,
    pairs_of,
    part_of,
)

COUNTS = st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
KNOWN = st.builds(
    lambda arrived, stored, many, spread: GroupSnapshot(
        0, tuple(range(many)), arrived, stored, spread=spread if many > 1 else None
    ),
    COUNTS,
    COUNTS,
    st.integers(1, 4),
    st.integers(0, 2),
)


@pytest.mark.slow
@given(st.lists(st.integers(0, 50), max_size=5))
def test_pairs_are_those_of_all_streams(rows: list[int]) -> None:
    assert pairs_of(rows) == sum(a * b for a, b in combinations(rows, 2))


@given(COUNTS, st.integers(0, 2), st.integers(1, 5))
def test_parts_together_have_each_row_of_the_divided_stream_once(
    counts: tuple[int, ...], stream: int, holders: int
) -> None:
    part = part_of(counts, stream, holders)
    assert part[stream] * holders == pytest.approx(counts[stream])
    assert [n for s, n in enumerate(part) if s != stream] == [
        n for s, n in enumerate(counts) if s != stream
    ]
    assert part_of(counts, None, holders) == counts


@given(st.floats(0.01, 100), st.integers(0, 1000), st.lists(KNOWN, min_size=1, max_size=5))
def test_the_work_of_all_groups_is_that_of_the_processor(
    seconds: float, results: int, groups: list[GroupSnapshot]
) -> None:
    works = [w for w in divided_work(seconds, results, groups) if w is not None]
    came = any(sum(g.arrived or ()) for g in groups)
    assert len(works) == len(groups)
    assert sum(w.total for w in works) == pytest.approx(seconds if came else 0.0)
    assert all(w.rows >= 0 and w.matches >= 0 for w in works)


def test_rows_and_matches_are_weighed_by_how_many_there_are() -> None:
    """30 rows and 70 results: of each second, 0.3 go to rows and 0.7 to matches."""
    many_rows = GroupSnapshot(0, (0,), arrived=(20, 0), stored=(10, 10))
    many_pairs = GroupSnapshot(1, (0,), arrived=(10, 0), stored=(30, 30))
    first, second = divided_work(10.0, 70, [many_rows, many_pairs])
    assert first is not None and second is not None
    assert first == pytest.approx(Work(2.0, 0.7)) and second == pytest.approx(Work(1.0, 6.3))


def test_a_spread_group_counts_with_what_is_here() -> None:
    """Of stream 0 a half is here, and of stream 1 all."""
    spread = GroupSnapshot(0, (0, 1), arrived=(40, 10), stored=(4, 5), spread=0)
    whole = GroupSnapshot(1, (0,), arrived=(20, 10), stored=(2, 5))
    first, second = divided_work(1.0, 10, [spread, whole])
    assert first == second


def test_what_is_measured_is_not_estimated() -> None:
    measured = GroupSnapshot(0, (0,), arrived=(10, 10), stored=(10, 10), work=4.0)
    other = GroupSnapshot(1, (0,), arrived=(10, 10), stored=(10, 10))
    found, estimated = divided_work(2.0, 40, [measured, other])
    assert found == Work(2.0, 2.0) and estimated == Work(0.5, 0.5)
    assert divided_work(None, None, [measured]) == [Work(4.0, 0.0)]


def test_unknown_is_unknown() -> None:
    known = GroupSnapshot(0, (0,), arrived=(10, 10), stored=(10, 10))
    for unknown in (GroupSnapshot(1, (0,)), GroupSnapshot(1, (0,), arrived=(1, 1))):
        assert divided_work(1.0, 10, [known, unknown]) == [None, None]
    assert divided_work(1.0, None, [known]) == [None]
    assert divided_work(None, 10, [known]) == [None]
    assert divided_work(1.0, 0, [known, GroupSnapshot(1, (0,), arrived=(1, 1))]) != [None, None], (
        "without matches, stored rows do not matter"
    )


GROUPS = (
    GroupSnapshot(4, (0,), (1, 2), (3, 4), 5.0),
    GroupSnapshot(5, (0, 1), spread=1, moving=True),
)
SNAPSHOT = ClusterSnapshot(
    9.0, 1.0, (ProcessorSnapshot(0, 0.5, 10.0, 7, 3), ProcessorSnapshot(1, active=False)), GROUPS
)


def test_groups_are_listed_at_each_of_their_holders() -> None:
    assert SNAPSHOT.held() == {0: list(GROUPS), 1: [GROUPS[1]]}


def test_looks_that_make_no_sense_are_refused_by_name() -> None:
    one = ProcessorSnapshot(0)
    with pytest.raises(StatisticsError, match="one processor twice"):
        ClusterSnapshot(1.0, 1.0, (one, one), ())
    with pytest.raises(StatisticsError, match="one group twice"):
        ClusterSnapshot(1.0, 1.0, (one,), (GroupSnapshot(1, (0,)), GroupSnapshot(1, (0,))))
    with pytest.raises(StatisticsError, match="group 1 has no holder"):
        ClusterSnapshot(1.0, 1.0, (one,), (GroupSnapshot(1, ()),))
    with pytest.raises(StatisticsError, match=r"group 1 .* processor 7"):
        ClusterSnapshot(1.0, 1.0, (one,), (GroupSnapshot(1, (0, 7), spread=0),))
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(StatisticsError, match="processor 3 with seconds="):
            ProcessorSnapshot(3, seconds=wrong)
        with pytest.raises(StatisticsError, match="a snapshot with span="):
            ClusterSnapshot(1.0, wrong, (), ())
