from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import PlanError
from plait.plan.jtree import Join, Leaf, Node, mjoin, parse_shape
from plait.plan.serde import VERSION, dumps, from_dict, loads, to_dict
from plait.query.query import Query
from plait.testing.examples import chain, clique, cycle, keyed, star, trades_quotes_news
from plait_lab.exhaustive.plans import all_plans, sample_plan

QUERIES = [clique(5), chain(6), star(5), cycle(5), keyed("x", "xy", "y", "yxz", "z")]
A = {"kind": "stream", "stream": "a"}
B = {"kind": "stream", "stream": "b"}


def nodes() -> st.SearchStrategy[Node]:
    """Any tree, also one that no query has: names repeat and contain anything."""

    def join(children: list[Node]) -> st.SearchStrategy[Node]:
        others = [[k for k in range(len(children)) if k != c] for c in range(len(children))]
        orders = st.tuples(*(st.permutations(o).map(tuple) for o in others))
        return orders.map(lambda o: Join(tuple(children), o))

    leaves: st.SearchStrategy[Node] = st.text(max_size=5).map(Leaf)
    return st.recursive(
        leaves, lambda below: st.lists(below, min_size=2, max_size=4).flatmap(join), max_leaves=8
    )


@settings(deadline=None)
@given(nodes())
def test_round_trip_of_any_tree(plan: Node) -> None:
    assert loads(dumps(plan)) == plan
    assert from_dict(to_dict(plan)) == plan
    assert json.loads(dumps(plan)) == to_dict(plan)


@settings(deadline=None)
@given(st.sampled_from(QUERIES), st.integers(0, 10**6))
def test_round_trip_checked_by_the_query(query: Query, seed: int) -> None:
    plan = sample_plan(query, Random(seed))
    assert loads(dumps(plan, query), query) == plan


def test_different_plans_have_different_texts() -> None:
    plans = list(all_plans(clique(3)))
    assert len({dumps(plan) for plan in plans}) == len(plans)


def test_golden(golden: Callable[[str, str], None]) -> None:
    query = keyed("x", "xy", "y", "yxz", "z")
    golden("serde_mixture.json", dumps(parse_shape(query, "((a b) c (d e))"), query))
    golden("serde_mjoin.json", dumps(mjoin(trades_quotes_news)))


def test_the_query_is_asked_when_writing_and_reading() -> None:
    plan = parse_shape(clique(3), "((a c) b)")
    with pytest.raises(PlanError, match="a cross product"):
        dumps(plan, chain(3))
    with pytest.raises(PlanError, match="a cross product"):
        loads(dumps(plan), chain(3))
    with pytest.raises(PlanError, match="lacks the stream 'd'"):
        from_dict(to_dict(plan), clique(4))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: the plan is not JSON: Expecting value"),
        ('{"version": 1,\n "plan": }', "line 2, column 10: the plan is not JSON: Expecting value"),
        ("[" * 100_000, "the plan is nested too deeply"),
        (
            '{"version": 1, "plan": '
            + '{"kind": "join", "orders": [], "children": [' * 800
            + "]}" * 800
            + "}",
            "the plan is nested too deeply",
        ),
        ('{"version": 1, "version": 1}', "the plan has the field 'version' twice in one object"),
    ],
)
def test_text_that_is_no_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=f"^{re.escape(message)}$"):
        loads(text)


def test_a_number_beyond_what_python_reads_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^the plan is not JSON: "):
        loads('{"version": 1, "plan": ' + "9" * 10_000 + "}")


def plan_of(plan: object) -> dict[str, object]:
    return {"version": VERSION, "plan": plan}


def join_of(children: object, orders: object) -> dict[str, object]:
    return {"kind": "join", "children": children, "orders": orders}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "$ is null, not an object"),
        ([], "$ is [], not an object"),
        ({"plan": A}, "$ lacks the field 'version'"),
        ({"version": 1}, "$ lacks the field 'plan'"),
        (
            {"version": 2, "graph": {}},
            "$.version is 2; this release reads version 1; write the plan again with this release",
        ),
        (
            {"version": "1", "plan": A},
            '$.version is "1"; this release reads version 1; write the plan again with this '
            "release",
        ),
        (
            {"version": True, "plan": A},
            "$.version is true; this release reads version 1; write the plan again with this "
            "release",
        ),
        (
            {"version": 1, "plan": A, "plans": []},
            "$ has an unknown field 'plans'; did you mean 'plan'? known: version, plan",
        ),
        (plan_of("a"), '$.plan is "a", not an object'),
        (plan_of({"stream": "a"}), "$.plan lacks the field 'kind'; known kinds: stream, join"),
        (plan_of({"kind": "leaf"}), '$.plan.kind is "leaf"; known: stream, join'),
        (
            plan_of({"kind": "joins"}),
            "$.plan.kind is \"joins\"; did you mean 'join'? known: stream, join",
        ),
        (plan_of({"kind": ["j"]}), '$.plan.kind is ["j"]; known: stream, join'),
        (plan_of({"kind": "stream"}), "$.plan lacks the field 'stream'"),
        (
            plan_of({"kind": "stream", "stream": 7}),
            "$.plan.stream is 7, not the name of a stream",
        ),
        (
            plan_of(A | {"orders": []}),
            "$.plan has an unknown field 'orders'; known: kind, stream",
        ),
        (plan_of({"kind": "join", "children": []}), "$.plan lacks the field 'orders'"),
        (plan_of(join_of("ab", [[1], [0]])), '$.plan.children is "ab", not a list'),
        (plan_of(join_of([A, B], {})), "$.plan.orders is {}, not a list"),
        (plan_of(join_of([A, B], [[1], 0])), "$.plan.orders[1] is 0, not a list"),
        (
            plan_of(join_of([A, B], [[1], ["a"]])),
            '$.plan.orders[1][0] is "a", not the position of a child',
        ),
        (
            plan_of(join_of([A, B], [[True], [0]])),
            "$.plan.orders[0][0] is true, not the position of a child",
        ),
        (plan_of(join_of([A], [[]])), "$.plan: the join (a) has fewer than two children"),
        (
            plan_of(join_of([A, B], [[1]])),
            "$.plan: the join (a b) has 2 children but 1 probe orders; give one order for each "
            "child",
        ),
        (
            plan_of(join_of([A, join_of([A, B], [[1], [1]])], [[1], [0]])),
            "$.plan.children[1]: the probe order [1] of child 1 (b) in (a b) does not name every "
            "other child once",
        ),
        (
            plan_of(join_of([A, join_of([A, 5], [[1], [0]])], [[1], [0]])),
            "$.plan.children[1].children[1] is 5, not an object",
        ),
        (
            plan_of("x" * 100),
            f'$.plan is "{"x" * 36}..., not an object',
        ),
    ],
)
def test_a_malformed_plan_is_refused_with_its_place(value: object, message: str) -> None:
    with pytest.raises(PlanError) as refused:
        from_dict(value)
    assert str(refused.value) == message
    with pytest.raises(PlanError) as again:
        loads(json.dumps(value))
    assert str(again.value) == str(refused.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["a", "join", "stream"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["version", "plan", "kind", "stream", "children", "orders"]), inner
        )
    ),
    max_leaves=12,
)


@st.composite
def nearly_plans(draw: st.DrawFn, depth: int = 2) -> object:
    """A plan as plain data, now and then with something else in a part of it."""
    if draw(st.integers(0, 19)) == 13:
        return draw(json_values)
    if depth == 0 or draw(st.booleans()):
        return {"kind": "stream", "stream": draw(st.sampled_from("abc"))}
    children = draw(st.lists(nearly_plans(depth - 1), min_size=2, max_size=3))
    others = [[k for k in range(len(children)) if k != c] for c in range(len(children))]
    orders = [draw(st.permutations(each)) for each in others]
    return {"kind": "join", "children": children, "orders": orders}


@settings(deadline=None)
@given(json_values | nearly_plans())
def test_whatever_is_read_is_a_plan_or_a_plan_error(value: object) -> None:
    for whole in (value, plan_of(value)):
        try:
            plan = from_dict(whole)
        except PlanError:
            continue
        assert to_dict(plan) == whole
