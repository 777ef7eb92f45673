"""Boxes: the connected sub-plans in which two plans of a query differ (CAPE, section 3).

An operator is the same in both plans if it joins the same stream sets in the same probe orders.
The others form connected sub-plans, the boxes. The node above a box and the nodes below it are in
both plans, so a box has the same output and the same inputs in the old and in the new plan, and
replacing it leaves the rest of the plan as it is, states included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.plan.jtree import Join, Leaf, Node, joins
from plait.plan.labels import state_label
from plait.plan.steps import StreamSet, stream_set
from plait.query.query import Query

_Shape = dict[StreamSet, tuple[StreamSet, ...]]
"""For each child of a join, by stream set, the stream sets it probes, in this order."""


@dataclass(frozen=True, slots=True)
class Box:
    """A sub-plan to replace: what it makes, of what, and how before and after.

    `old` and `new` are the whole sub-trees, of which the box is the part above the inputs.
    """

    streams: StreamSet
    inputs: tuple[StreamSet, ...]
    old: Node
    new: Node

    def show(self, query: Query) -> str:
        """One line for people."""
        inputs = ", ".join(state_label(query, s) for s in self.inputs)
        return f"{state_label(query, self.streams)} from {inputs}: {self.old} → {self.new}"


def boxes(query: Query, old: Node, new: Node) -> tuple[Box, ...]:
    """The boxes to replace, from the root down; none if the plans do the same.

    >>> from plait.testing.examples import clique
    >>> from plait.plan.jtree import parse_shape
    >>> query = clique(4)
    >>> plans = [parse_shape(query, shape) for shape in ("(((a b) c) d)", "((a (b c)) d)")]
    >>> for box in boxes(query, *plans):
    ...     print(box.show(query))
    a⋈b⋈c from a, b, c: ((a b) c) → (a (b c))
    """
    before = {stream_set(query, join): join for join in joins(old)}
    shapes = {streams: _shape(query, join) for streams, join in before.items()}
    return tuple(_boxes(query, before, shapes, new))


def _shape(query: Query, join: Join) -> _Shape:
    sets = [stream_set(query, child) for child in join.children]
    return {s: tuple(sets[k] for k in order) for s, order in zip(sets, join.orders, strict=True)}


def _boxes(
    query: Query, before: dict[StreamSet, Join], shapes: dict[StreamSet, _Shape], node: Node
) -> Iterator[Box]:
    if isinstance(node, Leaf):
        return
    below: list[Node] = list(node.children)
    streams = stream_set(query, node)

    def same(join: Join) -> bool:
        return shapes.get(stream_set(query, join)) == _shape(query, join)

    if not same(node):
        below = []
        open_: list[Node] = list(node.children)
        while open_:
            child = open_.pop(0)
            if isinstance(child, Leaf) or same(child):
                below.append(child)
            else:
                open_ = [*child.children, *open_]
        inputs = tuple(stream_set(query, child) for child in below)
        yield Box(streams, inputs, before[streams], node)
    for child in below:
        yield from _boxes(query, before, shapes, child)
