from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.plan.jtree import Join, Node, joins, mjoin, parse_shape
from plait.plan.labels import class_labels
from plait.plan.steps import ProbeStep, indexes, on_arrival, steps, stream_set
from plait.query.expr import Call, Column, Expr, streams_of
from plait.query.query import Query
from plait.testing.examples import chain, clique, cycle, keyed, star, trades_quotes_news
from plait_lab.exhaustive.plans import sample_plan


def with_residuals(query: Query) -> Query:
    """The query with a condition over every set of one, two and three streams."""
    found: list[Expr] = [
        Call("is_null", (Call("coalesce", tuple(Column(s, "ts") for s in names)),))
        for size in (1, 2, 3)
        for names in combinations(query.names, size)
    ]
    return replace(query, residuals=tuple(found))


QUERIES = [
    with_residuals(query)
    for query in (clique(4), chain(5), star(5), cycle(5), keyed("x", "xy", "y", "yxz", "z"))
]


@st.composite
def plans(draw: st.DrawFn) -> tuple[Query, Node]:
    query = draw(st.sampled_from(QUERIES))
    return query, sample_plan(query, Random(draw(st.integers(0, 10**6))))


def as_join(plan: Node) -> Join:
    assert isinstance(plan, Join)
    return plan


def test_an_mjoin_checks_a_condition_as_soon_as_both_sides_are_there() -> None:
    query = trades_quotes_news
    plan = mjoin(query)
    assert steps(query, plan, 0) == (ProbeStep(1, (0,), (0,)), ProbeStep(2, (0,), ()))
    assert steps(query, plan, 1) == (ProbeStep(0, (0,), (0,)), ProbeStep(2, (0,), ()))
    assert steps(query, plan, 2) == (ProbeStep(0, (0,), ()), ProbeStep(1, (0,), (0,)))


def test_a_condition_within_a_state_is_not_checked_again() -> None:
    query = trades_quotes_news
    plan = as_join(parse_shape(query, "((trades quotes) news)"))
    assert steps(query, plan, 0) == (ProbeStep(1, (0,), ()),)
    assert steps(query, plan, 1) == (ProbeStep(0, (0,), ()),)
    assert steps(query, as_join(plan.children[0]), 0) == (ProbeStep(1, (0,), (0,)),)


def test_a_condition_on_one_stream_is_checked_on_arrival() -> None:
    query = trades_quotes_news
    assert [on_arrival(query, i) for i in range(3)] == [(1,), (), ()]


def test_a_probe_uses_every_shared_key() -> None:
    query = keyed("xy", "x", "xy")
    plan = mjoin(query)
    labels = class_labels(query)

    def keys(classes: tuple[int, ...]) -> str:
        return "".join(sorted(labels[k] for k in classes))

    paths = [[keys(step.classes) for step in steps(query, plan, child)] for child in range(3)]
    assert paths == [["x", "xy"], ["x", "xy"], ["xy", "x"]]
    found = {min(s): sorted(map(keys, by)) for s, by in indexes(query, plan).items()}
    assert found == {0: ["x", "xy"], 1: ["x"], 2: ["xy"]}


def test_an_intermediate_state_has_an_index_per_key() -> None:
    query = keyed("x", "xy", "y", "yxz", "z")
    plan = parse_shape(query, "((a b) c (d e))")
    assert indexes(query, plan)[frozenset({0, 1})] == ((0, 1), (1,))


def test_a_leaf_alone_has_no_state() -> None:
    assert indexes(clique(2), mjoin(clique(2)).children[0]) == {}


@settings(deadline=None)
@given(plans())
def test_every_state_but_the_root_has_an_index(case: tuple[Query, Node]) -> None:
    query, plan = case
    nodes = [child for join in joins(plan) for child in join.children]
    found = indexes(query, plan)
    assert found.keys() == {stream_set(query, node) for node in nodes}
    assert frozenset(range(len(query.streams))) not in found
    for by in found.values():
        assert by == tuple(sorted(set(by)))
        assert by
        assert all(classes == tuple(sorted(set(classes))) and classes for classes in by)


@settings(deadline=None)
@given(plans())
def test_keys_are_the_columns_on_both_sides(case: tuple[Query, Node]) -> None:
    """Recomputed from the columns: in these queries, a key class is a column name but ts."""
    query, plan = case
    columns = [{f.name for f in s.fields} - {"ts"} for s in query.streams]
    label = class_labels(query)
    assert set(label) == set().union(*columns)
    for join in joins(plan):
        sets = [stream_set(query, child) for child in join.children]
        for child, order in enumerate(join.orders):
            gathered = set(sets[child])
            path = steps(query, join, child)
            assert tuple(step.target for step in path) == order
            for step in path:
                left = set().union(*(columns[i] for i in gathered))
                right = set().union(*(columns[i] for i in sets[step.target]))
                assert {label[k] for k in step.classes} == left & right
                gathered |= sets[step.target]


@settings(deadline=None)
@given(plans())
def test_each_condition_belongs_to_one_operator(case: tuple[Query, Node]) -> None:
    """Whatever tuple completes a combination, it has passed every condition exactly once."""
    query, plan = case
    owners = [0] * len(query.residuals)
    for join in joins(plan):
        paths = [steps(query, join, child) for child in range(len(join.children))]
        per_input = [sorted(r for step in path for r in step.residuals) for path in paths]
        assert all(checked == per_input[0] for checked in per_input)
        for r in per_input[0]:
            owners[r] += 1
    for stream in range(len(query.streams)):
        for r in on_arrival(query, stream):
            owners[r] += 1
    assert owners == [1] * len(owners)


@settings(deadline=None)
@given(plans())
def test_a_condition_is_checked_as_early_as_it_can_be(case: tuple[Query, Node]) -> None:
    query, plan = case
    for join in joins(plan):
        for child in range(len(join.children)):
            before = set(join.children[child].streams)
            for step in steps(query, join, child):
                after = before | set(join.children[step.target].streams)
                for r in step.residuals:
                    needs = streams_of(query.residuals[r])
                    assert needs <= after
                    assert not needs <= before
                before = after
