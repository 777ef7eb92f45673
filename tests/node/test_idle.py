"""Idle streams follow the others, and nobody goes back."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.node.idle import followed
from plait.testing.examples import clique

STREAMS = tuple(
    replace(s, delay=d, idle=i)
    for s, d, i in zip(clique(3).streams, (5, 2, 0), (None, 60_000_000, 1_000), strict=True)
)


@given(
    st.lists(st.one_of(st.just(BEFORE_ALL_TIMES), st.integers(0, 100)), min_size=3, max_size=3),
    st.lists(st.integers(0, 100_000), min_size=3, max_size=3),
)
def test_floors_never_go_back_and_busy_streams_stay(newest: list[int], heard: list[int]) -> None:
    clock, floors = 100_000, [3, 90, BEFORE_ALL_TIMES]
    found = followed(STREAMS, newest, floors, heard, clock)
    assert all(after >= before for after, before in zip(found, floors, strict=True))
    assert found[0] == floors[0], "it has no timeout"
    if clock - heard[1] < 60_000:
        assert found[1] == floors[1], "it was heard of"


def test_nobody_leads_where_all_are_idle_or_unseen() -> None:
    idle, none = tuple(replace(s, idle=0) for s in STREAMS), [BEFORE_ALL_TIMES] * 3
    assert followed(idle, [9, 8, 7], none, [0, 0, 0], 50) == none
    unseen = [BEFORE_ALL_TIMES, 8, 7]
    assert followed(STREAMS, unseen, none, [100_000, 0, 0], 100_000) == none
