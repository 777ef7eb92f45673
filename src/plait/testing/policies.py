"""Policies and statistics that make the adaptive loop do as much as it can, for no good reason."""

from __future__ import annotations

from random import Random

from plait.adapt.policy import Policy
from plait.optimize.statistics import Statistics
from plait.query.query import Query


def eager(half_life: float, latency: float | None) -> Policy:
    """Moves at every occasion, on any grounds, and judges at once.

    >>> eager(1.0, None).margin
    0.0
    """
    return Policy(
        half_life=half_life,
        confidence=0.0,
        margin=0.0,
        least=0.0,
        payback=0.0,
        confirm=1,
        rest=0.0,
        drift=0.0,
        look=0.0,
        effort=1.0,
        sampling=1.0,
        sample_rows=4,
        latency=latency,
        trial=0.0,
        tolerance=0.0,
        backoff=0.0,
    )


def false_statistics(query: Query, chance: Random) -> Statistics:
    """Statistics that have nothing to do with the streams, other ones each time."""
    rates = {name: 10.0 ** chance.uniform(-2, 5) for name in query.names}
    joint = {
        f"{a} {b}": 10.0 ** chance.uniform(-6, 0)
        for i, a in enumerate(query.names)
        for j, b in enumerate(query.names)
        if i < j and j in query.graph.neighbours(i)
    }
    return Statistics.of(rates, joint=joint, batch=1.0)
