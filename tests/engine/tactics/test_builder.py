"""Joins made from a part of a plan: what they read, what they share, and where results go."""

from __future__ import annotations

import pytest

from plait.engine.states import CombinedState
from plait.engine.tactics.builder import Builder
from plait.engine.tactics.operators import Feed
from plait.engine.windows import Windows
from plait.plan.jtree import Join, parse_shape
from plait.plan.steps import StreamSet, indexes
from plait.testing.examples import clique

QUERY = clique(4)
A, B, C, D = (frozenset({s}) for s in range(4))
AB, ABC = A | B, A | B | C
TREE = "(((a b) c) d)"


def shape(text: str) -> Join:
    found = parse_shape(QUERY, text)
    assert isinstance(found, Join)
    return found


def leaves(windows: Windows) -> dict[StreamSet, Feed]:
    return {frozenset({s}): Feed(base) for s, base in enumerate(windows.bases)}


def built(text: str = TREE) -> tuple[Builder, dict[StreamSet, Feed], Feed]:
    windows, results = Windows(QUERY, {}), Feed(None)
    below = leaves(windows)
    builder = Builder(windows, indexes(QUERY, shape(text)), below)
    builder.add(shape(text), results)
    return builder, below, results


def test_joins_are_chained_by_feeds_parents_first() -> None:
    builder, below, results = built()
    assert [str(j.join) for j in builder.joins.values()] == [TREE, "((a b) c)", "(a b)"]
    root, middle, lowest = builder.joins.values()
    assert set(builder.feeds) == {AB, ABC}
    assert root.above is results and middle.above is builder.feeds[ABC]
    assert lowest.above is builder.feeds[AB]
    assert root.inputs == [builder.feeds[ABC], below[D]]
    assert middle.inputs == [builder.feeds[AB], below[C]]
    assert lowest.inputs == [below[A], below[B]]


def test_every_feed_knows_its_readers() -> None:
    builder, below, _ = built()
    root, middle, lowest = builder.joins.values()
    assert builder.feeds[ABC].readers == [(root, 0)] and below[D].readers == [(root, 1)]
    assert builder.feeds[AB].readers == [(middle, 0)] and below[C].readers == [(middle, 1)]
    assert below[A].readers == [(lowest, 0)] and below[B].readers == [(lowest, 1)]


def test_each_input_probes_the_others_in_the_order_of_the_plan() -> None:
    for text in ("(a b c d)", "((a b) c d)", TREE):
        builder, _, _ = built(text)
        for operator in builder.joins.values():
            for c, path in enumerate(operator.paths):
                order = operator.join.orders[c]
                assert [lookup.target for lookup, _ in path] == [operator.states[t] for t in order]
                gathered = operator.states[c].streams
                for lookup, _ in path:
                    assert {stream for stream, _, _ in lookup.reach} == gathered
                    gathered |= lookup.target.streams
                counted = operator.counters.inputs[c].steps
                assert [count for _, count in path] == counted
            assert operator.counters.operator == str(operator.join)


def test_states_are_empty_and_indexed_by_what_is_probed() -> None:
    builder, _, _ = built()
    for streams, feed in builder.feeds.items():
        assert isinstance(feed.state, CombinedState)
        assert feed.state.streams == streams and len(feed.state) == 0
        assert set(feed.state.window.indexes) == set(indexes(QUERY, shape(TREE))[streams])
        assert feed.state.window.indexes


def test_a_state_that_is_shared_is_used_and_gets_the_indexes_it_lacks() -> None:
    windows = Windows(QUERY, {})
    shared = CombinedState(QUERY, AB, windows.bases, [], windows.hash_bits)
    builder = Builder(windows, indexes(QUERY, shape(TREE)), leaves(windows), {AB: shared})
    builder.add(shape(TREE), Feed(None))
    assert builder.feeds[AB].state is shared and shared.window.indexes
    assert builder.feeds[ABC].state is not shared


def test_below_a_feed_that_is_there_nothing_is_made() -> None:
    """The new box of a parallel track reads the same feed as the old one."""
    first, below, _ = built()
    old_reader = first.feeds[AB].readers[0]
    windows = first.joins[AB].windows
    new = shape("((a b) (c d))")
    second = Builder(windows, indexes(QUERY, new), below | {AB: first.feeds[AB]})
    second.add(new, Feed(None))
    root, right = second.joins.values()
    assert [str(j.join) for j in (root, right)] == ["((a b) (c d))", "(c d)"]
    assert set(second.feeds) == {C | D}
    assert first.feeds[AB].readers == [old_reader, (root, 0)]
    assert len(below[C].readers) == 2 and len(below[A].readers) == 1


def test_the_feeds_of_leaves_must_be_given() -> None:
    windows = Windows(QUERY, {})
    builder = Builder(windows, indexes(QUERY, shape(TREE)), {})
    with pytest.raises(AssertionError, match="leaf"):
        builder.add(shape(TREE), Feed(None))
