"""Idle streams follow the others, and nobody goes back."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from plait.engine.times import BEFORE_ALL_TIMES
from plait.node.idle import progressed
from plait.plan.examples import clique

STREAMS = tuple(
    replace(s, delay=d, idle=i)
    for s, d, i in zip(clique(3).streams, (5, 2, 0), (None, 60_000_000, 1_000), strict=True)
)


@given(
    st.lists(st.one_of(st.just(BEFORE_ALL_TIMES), st.integers(0, 100)), min_size=3, max_size=3),
    st.lists(st.integers(0, 100_000), min_size=3, max_size=3),
)
def test_time_never_goes_back_and_busy_streams_stay(newest: list[int], heard: list[int]) -> None:
    clock = 100_000
    found = progressed(STREAMS, newest, heard, clock)
    assert all(after >= before for after, before in zip(found, newest, strict=True))
    assert found[0] == newest[0], "it has no timeout"
    if clock - heard[1] < 60_000:
        assert found[1] == newest[1], "it was heard of"


def test_nobody_leads_where_all_are_idle_or_unseen() -> None:
    idle = tuple(replace(s, idle=0) for s in STREAMS)
    assert progressed(idle, [9, 8, 7], [0, 0, 0], 50) == [9, 8, 7]
    unseen = [BEFORE_ALL_TIMES, 8, 7]
    assert progressed(STREAMS, unseen, [100_000, 0, 0], 100_000) == unseen
