"""Policies and statistics that make the adaptive loop do as much as it can, for no good reason."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from random import Random

from plait.adapt.knowledge import Knowledge
from plait.adapt.policy import PlanPolicy
from plait.optimize.statistics import Statistics
from plait.query.query import Query


def eager(half_life: float, latency: float | None) -> PlanPolicy:
    """Moves at every occasion, on any grounds, and judges at once.

    >>> eager(1.0, None).margin
    0.0
    """
    return PlanPolicy(
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


@dataclass(frozen=True)
class Lies:
    """What a loop is told instead of what it knows: `Setting(..., believe=Lies(seed))`.

    Every process draws its own lies, so that a batch which is repeated is planned otherwise.
    """

    seed: int

    def __call__(self, knowledge: Knowledge, query: Query, least: float) -> Statistics:
        """Statistics that have nothing to do with the streams, other ones each time."""
        del knowledge, least
        return false_statistics(query, _chance(self.seed, os.getpid()))


@cache
def _chance(seed: int, process: int) -> Random:
    return Random(f"{seed}/{process}")


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
