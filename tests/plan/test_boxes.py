"""Boxes: connected sub-plans with the same output and inputs in both plans."""

from __future__ import annotations

from random import Random

import pytest

from plait.plan.boxes import boxes
from plait.plan.jtree import Join, Leaf, joins, parse_shape
from plait.plan.steps import stream_set
from plait.query.query import Query
from plait.testing.examples import chain, clique
from plait_lab.exhaustive.plans import all_plans, sample_plan


def shown(query: Query, old: str, new: str) -> list[str]:
    found = boxes(query, parse_shape(query, old), parse_shape(query, new))
    return [box.show(query) for box in found]


def test_the_same_plan_has_no_box() -> None:
    query = clique(4)
    for plan in all_plans(query, orders="default"):
        assert boxes(query, plan, plan) == ()


def test_children_in_another_order_are_no_difference() -> None:
    assert shown(clique(3), "((a b) c)", "(c (b a))") == []


def test_the_whole_plan_is_a_box() -> None:
    assert shown(clique(4), "(((a b) c) d)", "(a (b (c d)))") == [
        "a⋈b⋈c⋈d from a, b, c, d: (((a b) c) d) → (a (b (c d)))"
    ]


def test_what_is_below_a_box_is_an_input() -> None:
    assert shown(clique(5), "((((a b) c) d) e)", "((((a b) d) c) e)") == [
        "a⋈b⋈c⋈d from a⋈b, d, c: (((a b) c) d) → (((a b) d) c)"
    ]


def test_two_boxes_with_a_join_between_them() -> None:
    assert shown(clique(6), "(((a b) c) ((d e) f))", "((a (b c)) (d (e f)))") == [
        "a⋈b⋈c from a, b, c: ((a b) c) → (a (b c))",
        "d⋈e⋈f from d, e, f: ((d e) f) → (d (e f))",
    ]


def test_an_operator_with_other_probe_orders_is_a_box_of_its_own() -> None:
    query = clique(3)
    leaves = (Leaf("a"), Leaf("b"), Leaf("c"))
    old = Join(leaves, ((1, 2), (0, 2), (0, 1)))
    new = Join(leaves, ((2, 1), (0, 2), (0, 1)))
    (box,) = boxes(query, old, new)
    assert box.inputs == tuple(frozenset({i}) for i in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("graph", [clique, chain])
def test_every_operator_that_differs_is_in_one_box(graph: type) -> None:
    """And the box's output and inputs are nodes of both plans."""
    query = graph(6)
    random = Random(1)
    for _ in range(200):
        old, new = sample_plan(query, random), sample_plan(query, random)
        nodes = [
            {stream_set(query, j) for j in joins(plan)} | {frozenset({i}) for i in range(6)}
            for plan in (old, new)
        ]
        found = boxes(query, old, new)
        for box in found:
            assert frozenset().union(*box.inputs) == box.streams
            assert sum(map(len, box.inputs)) == len(box.streams), "inputs do not overlap"
            for part in (box.streams, *box.inputs):
                assert part in nodes[0] and part in nodes[1]
        within = [
            [
                j
                for j in joins(plan)
                if stream_set(query, j) <= box.streams
                and not any(stream_set(query, j) <= i for i in box.inputs)
            ]
            for plan in (old, new)
            for box in found
        ]
        gone = nodes[0] - nodes[1]
        assert gone <= {stream_set(query, j) for part in within for j in part}
