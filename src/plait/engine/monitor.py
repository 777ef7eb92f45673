"""What a batch tells about the streams: who was looked up, who was found, how much is stored.

A `Watch` looks at the counters of a tree of joins before a batch, and says afterwards what this or
more batches have added to them. While two plans run beside each other, it is the old one's lookups
that count: they see all rows.

*Cost.* A few numbers per step of the plan, however many tuples there are.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.engine.counters import StepCounters
from plait.engine.engines import Engine
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.states import State
from plait.engine.tree import TreeEngine
from plait.plan.observed import Looked


class Watch:
    """The counters of an engine before some batches."""

    def __init__(self, engine: Engine) -> None:
        self._tree = _tree(engine)
        self._steps = [] if self._tree is None else list(_steps(self._tree))
        self._before = [(c.probes, c.matches, len(state)) for _, c, state in self._steps]
        self._stored = [] if self._tree is None else _stored(self._tree)

    def sees(self, engine: Engine) -> bool:
        """Whether it is this engine, with this plan, that is watched."""
        return self._tree is _tree(engine)

    def looked(self) -> list[Looked]:
        """What was looked up since then."""
        return [
            Looked(*sets, count.probes - probes, count.matches - matches, (rows + len(state)) / 2)
            for (sets, count, state), (probes, matches, rows) in zip(
                self._steps, self._before, strict=True
            )
            if count.probes > probes
        ]

    def stored(self) -> list[int]:
        """The tuples that entered each window since then."""
        if self._tree is None:
            return []
        return [now - was for was, now in zip(self._stored, _stored(self._tree), strict=True)]


def _tree(engine: Engine) -> TreeEngine | None:
    if isinstance(engine, ParallelTrack):
        return engine.old or engine.new
    return engine if isinstance(engine, TreeEngine) else None


def _stored(tree: TreeEngine) -> list[int]:
    return [tree.input_of(stream).inserts for stream in range(len(tree.bases))]


def _steps(tree: TreeEngine) -> Iterator[tuple[tuple[int, int, int], StepCounters, State]]:
    """Of each step the sets of streams (gathered, target, part), its counters and its target."""
    for operator in tree.operators:
        masks = {id(state): _mask(state.streams) for state in operator.states}
        for state, path in zip(operator.states, operator.paths, strict=True):
            part = gathered = masks[id(state)]
            for lookup, count in path:
                target = masks[id(lookup.target)]
                yield (gathered, target, part), count, lookup.target
                gathered |= target


def _mask(streams: frozenset[int]) -> int:
    return sum(1 << s for s in streams)
