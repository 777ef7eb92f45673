"""What a batch tells about the streams: who was looked up, who was found, how much is stored.

A `Watch` looks at the counters of a tree of joins before a batch, and says afterwards what the
batch has added to them. While two plans run beside each other, it is the old one's lookups that
count: they see all rows.

*Cost.* A few numbers per step of the plan, however many tuples there are.
"""

from __future__ import annotations

from dataclasses import dataclass

from plait.engine.engines import Engine
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.tree import TreeEngine


@dataclass(frozen=True, slots=True)
class Looked:
    """The lookups of one step of a plan during a batch; sets of streams are bit masks."""

    gathered: int
    """The streams of the tuples that were looked up."""
    target: int
    """The streams of the state in which they were."""
    part: int
    """The streams of the input through which they came."""
    probes: int
    matches: int
    rows: float
    """Rows of that state, on average."""


class Watch:
    """The counters of an engine before a batch."""

    def __init__(self, engine: Engine) -> None:
        self._tree = _tree(engine)
        self._before = [] if self._tree is None else _steps(self._tree)
        self._stored = [] if self._tree is None else _stored(self._tree)

    def looked(self) -> list[Looked]:
        """What was looked up since then."""
        if self._tree is None:
            return []
        found = []
        for was, now in zip(self._before, _steps(self._tree), strict=True):
            probes = now.probes - was.probes
            if probes:
                rows = (now.rows + was.rows) / 2
                found.append(
                    Looked(now.gathered, now.target, now.part, probes, now.matches - was.matches,
                           rows)
                )  # fmt: skip
        return found

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


def _steps(tree: TreeEngine) -> list[Looked]:
    found = []
    for operator in tree.operators:
        for state, path in zip(operator.states, operator.paths, strict=True):
            part = gathered = _mask(state.streams)
            for lookup, count in path:
                target = _mask(lookup.target.streams)
                rows = len(lookup.target)
                found.append(Looked(gathered, target, part, count.probes, count.matches, rows))
                gathered |= target
    return found


def _mask(streams: frozenset[int]) -> int:
    return sum(1 << s for s in streams)
