"""Probe orders of a join: the smallest intermediate result first (Find_MJoin_Ordering).

A new tuple of a child probes the other children one after the other; what each probe finds probes
the next. The order of one child does not concern the others. *Greedy* takes, among the children
that share a key with what is gathered, the one that leaves the fewest combinations: for k children
k² comparisons per order, k³ in all. *Exact*, for a few children, is dynamic programming over the
sets of children already gathered: 2^k steps per order. No order crosses a cross product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plait.optimize.model import Model

EXACT_CHILDREN = 5
"""The most children for which all orders are considered."""


@dataclass(frozen=True, slots=True)
class ProbeOrder:
    """The CPU of a path, and the children in the order in which it probes them."""

    cpu: float
    probes: tuple[int, ...]


def probe_order(model: Model, parts: Sequence[int], child: int) -> ProbeOrder:
    """The order for new tuples of a child: exact for a few children, greedy for many.

    >>> from plait.testing.models import chain_model
    >>> probe_order(chain_model(), (0b001, 0b010, 0b100), 2).probes
    (1, 0)
    """
    if len(parts) <= EXACT_CHILDREN:
        return exact_order(model, parts, child)
    return greedy_order(model, parts, child)


def greedy_order(model: Model, parts: Sequence[int], child: int) -> ProbeOrder:
    """The order that keeps the next intermediate result smallest at each step."""
    start = gathered = parts[child]
    left = [k for k in range(len(parts)) if k != child]
    density, known, live = model.density, model.densities, _growth(model, parts)
    cpu, order = 0.0, []
    while left:
        near = model.neighbours(gathered)
        best, least = -1, float("inf")
        for k in left:
            if near & parts[k]:
                both = gathered | parts[k]
                size = (known[both] if both in known else density(both)) * live[k]
                if size < least or best < 0:
                    best, least = k, size
        if best < 0:
            raise ValueError("the children are not connected")
        cpu += model.step_price(gathered, parts[best], start)
        gathered |= parts[best]
        left.remove(best)
        order.append(best)
    return ProbeOrder(cpu, tuple(order))


def _growth(model: Model, parts: Sequence[int]) -> list[float]:
    """The factor by which a child's time range multiplies combinations."""
    volumes = model.volumes
    return [volumes.live(part) for part in parts]


def exact_order(model: Model, parts: Sequence[int], child: int) -> ProbeOrder:
    """The cheapest of all legal orders."""
    start = parts[child]
    numbered = [(k, 1 << k, part) for k, part in enumerate(parts)]
    everything = (1 << len(parts)) - 1
    best: dict[int, tuple[float, tuple[int, ...], int]] = {1 << child: (0.0, (), start)}
    for _ in range(len(parts) - 1):
        following: dict[int, tuple[float, tuple[int, ...], int]] = {}
        for done, (cpu, order, gathered) in best.items():
            near = model.neighbours(gathered) & ~gathered
            for k, bit, part in numbered:
                if near & part and not done & bit:
                    total = cpu + model.step_price(gathered, part, start)
                    known = following.get(done | bit)
                    if known is None or total < known[0]:
                        following[done | bit] = (total, (*order, k), gathered | part)
        best = following
    if everything not in best:
        raise ValueError("the children are not connected")
    cpu, order, _ = best[everything]
    return ProbeOrder(cpu, order)
