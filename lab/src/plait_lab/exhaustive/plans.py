"""Every legal plan of a small query, or one of them at random.

*Shapes.* A join over the streams S splits S into two or more parts that each hang together; a part
of several streams is split again. Since S hangs together, its parts do so too, and a legal probe
order exists from every child. The children of a join come sorted by their lowest stream index, so
mirror images appear once. A clique of 2, 3, 4, 5, 6 streams has 1, 4, 26, 236, 2752 shapes.

*Orders.* A legal probe order of a child takes, at each step, a child that shares a key with those
gathered before. Their number explodes: an mjoin of a clique of 5 has 24^5.

*Sampling.* Shapes are drawn with equal chances, then probe orders of the shape with equal chances.
To do so without listing them, the shapes below each subset of streams are counted once, in 3^n
additions for n streams: at ten streams some tens of milliseconds, once per graph.

Sets of streams, and of children, are bit masks here; two streams are adjacent when they share a
key class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from random import Random
from typing import Literal

from plait.errors import PlanError
from plait.plan.jtree import Join, Leaf, Node, joined
from plait.plan.steps import stream_set
from plait.query.query import Query


def all_plans(query: Query, *, orders: Literal["all", "default"] = "all") -> Iterator[Node]:
    """Every legal plan: each shape with all its legal probe orders, or with the default ones.

    >>> from plait.testing.examples import chain
    >>> [str(plan) for plan in all_plans(chain(3), orders="default")]
    ['(a b c)', '(a (b c))', '((a b) c)']
    >>> len(list(all_plans(chain(3))))
    4
    """
    if orders not in ("all", "default"):
        raise ValueError(f"orders is {orders!r}, neither 'all' nor 'default'")
    for shape in all_shapes(query):
        yield from all_orders(query, shape) if orders == "all" else (shape,)


def all_shapes(query: Query) -> Iterator[Node]:
    """Every legal tree once, with default probe orders.

    >>> from plait.testing.examples import clique
    >>> [str(plan) for plan in all_shapes(clique(3))]
    ['(a b c)', '(a (b c))', '((a b) c)', '((a c) b)']
    """
    return _shapes(query, len(query.streams))


def binary_trees(query: Query) -> Iterator[Node]:
    """Every legal tree whose joins all have two children.

    >>> from plait.testing.examples import clique
    >>> [str(plan) for plan in binary_trees(clique(3))]
    ['(a (b c))', '((a b) c)', '((a c) b)']
    """
    return _shapes(query, 2)


def left_deep_trees(query: Query) -> Iterator[Node]:
    """Every legal binary tree in which each join has a stream as a child.

    >>> from plait.testing.examples import clique
    >>> len(list(binary_trees(clique(4)))), len(list(left_deep_trees(clique(4))))
    (15, 12)
    """

    def linear(node: Node) -> bool:
        if isinstance(node, Leaf):
            return True
        below = [child for child in node.children if isinstance(child, Join)]
        return len(below) < 2 and all(map(linear, below))

    return filter(linear, binary_trees(query))


def left_deep(query: Query, names: Sequence[str]) -> Node:
    """The binary tree that joins the streams one after the other, in this order.

    >>> from plait.testing.examples import chain
    >>> str(left_deep(chain(3), ["c", "b", "a"]))
    '((c b) a)'
    """
    if sorted(names) != sorted(query.names):
        raise PlanError(
            f"the join order {', '.join(names)} does not name every stream once",
            remedy=f"streams: {', '.join(query.names)}",
        )
    plan: Node = Leaf(names[0])
    for name in names[1:]:
        plan = joined(query, (plan, Leaf(name)))
    return plan


def all_orders(query: Query, plan: Node) -> Iterator[Node]:
    """The plan with every combination of legal probe orders.

    >>> from plait.testing.examples import clique
    >>> from plait.plan.jtree import mjoin
    >>> len(list(all_orders(clique(3), mjoin(clique(3)))))
    8
    """
    if isinstance(plan, Leaf):
        yield plan
        return
    parts = [sum(1 << i for i in stream_set(query, child)) for child in plan.children]
    linked = _links(_adjacent(query), parts)
    paths = [list(_paths(linked, c)) for c in range(len(linked))]
    below = [list(all_orders(query, child)) for child in plan.children]
    for children in product(*below):
        for orders in product(*paths):
            yield Join(children, orders)


def canonical(query: Query, plan: Node) -> Node:
    """The same plan with the children of every join sorted by their lowest stream index.

    >>> from plait.testing.examples import chain
    >>> plan = canonical(chain(3), left_deep(chain(3), ["c", "b", "a"]))
    >>> str(plan), plan.orders
    ('(a (b c))', ((1,), (0,)))
    """
    if isinstance(plan, Leaf):
        return plan
    lowest = [min(stream_set(query, child)) for child in plan.children]
    # where[n] is the child that comes to place n, place[c] the place that child c comes to.
    where = sorted(range(len(lowest)), key=lowest.__getitem__)
    place = {c: n for n, c in enumerate(where)}
    return Join(
        tuple(canonical(query, plan.children[c]) for c in where),
        tuple(tuple(place[k] for k in plan.orders[c]) for c in where),
    )


def sample_plan(query: Query, random: Random) -> Node:
    """A legal plan: each shape is as likely as any other, and so are the orders of a shape.

    >>> from plait.testing.examples import clique
    >>> str(sample_plan(clique(6), Random(1))) == str(sample_plan(clique(6), Random(1)))
    True
    """
    names, adjacent = query.names, _adjacent(query)
    count = _counter(adjacent)

    def node(part: int) -> Node:
        if part & (part - 1) == 0:
            return Leaf(names[part.bit_length() - 1])
        # Part by part: take the one with the lowest stream, weighted by what it leaves to do.
        parts, rest = [], part
        while rest:
            blocks = [b for b in _blocks(adjacent, rest) if b != part]
            weights = [count.shapes(b) * count.forests(rest ^ b) for b in blocks]
            parts.append(_weighted(random, blocks, weights))
            rest ^= parts[-1]
        linked = _links(adjacent, parts)
        ways = _completions(linked)
        return Join(
            tuple(map(node, parts)),
            tuple(_random_path(linked, ways, c, random) for c in range(len(linked))),
        )

    return node((1 << len(names)) - 1)


# --- shapes ---------------------------------------------------------------------------------------


def _shapes(query: Query, arity: int) -> Iterator[Node]:
    names, adjacent = query.names, _adjacent(query)
    known: dict[int, list[Node]] = {}

    def below(part: int) -> list[Node]:
        if part not in known:
            known[part] = list(trees(part))
        return known[part]

    def trees(part: int) -> Iterator[Node]:
        if part & (part - 1) == 0:
            yield Leaf(names[part.bit_length() - 1])
            return
        for split in _partitions(adjacent, part, arity):
            if len(split) > 1:
                # Default orders look at the stream sets only: what is below makes no difference.
                orders = joined(query, [below(block)[0] for block in split]).orders
                for children in product(*map(below, split)):
                    yield Join(children, orders)

    return trees((1 << len(names)) - 1)


def _adjacent(query: Query) -> tuple[int, ...]:
    graph = query.graph
    return tuple(sum(1 << j for j in graph.neighbours(i)) for i in range(len(query.streams)))


def _partitions(adjacent: tuple[int, ...], part: int, arity: int) -> Iterator[tuple[int, ...]]:
    """The ways to split a set into at most `arity` parts that each hang together."""
    if not part:
        yield ()
    elif arity:
        for block in _blocks(adjacent, part):
            for rest in _partitions(adjacent, part ^ block, arity - 1):
                yield block, *rest


@lru_cache(maxsize=1 << 14)
def _blocks(adjacent: tuple[int, ...], part: int) -> tuple[int, ...]:
    """The subsets of a set that contain its lowest member and hang together, ascending."""
    lowest = part & -part
    others = part ^ lowest
    found, subset = [], 0
    while True:
        if _connected(adjacent, lowest | subset):
            found.append(lowest | subset)
        subset = (subset - others) & others
        if not subset:
            return tuple(found)


@lru_cache(maxsize=1 << 14)
def _connected(adjacent: tuple[int, ...], part: int) -> bool:
    group = frontier = part & -part
    while frontier:
        reach = 0
        for i in _bits(frontier):
            reach |= adjacent[i]
        frontier = reach & part & ~group
        group |= frontier
    return group == part


class _Counter:
    """How many shapes there are below each set of streams."""

    def __init__(self, adjacent: tuple[int, ...]) -> None:
        self._adjacent = adjacent
        self.shapes = cache(self._shapes)
        self.forests = cache(self._forests)

    def _shapes(self, part: int) -> int:
        """The shapes of one tree over a set that hangs together."""
        if part & (part - 1) == 0:
            return 1
        blocks = _blocks(self._adjacent, part)
        return sum(self.shapes(b) * self.forests(part ^ b) for b in blocks if b != part)

    def _forests(self, part: int) -> int:
        """The ways to split a set into any number of trees."""
        if not part:
            return 1
        blocks = _blocks(self._adjacent, part)
        return sum(self.shapes(b) * self.forests(part ^ b) for b in blocks)


@lru_cache(maxsize=16)
def _counter(adjacent: tuple[int, ...]) -> _Counter:
    return _Counter(adjacent)


# --- probe orders ---------------------------------------------------------------------------------


def _links(adjacent: tuple[int, ...], parts: Sequence[int]) -> tuple[int, ...]:
    """For each child, the children that share a key with it."""
    linked = []
    for own in parts:
        reach = 0
        for i in _bits(own):
            reach |= adjacent[i]
        linked.append(sum(1 << k for k, other in enumerate(parts) if reach & other & ~own))
    return tuple(linked)


def _paths(linked: tuple[int, ...], child: int) -> Iterator[tuple[int, ...]]:
    """The legal probe orders of a child."""

    def onward(gathered: int, reach: int) -> Iterator[tuple[int, ...]]:
        if gathered == everything:
            yield ()
        for k in _bits(reach & ~gathered):
            for rest in onward(gathered | 1 << k, reach | linked[k]):
                yield k, *rest

    everything = (1 << len(linked)) - 1
    return onward(1 << child, linked[child])


@lru_cache(maxsize=1 << 10)
def _completions(linked: tuple[int, ...]) -> dict[int, int]:
    """For each set of gathered children, the number of ways to gather the others."""
    everything = (1 << len(linked)) - 1
    ways = {everything: 1}
    for gathered in range(everything - 1, 0, -1):
        ways[gathered] = sum(ways[gathered | 1 << k] for k in _next(linked, gathered))
    return ways


def _random_path(
    linked: tuple[int, ...], ways: dict[int, int], child: int, random: Random
) -> tuple[int, ...]:
    path: list[int] = []
    gathered = 1 << child
    while len(path) < len(linked) - 1:
        choices = list(_next(linked, gathered))
        k = _weighted(random, choices, [ways[gathered | 1 << k] for k in choices])
        path.append(k)
        gathered |= 1 << k
    return tuple(path)


def _next(linked: tuple[int, ...], gathered: int) -> Iterator[int]:
    return (k for k in _bits(~gathered & (1 << len(linked)) - 1) if linked[k] & gathered)


def _weighted(random: Random, choices: Sequence[int], weights: Sequence[int]) -> int:
    """One of the choices, in exact integers: the weights may be beyond what a float holds."""
    left = random.randrange(sum(weights))
    for choice, weight in zip(choices, weights, strict=True):
        left -= weight
        if left < 0:
            return choice
    raise AssertionError("the weights do not add up")


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
