from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import PlanError
from plait.plan.diff import PlanDiff, StateDiff, diff
from plait.plan.jtree import Join, Leaf, Node, joins, mjoin, parse_shape
from plait.plan.steps import indexes, stream_set
from plait.query.query import Query
from plait.testing.examples import chain, clique, cycle, keyed, star
from plait_lab.exhaustive.plans import canonical, sample_plan

QUERIES = [clique(4), chain(5), star(5), cycle(5), keyed("x", "xy", "y", "yxz", "z")]


def between(query: Query, old: str, new: str) -> PlanDiff:
    return diff(query, parse_shape(query, old), parse_shape(query, new))


def named(query: Query, states: tuple[StateDiff, ...]) -> list[str]:
    return ["".join(query.names[i] for i in sorted(s.streams)) for s in states]


def test_the_papers_example() -> None:
    """Figure 5 of CAPE: base windows match, BC and BCD are recomputed, AB and ABC discarded."""
    query = clique(4)
    d = between(query, "(((a b) c) d)", "(a ((b c) d))")
    assert named(query, d.kept + d.moved) == ["a", "b", "c", "d"]
    assert named(query, d.recomputed) == ["bc", "bcd"]
    assert named(query, d.dropped) == ["ab", "abc"]
    assert d.reordered == ()
    assert not d.same


def test_a_state_is_matched_whatever_is_below_it() -> None:
    query = clique(4)
    d = between(query, "(((a b) c) d)", "((a (b c)) d)")
    assert "abc" in named(query, d.kept)
    assert named(query, d.recomputed) == ["bc"]
    (bc,) = d.recomputed
    assert bc.new is not None
    assert bc.new.sources == (frozenset({1}), frozenset({2}))


def test_a_state_that_needs_another_index_is_moved() -> None:
    query = chain(4)
    d = between(query, "((a b) (c d))", "(((a b) c) d)")
    (c,) = [s for s in d.states if s.streams == {2}]
    assert c.fate == "moved"
    assert c.built == ((1,),)
    assert c.freed == ((2,),)


def test_a_state_under_the_same_operator_with_other_keys_is_moved() -> None:
    query = keyed("xy", "x", "xy")
    other = Join((Leaf("a"), Leaf("b"), Leaf("c")), ((2, 1), (2, 0), (1, 0)))
    d = diff(query, mjoin(query), other)
    assert [(s.fate, len(s.built), len(s.freed)) for s in d.states] == [
        ("moved", 0, 1),
        ("kept", 0, 0),
        ("moved", 1, 0),
    ]
    assert len(d.reordered) == 3


def test_probe_orders_alone() -> None:
    query = clique(3)
    other = Join((Leaf("a"), Leaf("b"), Leaf("c")), ((1, 2), (2, 0), (0, 1)))
    d = diff(query, mjoin(query), other)
    assert len(d.kept) == 3
    (r,) = d.reordered
    assert (r.join, r.child) == (frozenset({0, 1, 2}), frozenset({1}))
    assert (r.old, r.new) == ((frozenset({0}), frozenset({2})), (frozenset({2}), frozenset({0})))
    assert not d.same


def test_orders_of_different_children_are_not_compared() -> None:
    query = clique(4)
    assert between(query, "(a b c d)", "((a b) c d)").reordered == ()


def test_a_mirror_image_is_the_same() -> None:
    d = between(clique(4), "((a b) (c d))", "((d c) (b a))")
    assert d.same
    assert str(d).endswith("nothing changes")


def test_both_plans_are_checked() -> None:
    query = chain(3)
    wrong = Join((Leaf("a"), Leaf("b")), ((1,), (0,)))
    for old, new in ((mjoin(query), wrong), (wrong, mjoin(query))):
        with pytest.raises(PlanError, match="lacks the stream 'c'"):
            diff(query, old, new)


def test_golden(golden: Callable[[str, str], None]) -> None:
    query = keyed("x", "xy", "y", "yxz", "z")
    texts = [
        between(query, "((a b) c (d e))", "((((a b) c) d) e)"),
        between(query, "(a b c d e)", "((a b) c d e)"),
        between(query, "((a b) c (d e))", "((e d) c (b a))"),
        diff(
            query,
            mjoin(query),
            Join(
                tuple(map(Leaf, "abcde")),
                ((3, 4, 1, 2), (0, 2, 3, 4), (1, 0, 3, 4), (4, 0, 1, 2), (3, 0, 1, 2)),
            ),
        ),
    ]
    golden("diff.txt", "\n\n".join(map(str, texts)))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Query, Node, Node]:
    query = draw(st.sampled_from(QUERIES))
    old, new = (sample_plan(query, Random(draw(st.integers(0, 10**6)))) for _ in range(2))
    return query, old, new


def states_of(query: Query, plan: Node) -> set[frozenset[int]]:
    return {stream_set(query, child) for join in joins(plan) for child in join.children}


@settings(deadline=None)
@given(pairs())
def test_every_state_has_one_fate(case: tuple[Query, Node, Node]) -> None:
    query, old, new = case
    d = diff(query, old, new)
    before, after = states_of(query, old), states_of(query, new)
    assert {s.streams for s in d.kept + d.moved} == before & after
    assert {s.streams for s in d.recomputed} == after - before
    assert {s.streams for s in d.dropped} == before - after
    assert len(d.states) == len(before | after)
    for stream in range(len(query.streams)):
        assert any(s.streams == {stream} for s in d.kept + d.moved)


@settings(deadline=None)
@given(pairs())
def test_what_is_recomputed_comes_after_its_sources(case: tuple[Query, Node, Node]) -> None:
    query, old, new = case
    d = diff(query, old, new)
    ready = {s.streams for s in d.kept + d.moved}
    for state in d.recomputed:
        assert state.new is not None
        assert set(state.new.sources) <= ready
        assert frozenset().union(*state.new.sources) == state.streams
        ready.add(state.streams)
    assert ready == states_of(query, new)


@settings(deadline=None)
@given(pairs())
def test_built_and_freed_turn_the_old_indexes_into_the_new(
    case: tuple[Query, Node, Node],
) -> None:
    query, old, new = case
    before, after = indexes(query, old), indexes(query, new)
    for s in diff(query, old, new).states:
        have, need = set(before.get(s.streams, ())), set(after.get(s.streams, ()))
        assert have - set(s.freed) | set(s.built) == need
        assert s.fate != "kept" or not (s.built or s.freed)


@settings(deadline=None)
@given(pairs())
def test_the_way_back_is_the_mirror_image(case: tuple[Query, Node, Node]) -> None:
    query, old, new = case
    there, back = diff(query, old, new), diff(query, new, old)
    assert [s.streams for s in there.recomputed] == [s.streams for s in back.dropped]
    assert [s.streams for s in there.kept] == [s.streams for s in back.kept]
    assert {(r.join, r.child, r.old, r.new) for r in there.reordered} == {
        (r.join, r.child, r.new, r.old) for r in back.reordered
    }


@settings(deadline=None)
@given(pairs())
def test_same_means_equal_up_to_mirror_images(case: tuple[Query, Node, Node]) -> None:
    query, old, new = case
    equal = canonical(query, old) == canonical(query, new)
    assert diff(query, old, new).same == equal
    assert diff(query, old, canonical(query, old)).same
