"""JTree-Finder with a Pareto frontier: per stream set, the subplans that no other one beats.

*Why it is sound.* A plan costs what its root join costs by itself plus what its subplans cost, in
CPU and in memory, and the former depends on their stream sets only. So if a subplan is no better
than another one of the same streams in either respect, exchanging it never makes a plan worse in
either: it can be forgotten. The verdict is that of the exhaustive search, and the frontier of the
whole query holds the plan with the least CPU, the one with the least memory, and every trade
between the two.

*Bounds.* Before the probe orders of a join are worked out, what it costs at least is compared with
the budget and with the frontier so far: keeping its parts, their cheapest subplans, and the pairs
that become its results. Most partitions end there; and many others after some of their orders.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from plait.optimize.budget import Budget
from plait.optimize.model import Cost
from plait.optimize.search.candidate import Candidate, Joins
from plait.optimize.search.partitions import Partitions

_ROUNDING = 1 - 1e-9

_Point = tuple[float, float, Candidate]


@dataclass(frozen=True, slots=True)
class QualifiedPlans:
    """The qualified plans that a search has found; finding none is a proof unless it `gave_up`."""

    plans: tuple[Candidate, ...]
    gave_up: bool = False
    kept: int = 0
    """Subplans kept on the way."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The least cost of a part: its cheapest subplans, and its state."""

    cpu: float
    memory: float


def pareto_finder(joins: Joins, budget: Budget, seconds: float | None = None) -> QualifiedPlans:
    """Find the qualified plans that no other plan beats, the one with the least CPU first.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> [str(joins.plan(plan)) for plan in pareto_finder(joins, Budget(unit="tuples")).plans]
    ['((a b) c)', '(a b c)']
    """
    return _Search(joins, budget, seconds).run()


class _Search:
    def __init__(self, joins: Joins, budget: Budget, seconds: float | None) -> None:
        self._joins = joins
        self._budget = budget
        self._until = None if seconds is None else time.perf_counter() + seconds
        self._partitions = Partitions(joins.model)
        self._frontiers: dict[int, list[_Point]] = {}
        self._floors: dict[int, _Part] = {}
        self._kept = 0

    def run(self) -> QualifiedPlans:
        model = self._joins.model
        for i, leaf in enumerate(self._joins.leaves()):
            self._frontiers[1 << i] = [(0.0, 0.0, leaf)]
            self._floors[1 << i] = self._floor(1 << i)
        size, any_of_size = 1, True
        for streams in self._partitions.sets:
            if streams.bit_count() == 1:
                continue
            if streams.bit_count() > size:
                if not any_of_size:
                    return QualifiedPlans((), False, self._kept)
                size, any_of_size = streams.bit_count(), False
            if self._until is not None and time.perf_counter() > self._until:
                return QualifiedPlans((), True, self._kept)
            frontier = self._frontier(streams)
            self._frontiers[streams] = frontier
            if frontier:
                self._floors[streams] = self._floor(streams)
                self._kept += len(frontier)
                any_of_size = True
        best = self._frontiers[model.all]
        return QualifiedPlans(tuple(c for _, _, c in best), False, self._kept)

    def _floor(self, streams: int) -> _Part:
        frontier = self._frontiers[streams]
        state = self._joins.model.state_cost(streams, [1])
        return _Part(frontier[0][0] + state.cpu, frontier[-1][1] + self._budget.memory_of(state))

    def _frontier(self, streams: int) -> list[_Point]:
        results = self._joins.model.results_cost(streams)
        found: list[_Point] = []
        # Depth first over the blocks of a partition, with what they cost at least so far.
        stack: list[tuple[int, tuple[int, ...], float, float]] = [(streams, (), results, 0.0)]
        while stack:
            rest, parts, cpu, memory = stack.pop()
            if self._beaten(found, cpu, memory):
                continue
            if not rest:
                self._try(streams, parts, found, _Part(cpu - results, memory))
                continue
            for block in self._partitions.by_lowest[rest & -rest]:
                if block & ~rest or block == streams:
                    continue
                floor = self._floors.get(block)
                if floor is not None:
                    stack.append(
                        (rest ^ block, (*parts, block), cpu + floor.cpu, memory + floor.memory)
                    )
        return found

    def _beaten(self, found: list[_Point], cpu: float, memory: float) -> bool:
        budget = self._budget
        if budget.cpu is not None and cpu > budget.cpu:
            return True
        if budget.memory is not None and memory > budget.memory:
            return True
        return any(c <= cpu and m <= memory for c, m, _ in found)

    def _try(
        self,
        streams: int,
        parts: tuple[int, ...],
        found: list[_Point],
        least: _Part,
    ) -> None:
        """Add the plans of a partition, given the least costs of its parts."""
        joined = self._joins.join_unless(
            parts, lambda cpu: self._beaten(found, (least.cpu + cpu) * _ROUNDING, least.memory)
        )
        if joined is None:
            return
        own = joined.cost
        sums: list[tuple[float, float, Cost, tuple[Candidate, ...]]] = [
            (own.cpu, self._budget.memory_of(own), own, ())
        ]
        for part in parts:
            longer = [
                (cpu + c, memory + m, cost + child.cost, (*children, child))
                for cpu, memory, cost, children in sums
                for c, m, child in self._frontiers[part]
            ]
            longer.sort(key=lambda s: (s[0], s[1]))
            sums, smallest = [], float("inf")
            for entry in longer:
                if entry[1] < smallest and not self._beaten(found, entry[0], entry[1]):
                    sums.append(entry)
                    smallest = entry[1]
        for cpu, memory, cost, children in sums:
            if not self._beaten(found, cpu, memory):
                found[:] = [p for p in found if not (cpu <= p[0] and memory <= p[1])]
                found.append((cpu, memory, Candidate(streams, cost, children)))
        found.sort(key=lambda p: p[0])
