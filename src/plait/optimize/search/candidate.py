"""Candidates of a search: stream sets, costs, and the best known join of some parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plait.optimize.model import Cost, Model
from plait.optimize.search.orders import probe_order
from plait.plan.jtree import Join, Leaf, Node

NOTHING = Cost(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subplan: its streams, and its cost with everything below it.

    The state that keeps its results is paid for by the join above it.
    """

    streams: int
    cost: Cost
    children: tuple[Candidate, ...] = ()

    @property
    def parts(self) -> tuple[int, ...]:
        """The stream sets of the children."""
        return tuple(child.streams for child in self.children)


@dataclass(frozen=True, slots=True)
class PricedJoin:
    """A join of some parts by itself: its cost and its probe orders."""

    cost: Cost
    orders: tuple[tuple[int, ...], ...]


class Joins:
    """The joins of a model, each computed once: children of ascending lowest stream."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._known: dict[tuple[int, ...], PricedJoin] = {}

    def join(self, parts: tuple[int, ...]) -> PricedJoin:
        """The join of these stream sets with its best probe orders."""
        found = self.join_unless(parts, lambda _: False)
        assert found is not None, "no cost is too much"
        return found

    def join_unless(
        self, parts: tuple[int, ...], too_much: Callable[[float], bool]
    ) -> PricedJoin | None:
        """Return the join, or None if the CPU of its first probe orders is too much already."""
        found = self._known.get(parts)
        if found is None:
            cpu, orders = 0.0, []
            for c in range(len(parts)):
                order = probe_order(self.model, parts, c)
                cpu += order.cpu
                if too_much(cpu):
                    return None
                orders.append(order.probes)
            cost = self.model.join_cost(parts, orders)
            found = self._known[parts] = PricedJoin(cost, tuple(orders))
        return found

    def leaf(self, stream: int) -> Candidate:
        """The window of a stream."""
        return Candidate(1 << stream, NOTHING)

    def leaves(self) -> list[Candidate]:
        """The windows of all streams."""
        return [self.leaf(i) for i in range(self.model.size)]

    def combine(self, children: Sequence[Candidate]) -> Candidate:
        """The join of some subplans.

        >>> from plait.testing.models import chain_model
        >>> joins = Joins(chain_model())
        >>> joins.combine(joins.leaves()).cost.tuples
        600.0
        """
        ordered = sorted(children, key=lambda c: c.streams & -c.streams)
        own = self.join(tuple(c.streams for c in ordered)).cost
        cpu, tuples, size = own.cpu, own.tuples, own.bytes
        streams = 0
        for child in ordered:
            streams |= child.streams
            cpu += child.cost.cpu
            tuples += child.cost.tuples
            size += child.cost.bytes
        return Candidate(streams, Cost(cpu, tuples, size), tuple(ordered))

    def mjoin(self) -> Candidate:
        """The plan without intermediate states, with greedy probe orders."""
        return self.combine(self.leaves())

    def plan(self, candidate: Candidate) -> Node:
        """The plan that an engine runs."""
        if not candidate.children:
            return Leaf(self.model.query.names[candidate.streams.bit_length() - 1])
        orders = self.join(candidate.parts).orders
        return Join(tuple(self.plan(child) for child in candidate.children), orders)


def inner(candidate: Candidate) -> Iterator[Candidate]:
    """The joins below the root: those whose results are kept in a state."""
    for child in candidate.children:
        if child.children:
            yield child
            yield from inner(child)


def kind(candidate: Candidate) -> str:
    """The paper's name for such a plan: mjoin, binary tree or jtree."""
    if not any(child.children for child in candidate.children):
        return "mjoin"
    nodes = [candidate, *inner(candidate)]
    return "binary tree" if all(len(n.children) == 2 for n in nodes) else "jtree"
