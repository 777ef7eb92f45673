"""Lanes tell streams and kinds apart, and an engine is used only for the state it belongs to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plait.engine.driver import Engine
from plait.groups.moves.lanes import FLAGGED, PLAIN, TAKEN_IN, kind_of, lane_of, stream_of
from plait.node.durable.store import Live, OwnEngines
from plait.plan.jtree import mjoin
from plait.testing.examples import clique

QUERY = clique(2)
STREAMS = st.integers(0, 1023)
KINDS = st.sampled_from([PLAIN, TAKEN_IN]) | st.builds(lambda n: FLAGGED + n, st.integers(1, 10**6))


@given(STREAMS, KINDS)
def test_a_lane_knows_its_stream_and_kind(stream: int, kind: int) -> None:
    lane = lane_of(stream, kind)
    assert (stream_of(lane), kind_of(lane)) == (stream, kind)


@given(STREAMS)
def test_plain_rows_are_where_earlier_versions_kept_them(stream: int) -> None:
    assert lane_of(stream) == stream
    assert kind_of(stream) == PLAIN


def live(token: str) -> Live:
    return Live(token, Engine(QUERY, mjoin(QUERY)))


def test_an_engine_is_given_once_and_to_its_own_state_only() -> None:
    engines, mine, other = OwnEngines(), live("one"), live("two")
    engines.put(0, mine)
    engines.put(1, other)
    assert engines.take(1, "two", QUERY) is other
    assert engines.take(0, "one", QUERY) is mine
    assert engines.take(0, "one", QUERY) is None, "whoever has it may leave it half-way"


def test_an_engine_of_another_state_is_forgotten() -> None:
    engines = OwnEngines()
    engines.put(0, live("old"))
    assert engines.take(0, "new", QUERY) is None
    assert engines.take(0, "old", QUERY) is None, "the store has gone on without it"


def test_the_newest_engine_of_a_node_replaces_the_one_before() -> None:
    engines, newer = OwnEngines(), live("newer")
    engines.put(0, live("older"))
    engines.put(0, newer)
    assert engines.take(0, "newer", QUERY) is newer


def test_an_engine_that_was_dropped_half_way_does_not_come_back() -> None:
    engines = OwnEngines()
    engines.put(0, live("one"))
    taken = engines.take(0, "one", QUERY)
    assert taken is not None
    engines.drop(0, taken)
    assert engines.take(0, "one", QUERY) is None
