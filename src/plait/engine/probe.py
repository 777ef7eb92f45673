"""Look tuples up in a state: by their keys, within the time bounds, checking conditions.

*Correct output.* For tuples over some streams and the state of others: exactly the combinations
that agree in every key class the two sides share, lie within the bounds, and satisfy the given
conditions; with `limits`, only those whose row in the state is older than the tuple's limit; with
a `mark`, only those whose row in the state has no old part.

*Cost.* One lookup per tuple, and work in proportion to what is found. What an index cannot decide
is checked on the pairs it returns: the codes behind a composite key (the index has a hash), keys
that the index leaves out, the bounds between single tuples of two combinations.

*Ties and time.* Matches come in portions, in no particular order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from plait.engine.counters import StepCounters
from plait.engine.mark import Mark
from plait.engine.output import ResultRows
from plait.engine.states import BaseWindow, CombinedState, State, Tuples
from plait.kernels.arrival import behind_first, older
from plait.kernels.gather import keep_equal, keep_near, take, tighten
from plait.kernels.index import finished, new_cursor
from plait.kernels.jit import Bytes, Ids, Ints, Positions
from plait.query.query import Query
from plait.tuning import Tuning

_FAR_PAST, _FAR_FUTURE = -(2**62), 2**62


class Probed(Protocol):
    """What a lookup reads: the windows of the streams, and the output of conditions."""

    query: Query
    tuning: Tuning
    bases: list[BaseWindow]
    output: ResultRows


class Lookup:
    """A probe of one state by tuples over `gathered`, prepared once.

    `classes` are all key classes that the two sides share, `residuals` the conditions to check on
    what is found, by index in the query. `by` is the index to use; without it, the one over all
    of `classes`.
    """

    def __init__(
        self,
        windows: Probed,
        gathered: frozenset[int],
        target: State,
        classes: tuple[int, ...],
        residuals: Sequence[int],
        by: tuple[int, ...] | None = None,
    ) -> None:
        query = windows.query
        matrix = query.bounds.matrix
        self.target = target
        self.by = classes if by is None else by
        self._bases = windows.bases
        self._tuning = windows.tuning
        self._output = windows.output
        self.key_sources = {k: min(query.graph.classes[k].streams & gathered) for k in classes}
        unsure = classes if len(self.by) > 1 else [k for k in classes if k not in self.by]
        self.verified = [(k, min(query.graph.classes[k].streams & target.streams)) for k in unsure]
        self.reach = [
            (
                i,
                max(matrix[j][i] for j in target.streams),
                max(matrix[i][j] for j in target.streams),
            )
            for i in sorted(gathered)
        ]
        combined = isinstance(target, CombinedState)
        self._near = [
            (i, j, matrix[j][i], matrix[i][j])
            for i in sorted(gathered)
            for j in sorted(target.streams)
            if combined and query.bounds.uniform is None
        ]
        self._conditions = [query.residuals[r] for r in residuals]
        self.mark: Mark | None = None

    def matches(
        self,
        tuples: Tuples,
        counters: StepCounters,
        limits: Ids | None = None,
    ) -> Iterator[Tuples]:
        """Yield the combinations that the tuples find, a portion at a time.

        `limits` are ids, one per tuple, of the first row of a base window that is too new for it.
        Nothing may be stored or dropped before the iterator is exhausted.
        """
        n = length(tuples)
        counters.probes += n
        codes = {
            k: take(self._bases[s].window.codes(k), tuples[s]) for k, s in self.key_sources.items()
        }
        window = self.target.window
        keys = window.keys(self.by, codes, n)
        lo, hi = np.full(n, _FAR_PAST, np.int64), np.full(n, _FAR_FUTURE, np.int64)
        for i, back, ahead in self.reach:
            tighten(lo, hi, self._bases[i].window.latest, tuples[i], back, ahead)
        old = 0
        if self.mark is not None:
            earliest = min(self.mark.earliest_new[s] for s in self.target.streams)
            np.maximum(lo, earliest, out=lo)
            if not isinstance(self.target, CombinedState):
                (stream,) = self.target.streams
                old = self.mark.old[stream]
        cursor, portion = new_cursor(self._tuning.walkers), self._tuning.portion_rows
        while not finished(cursor, n):
            probes, rows, visited = window.probe(self.by, keys, lo, hi, cursor, portion)
            counters.visited += visited
            if limits is not None:
                chosen = older(window.ring.header, rows, probes, limits)
                if len(chosen) < len(rows):
                    probes, rows = take(probes, chosen), take(rows, chosen)
            if old:
                chosen = behind_first(window.ring.header, rows, old)
                if len(chosen) < len(rows):
                    probes, rows = take(probes, chosen), take(rows, chosen)
            found = self._combine(tuples, codes, probes, rows)
            matched = length(found)
            counters.matches += matched
            if matched:
                yield found

    def _combine(
        self, tuples: Tuples, codes: dict[int, Ints], probes: Positions, rows: Positions
    ) -> Tuples:
        """Combine pairs into tuples, without those that fail a check the index cannot make."""
        target = self.target
        keep: Bytes | None = None
        if isinstance(target, CombinedState):
            found = target.parts(rows)
            for positions in found.values():
                if len(positions) and positions.min() < 0:
                    alive = (positions >= 0).view(np.uint8)
                    keep = alive if keep is None else keep & alive
            if keep is not None:
                chosen = np.flatnonzero(keep).astype(np.int32)
                probes = take(probes, chosen)
                found = {s: take(p, chosen) for s, p in found.items()}
                keep = None
            if self.mark is not None and length(found):
                chosen = np.flatnonzero(self.mark.old_tuples(found) == 0).astype(np.int32)
                if len(chosen) < len(probes):
                    probes = take(probes, chosen)
                    found = {s: take(p, chosen) for s, p in found.items()}
        else:
            (stream,) = target.streams
            found = {stream: rows}
        out = {s: take(p, probes) for s, p in tuples.items()} | found
        if self.verified or self._near:
            keep = np.ones(len(probes), np.uint8)
            for k, s in self.verified:
                keep_equal(keep, codes[k], probes, self._bases[s].window.codes(k), out[s])
            for i, j, back, ahead in self._near:
                left, right = self._bases[i].window.latest, self._bases[j].window.latest
                keep_near(keep, left, out[i], right, out[j], back, ahead)
        out = chosen_tuples(out, keep)
        for condition in self._conditions:
            if length(out):
                out = chosen_tuples(out, self._output.holds(condition, out))
        return out


def length(tuples: Tuples) -> int:
    """Count the tuples in columns."""
    return len(next(iter(tuples.values())))


def chosen_tuples(tuples: Tuples, keep: Bytes | None) -> Tuples:
    """Select the tuples with a 1 in `keep`; all of them without it."""
    if keep is None or keep.all():
        return tuples
    chosen = np.flatnonzero(keep).astype(np.int32)
    return {s: take(p, chosen) for s, p in tuples.items()}
