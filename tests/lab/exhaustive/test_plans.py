"""The enumeration against brute force that knows nothing of graphs: it tries everything.

The reference takes every nested set of streams and every permutation, and asks whether streams
that meet have a column in common, from the columns alone.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice, permutations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import PlanError
from plait.plan.jtree import Join, Leaf, Node, check_plan, joins, mjoin, parse_shape
from plait.query.query import Query
from plait.testing.examples import chain, clique, cycle, keyed, star
from plait_lab.exhaustive.plans import (
    all_orders,
    all_plans,
    all_shapes,
    binary_trees,
    canonical,
    left_deep,
    left_deep_trees,
    sample_plan,
)

Nested = str | frozenset["Nested"]
SMALL = [
    *(graph(n) for graph in (clique, chain, star, cycle) for n in (2, 3, 4, 5)),
    keyed("x", "xy", "y", "yxz", "z"),
    keyed("x", "x", "xy", "y"),
]


def partitions(items: tuple[str, ...]) -> Iterator[list[tuple[str, ...]]]:
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [items[:1], *rest]
        for n, block in enumerate(rest):
            yield [*rest[:n], (items[0], *block), *rest[n + 1 :]]


def nested(items: tuple[str, ...]) -> Iterator[Nested]:
    if len(items) == 1:
        yield items[0]
        return
    for blocks in partitions(items):
        if len(blocks) > 1:
            for parts in product(*(list(nested(block)) for block in blocks)):
                yield frozenset(parts)


def names_in(tree: Nested) -> set[str]:
    return {tree} if isinstance(tree, str) else set().union(*map(names_in, tree))


def meet(query: Query, left: set[str], right: set[str]) -> bool:
    columns = {s.name: {f.name for f in s.fields} - {"ts"} for s in query.streams}
    return any(columns[a] & columns[b] for a in left for b in right)


def legal(query: Query, tree: Nested) -> bool:
    """Whether the parts of each join can be put in a row in which each meets an earlier one."""
    if isinstance(tree, str):
        return True
    parts = list(map(names_in, tree))
    return all(legal(query, part) for part in tree) and any(
        all(meet(query, set().union(*row[:n]), row[n]) for n in range(1, len(row)))
        for row in permutations(parts)
    )


def as_nested(node: Node) -> Nested:
    return node.stream if isinstance(node, Leaf) else frozenset(map(as_nested, node.children))


@pytest.mark.parametrize("query", SMALL, ids=lambda q: str(len(q.streams)))
def test_shapes_are_all_and_only_the_legal_trees(query: Query) -> None:
    expected = {tree for tree in nested(query.names) if legal(query, tree)}
    shapes = list(all_shapes(query))
    assert {as_nested(shape) for shape in shapes} == expected
    assert len(shapes) == len(expected)
    for shape in shapes:
        check_plan(query, shape)
        assert canonical(query, shape) == shape
        assert parse_shape(query, str(shape)) == shape


def count(plans: Iterator[Node]) -> int:
    return sum(1 for _ in plans)


@pytest.mark.slow
def test_known_numbers_of_shapes() -> None:
    # Total partitions (A000311), little Schroeder numbers (A001003), Fubini numbers (A000670).
    assert [count(all_shapes(clique(n))) for n in range(2, 7)] == [1, 4, 26, 236, 2752]
    assert [count(all_shapes(chain(n))) for n in range(2, 8)] == [1, 3, 11, 45, 197, 903]
    assert [count(all_shapes(star(n))) for n in range(2, 7)] == [1, 3, 13, 75, 541]


def test_known_numbers_of_binary_trees() -> None:
    # Double factorials (A001147), Catalan numbers (A000108), factorials.
    assert [count(binary_trees(clique(n))) for n in range(2, 7)] == [1, 3, 15, 105, 945]
    assert [count(binary_trees(chain(n))) for n in range(2, 8)] == [1, 2, 5, 14, 42, 132]
    assert [count(binary_trees(star(n))) for n in range(2, 7)] == [1, 2, 6, 24, 120]


def test_known_numbers_of_left_deep_trees() -> None:
    # Half the permutations of a clique; 2^(n-2) ways to grow a chain.
    assert [count(left_deep_trees(clique(n))) for n in range(2, 7)] == [1, 3, 12, 60, 360]
    assert [count(left_deep_trees(chain(n))) for n in range(2, 8)] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize("query", SMALL, ids=lambda q: str(len(q.streams)))
def test_binary_trees_are_the_shapes_with_two_children_each(query: Query) -> None:
    expected = [s for s in all_shapes(query) if all(len(j.children) == 2 for j in joins(s))]
    assert set(binary_trees(query)) == set(expected)
    assert len(list(binary_trees(query))) == len(expected)


def test_left_deep_follows_the_order() -> None:
    query = chain(4)
    plan = left_deep(query, ["c", "b", "d", "a"])
    assert str(plan) == "(((c b) d) a)"
    check_plan(query, plan)
    assert canonical(query, plan) in set(left_deep_trees(query))


@pytest.mark.parametrize("names", [[], ["a", "b"], ["a", "b", "b"], ["a", "b", "c", "d"]])
def test_left_deep_wants_every_stream_once(names: list[str]) -> None:
    message = f"the join order {', '.join(names)} does not name every stream once; streams: a, b, c"
    with pytest.raises(PlanError, match=f"^{re.escape(message)}$"):
        left_deep(chain(3), names)


def test_left_deep_refuses_a_cross_product() -> None:
    with pytest.raises(PlanError, match="c shares no key"):
        left_deep(chain(3), ["a", "c", "b"])


def orders_by_trial(query: Query, join: Join) -> set[tuple[tuple[int, ...], ...]]:
    parts = [set(child.streams) for child in join.children]

    def path_legal(row: tuple[int, ...]) -> bool:
        return all(
            meet(query, set().union(*(parts[k] for k in row[:n])), parts[row[n]])
            for n in range(1, len(row))
        )

    rows = list(filter(path_legal, permutations(range(len(parts)))))
    return set(product(*([row[1:] for row in rows if row[0] == c] for c in range(len(parts)))))


@pytest.mark.parametrize(
    "query", [clique(3), chain(4), star(4), cycle(4), keyed("x", "x", "xy", "y")]
)
def test_orders_are_all_and_only_the_legal_ones(query: Query) -> None:
    for shape in all_shapes(query):
        versions = list(all_orders(query, shape))
        combinations = 1
        for join in joins(shape):
            combinations *= len(orders_by_trial(query, join))
        assert len(versions) == len(set(versions)) == combinations
        assert shape in versions
        for version in versions[:50]:
            check_plan(query, version)
            assert str(version) == str(shape)
    top = mjoin(query)
    found = {plan.orders for plan in all_orders(query, top) if isinstance(plan, Join)}
    assert found == orders_by_trial(query, top)


def test_known_numbers_of_plans() -> None:
    # A clique: 3! orders for each of 4 inputs of an mjoin; 2 for each input of a join of three.
    assert count(all_orders(clique(4), mjoin(clique(4)))) == 6**4
    assert count(all_plans(clique(3))) == 2**3 + 3
    # Three children: 6 pairs below + 4 triples below, or within; two children: all others.
    assert count(all_plans(clique(4))) == 6**4 + 6 * 8 + 4 * 8 + 15
    assert count(all_plans(clique(4), orders="default")) == 26


def test_plans_come_lazily() -> None:
    plans = list(islice(all_plans(clique(6)), 100))
    assert len(set(plans)) == 100


def test_a_wrong_choice_of_orders_is_refused() -> None:
    with pytest.raises(ValueError, match="neither 'all' nor 'default'"):
        next(all_plans(clique(2), orders="some"))  # type: ignore[arg-type]  # wrong on purpose


def test_canonical_keeps_what_each_input_probes() -> None:
    query = clique(3)
    plan = Join((Leaf("c"), Leaf("a"), Leaf("b")), ((2, 1), (0, 2), (0, 1)))
    # c probes b then a; a probes c then b; b probes c then a.
    assert canonical(query, plan) == Join(tuple(map(Leaf, "abc")), ((2, 1), (2, 0), (1, 0)))


@pytest.mark.slow
@settings(deadline=None)
@given(st.sampled_from([g(n) for g in (clique, chain, star, cycle) for n in (2, 5, 8, 10)]))
def test_a_sampled_plan_is_legal_and_canonical(query: Query) -> None:
    random = Random(len(query.equalities))
    for _ in range(3):
        plan = sample_plan(query, random)
        check_plan(query, plan)
        assert canonical(query, plan) == plan


@pytest.mark.slow
@pytest.mark.parametrize("query", [clique(4), chain(4), star(4), cycle(4)])
def test_sampled_shapes_are_equally_likely(query: Query) -> None:
    random = Random(7)
    shapes = count(all_shapes(query))
    drawn = Counter(str(sample_plan(query, random)) for _ in range(shapes * 60))
    assert len(drawn) == shapes
    # Six standard deviations around the mean of 60.
    assert all(14 <= n <= 106 for n in drawn.values())


@pytest.mark.slow
def test_sampled_orders_are_equally_likely() -> None:
    query = star(4)
    random = Random(7)
    drawn: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(4)]
    for _ in range(4_000):
        plan = sample_plan(query, random)
        if isinstance(plan, Join) and len(plan.children) == 4:
            for counter, order in zip(drawn, plan.orders, strict=True):
                counter[order] += 1
    assert [len(counter) for counter in drawn] == [6, 2, 2, 2]
    for counter in drawn:
        mean = counter.total() / len(counter)
        assert all(abs(n - mean) < 6 * mean**0.5 for n in counter.values())


def test_the_same_seed_draws_the_same_plan() -> None:
    query = clique(8)
    assert sample_plan(query, Random(3)) == sample_plan(query, Random(3))
    assert len({sample_plan(query, Random(seed)) for seed in range(20)}) == 20


def test_sampling_ten_streams_is_cheap() -> None:
    query = clique(10)
    start = time.perf_counter()
    for seed in range(20):
        sample_plan(query, Random(seed))
    assert time.perf_counter() - start < 2
