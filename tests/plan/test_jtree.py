from __future__ import annotations

import inspect
import re
import sys
from dataclasses import replace

import pytest

from plait.errors import PlanError, UnknownStream
from plait.plan.jtree import Join, Leaf, Node, check_plan, joined, joins, mjoin, parse_shape
from plait.query.bounds import Constraint, close
from plait.testing.examples import chain, clique, cycle, keyed, star

A, B, C = map(Leaf, "abc")
AB = Join((A, B), ((1,), (0,)))


def refused(message: str) -> pytest.RaisesExc[PlanError]:
    return pytest.raises(PlanError, match=f"^{re.escape(message)}$")


def test_a_node_knows_its_streams_and_prints_its_shape() -> None:
    tree = Join((AB, C), ((1,), (0,)))
    assert tree.streams == ("a", "b", "c")
    assert str(tree) == "((a b) c)"
    assert A.streams == ("a",)


def test_equal_plans_are_equal_values() -> None:
    assert Join((A, B), ((1,), (0,))) == AB
    assert len({AB, Join((A, B), ((1,), (0,)))}) == 1
    assert Join((B, A), ((1,), (0,))) != AB


@pytest.mark.parametrize(("children", "shape"), [((), "()"), ((A,), "(a)")])
def test_a_join_has_two_children(children: tuple[Node, ...], shape: str) -> None:
    with refused(f"the join {shape} has fewer than two children"):
        Join(children, ((),) * len(children))


def test_a_join_has_an_order_for_each_child() -> None:
    with refused(
        "the join (a b c) has 3 children but 2 probe orders; give one order for each child"
    ):
        Join((A, B, C), ((1, 2), (0, 2)))


@pytest.mark.parametrize("order", [(), (1,), (1, 1), (0, 1), (1, 2, 2), (1, 3), (-1, 1)])
def test_an_order_names_every_other_child_once(order: tuple[int, ...]) -> None:
    with refused(
        f"the probe order {list(order)} of child 0 (a) in (a b c) does not name every other child "
        "once"
    ):
        Join((A, B, C), (order, (0, 2), (0, 1)))


def test_joins_come_children_first() -> None:
    tree = parse_shape(clique(5), "((a b) (c (d e)))")
    shapes = [str(join) for join in joins(tree)]
    assert shapes == ["(a b)", "(d e)", "(c (d e))", "((a b) (c (d e)))"]
    assert list(joins(A)) == []


def test_default_orders_follow_the_keys() -> None:
    assert mjoin(chain(4)).orders == ((1, 2, 3), (0, 2, 3), (1, 0, 3), (2, 1, 0))
    assert mjoin(star(4)).orders == ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))
    assert joined(chain(4), (AB, Leaf("d"), C)).orders == ((2, 1), (2, 0), (0, 1))


def test_default_orders_take_the_tightest_bound_first() -> None:
    widths = {(0, 1): 9, (0, 2): 5, (1, 2): 7}
    pairs = [Constraint(i, j, w) for a, w in widths.items() for i, j in (a, a[::-1])]
    query = replace(clique(3), bounds=close("abc", pairs))
    assert mjoin(query).orders == ((2, 1), (2, 0), (0, 1))


def test_a_join_of_strangers_is_refused() -> None:
    with refused(
        "c shares no key with what is gathered before it in (a c); join it elsewhere in the tree"
    ):
        joined(chain(3), (A, C))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("(a b c)", "(a b c)"),
        ("((a b) c)", "((a b) c)"),
        (" ( c,(b a) )\n", "(c (b a))"),
        ("(a(b)c)", None),
    ],
)
def test_a_shape_is_read_as_it_is_printed(text: str, shape: str | None) -> None:
    if shape is None:
        with refused("the join (b) has fewer than two children"):
            parse_shape(clique(3), text)
    else:
        assert str(parse_shape(clique(3), text)) == shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the shape '' ends too early; close every '('"),
        ("((a b) c", "the shape '((a b) c' ends too early; close every '('"),
        (")", "there is a ')' too many in the shape ')'"),
        ("(a b c))", "the shape '(a b c))' goes on after its end: )"),
        ("(a b) c", "the shape '(a b) c' goes on after its end: c"),
        ("()", "the join () has fewer than two children"),
        ("(a b)", "the plan (a b) lacks the stream 'c'"),
        ("((a b) (b c))", "the plan ((a b) (b c)) has the stream 'b' twice"),
        ("a", "the plan a lacks the stream 'b'"),
    ],
)
def test_a_broken_shape_is_refused(text: str, message: str) -> None:
    with refused(message):
        parse_shape(clique(3), text)


def test_a_shape_names_streams_of_the_query() -> None:
    with pytest.raises(UnknownStream, match="there is no stream 'x'"):
        parse_shape(clique(3), "(a b x)")


def test_a_plan_has_no_other_streams() -> None:
    plan = Join((A, Leaf("bb")), ((1,), (0,)))
    with refused(
        "the plan (a bb) has a stream 'bb' that the query does not have; "
        "did you mean 'b'? known: a, b"
    ):
        check_plan(clique(2), plan)


def test_a_cross_product_is_refused_where_it_happens() -> None:
    across = Join((A, B, C), ((2, 1), (0, 2), (1, 0)))
    check_plan(cycle(3), across)
    with refused(
        "in (a b c), a tuple of a probes c before anything shares a key with it: a cross product; "
        "change the probe order"
    ):
        check_plan(chain(3), across)


def test_a_cross_product_below_is_refused() -> None:
    inner = Join((A, C), ((1,), (0,)))
    with refused(
        "in (a c), a tuple of a probes c before anything shares a key with it: a cross product; "
        "change the probe order"
    ):
        check_plan(chain(3), Join((inner, B), ((1,), (0,))))


def test_a_key_may_tie_a_joined_pair_to_a_third() -> None:
    query = keyed("x", "xy", "y")
    check_plan(query, Join((AB, C), ((1,), (0,))))


@pytest.mark.slow
@pytest.mark.parametrize("levels", [4, 3_000, 1_000_000])
def test_a_shape_of_more_levels_than_streams_is_refused(levels: int) -> None:
    query = chain(3)
    for text in ("(" * levels + "a" + ")" * levels, "(" * levels, "(a " * levels):
        with pytest.raises(PlanError, match="nested deeper than 3 levels"):
            parse_shape(query, text)


@pytest.mark.slow
def test_a_stream_that_is_there_very_often_is_refused_at_once() -> None:
    # Probe orders of so many children would take days.
    with pytest.raises(PlanError, match=r"^the plan \(a b b b .*… has the stream 'b' twice$"):
        parse_shape(clique(3), f"(a {'b ' * 100_000})")


def test_a_shape_that_the_stack_does_not_hold_is_refused() -> None:
    query = chain(20)
    first, *others = query.names
    shape = "(" * 19 + first + "".join(f" {name})" for name in others)
    assert str(parse_shape(query, shape)) == shape
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 20)
    try:
        with pytest.raises(PlanError, match="nested too deeply"):
            parse_shape(query, shape)
    finally:
        sys.setrecursionlimit(usual)
