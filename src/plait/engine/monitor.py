"""Counts of a batch for the adaptive loop: lookups, matches, and stored tuples.

A `Watch` looks at the counters of a tree of joins before a batch, and says afterwards what this or
more batches have added to them. While a box is replaced, the lookups of the old box count, and not
those of the new one: they see all rows.

*Cost.* A few numbers per step of the plan, however many tuples there are.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.engine.counters import StepCounters
from plait.engine.driver import Engine
from plait.engine.states import State
from plait.engine.tactics.operators import Operator
from plait.kernels.ring import ID_MASK
from plait.plan.observed import LookupCounts


class Watch:
    """The counters of an engine before some batches."""

    def __init__(self, engine: Engine) -> None:
        self._joins = _joins(engine)
        self._steps = [step for operator in self._joins for step in _steps(operator)]
        self._before = [(c.probes, c.matches, len(state)) for _, c, state in self._steps]
        self._bases = engine.bases
        self._next = [base.window.ring.next_id for base in engine.bases]

    def sees(self, engine: Engine) -> bool:
        """Whether this engine is watched, with this plan."""
        return self._bases is engine.bases and self._joins == _joins(engine)

    def looked(self) -> list[LookupCounts]:
        """Count the lookups since then."""
        return [
            LookupCounts(
                *sets, count.probes - probes, count.matches - matches, (rows + len(state)) / 2
            )
            for (sets, count, state), (probes, matches, rows) in zip(
                self._steps, self._before, strict=True
            )
            if count.probes > probes
        ]

    def stored(self) -> list[int]:
        """Count the tuples that entered each window since then; a router is not watched."""
        if not self._joins:
            return []
        now = (base.window.ring.next_id for base in self._bases)
        return [(then - before) & ID_MASK for before, then in zip(self._next, now, strict=True)]


def _joins(engine: Engine) -> list[Operator]:
    """List the joins that see all rows."""
    return [operator for operator in engine.operators if operator.mark is None]


def _steps(operator: Operator) -> Iterator[tuple[tuple[int, int, int], StepCounters, State]]:
    """List for each step its sets of streams (gathered, target, part), counters and target."""
    masks = {id(state): _mask(state.streams) for state in operator.states}
    for state, path in zip(operator.states, operator.paths, strict=True):
        part = gathered = masks[id(state)]
        for lookup, count in path:
            target = masks[id(lookup.target)]
            yield (gathered, target, part), count, lookup.target
            gathered |= target


def _mask(streams: frozenset[int]) -> int:
    return sum(1 << s for s in streams)
