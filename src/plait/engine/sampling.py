"""Join small samples to estimate selectivities that no probe of the plan measures.

*Correct output.* Rows are drawn at random, without replacement, of the window of each stream in an
order, and joined step by step as a plan would: by all keys the two sides share, within the bounds,
with the conditions that become decidable. Each step reports how many combinations were
close enough in time, and how many of these matched. With samples as large as the windows both are
exact, until a step finds more than it may go on with; otherwise `matches / pairs` estimates the
same ratio of the whole windows.

*Why it is fair.* Every combination of rows is equally likely to be in the joined samples, and what
is left out after that is left out at random: a step goes on with at most `rows` of its matches,
and where there are conditions to check, with many more candidates, it checks some of them and
counts as few of the pairs. All numbers are of combinations that were really there: their size says
how much they are worth.

*Cost.* O(rows log rows) per step, whatever the size of the windows and however few keys there are:
pairs, and candidates with equal keys, are counted by binary search, and only those that go on or
are to be checked are put together. No index is used or built, nothing is stored or dropped.

*Ties and time.* The instants that a row may have, to be close enough to all tuples of a
combination, are one interval. The same seed on the same windows gives the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plait.engine.probe import chosen_tuples, length
from plait.engine.states import BaseWindow, Tuples
from plait.engine.windows import Windows
from plait.errors import DisconnectedJoin, PlanError, StatisticsError
from plait.kernels.gather import take
from plait.kernels.jit import Ints, Positions
from plait.kernels.ring import HEAD_ID, ID_MASK, positions_of
from plait.plan.observed import Evidence
from plait.plan.steps import decided
from plait.query.query import Query

CHECKED_PER_ROW = 8
"""The most candidates per sampled row on which a step checks conditions."""


def sample(
    windows: Windows,
    order: Sequence[int],
    rows: int,
    seed: int,
    newest: float = 1.0,
    least: int = 0,
) -> list[Evidence]:
    """Join samples of at most `rows` rows of the streams, one stream of `order` after the other.

    They are drawn from the `newest` share of each window, but from the `least` newest rows at
    least: what came last says most about what comes next.

    >>> from plait.testing.examples import chain
    >>> sample(Windows(chain(2), {}), [0, 1], rows=100, seed=1)
    [Evidence(gathered=frozenset({0}), target=frozenset({1}), pairs=0.0, matches=0.0)]
    """
    _check(windows.query, order, rows)
    random = np.random.default_rng(seed)
    first, *others = order
    found: Tuples = {first: _drawn(windows.bases[first], rows, newest, least, random)}
    evidence = []
    for stream in others:
        gathered, target = frozenset(found), frozenset({stream})
        drawn = _drawn(windows.bases[stream], rows, newest, least, random)
        near = _Near(windows, found, stream, drawn)
        conditions = decided(windows.query, gathered, target)
        pairs, matches = float(near.pairs), float(near.candidates)
        found = near.some(CHECKED_PER_ROW * rows if conditions else rows, random)
        if conditions:
            checked = length(found)
            if checked < near.candidates:
                pairs *= checked / near.candidates
            for r in conditions:
                if length(found):
                    verdict = windows.output.holds(windows.query.residuals[r], found)
                    found = chosen_tuples(found, verdict)
            matches = float(length(found))
            if matches > rows:
                few = random.choice(length(found), rows, replace=False)
                found = {s: positions[few] for s, positions in found.items()}
        evidence.append(Evidence(gathered, target, pairs, matches))
    return evidence


class _Near:
    """Combinations, each with the sampled rows that have its keys and are close in time."""

    def __init__(self, windows: Windows, found: Tuples, stream: int, drawn: Positions) -> None:
        query, bases, window = windows.query, windows.bases, windows.bases[stream].window
        matrix = query.bounds.matrix
        times = take(window.latest, drawn)
        by_time = np.argsort(times, kind="stable")
        times, drawn = times[by_time], drawn[by_time]
        at = {i: take(bases[i].window.latest, positions) for i, positions in found.items()}
        earliest = np.maximum.reduce([t - matrix[stream][i] for i, t in at.items()])
        latest = np.minimum.reduce([t + matrix[i][stream] for i, t in at.items()])
        # Since the bounds are closed and the combinations within them, no interval is empty.
        begin = np.searchsorted(times, earliest, "left")
        end = np.searchsorted(times, latest, "right")
        self.pairs = int((end - begin).sum())
        """Combinations with a row that are close enough in time, whatever the keys."""

        # Codes are equal exactly when the values are; numbering them keeps it so for several.
        n = length(found)
        keys: Ints = np.zeros(n + len(drawn), np.int64)
        for k in query.graph.shared(found, {stream}):
            owner = min(query.graph.classes[k].streams & frozenset(found))
            codes = (
                take(bases[owner].window.codes(k), found[owner]),
                take(window.codes(k), drawn),
            )
            keys = keys * len(keys) + _numbered(np.concatenate(codes))
            keys = _numbered(keys)
        # Rows by key, then time: what a combination may meet is one run of them.
        groups = keys * (len(drawn) + 1)
        places = groups[n:] + np.arange(len(drawn))
        by_key = np.argsort(places)
        self._found, self._stream, self._rows = found, stream, drawn[by_key]
        self._starts: Ints = np.searchsorted(places[by_key], groups[:n] + begin)
        stops = np.searchsorted(places[by_key], groups[:n] + end)
        self._counts: Ints = stops - self._starts
        self.candidates = int(self._counts.sum())
        """Combinations with a row that are close enough and have equal keys."""

    def some(self, most: int, random: np.random.Generator) -> Tuples:
        """Combine the candidates into tuples; at most `most` of them, drawn at random."""
        if self.candidates > most:
            numbers: Ints = random.choice(self.candidates, most, replace=False)
        else:
            numbers = np.arange(self.candidates, dtype=np.int64)
        until = np.cumsum(self._counts)
        which = np.searchsorted(until, numbers, "right")
        rows = self._starts[which] + numbers - (until - self._counts)[which]
        out = {s: positions[which] for s, positions in self._found.items()}
        return out | {self._stream: self._rows[rows]}


def _numbered(values: Ints) -> Ints:
    """Number the values: equal numbers mean equal values."""
    _, numbers = np.unique(values, return_inverse=True)
    return np.asarray(numbers, np.int64)


def _drawn(
    base: BaseWindow, rows: int, newest: float, least: int, random: np.random.Generator
) -> Positions:
    """Draw positions of the newest rows at random; all if there are no more."""
    there = len(base)
    among = min(there, max(least, math.ceil(newest * there)))
    if among <= rows:
        chosen = np.arange(among, dtype=np.int64)
    else:
        chosen = random.choice(among, rows, replace=False)
    header = base.window.ring.header
    ids = header[HEAD_ID] + there - among + chosen
    return positions_of(header, (ids & ID_MASK).astype(np.uint32))


def _check(query: Query, order: Sequence[int], rows: int) -> None:
    if rows < 1:
        raise StatisticsError(f"a sample of {rows} rows is empty", remedy="draw at least one row")
    if not order or len(set(order)) < len(order) or not set(order) <= set(range(query.graph.size)):
        raise PlanError(
            f"samples cannot be joined in the order {list(order)}",
            remedy=f"give different indexes of streams, 0 to {query.graph.size - 1}",
        )
    for n, stream in enumerate(order):
        if n and not query.graph.shared(order[:n], {stream}):
            named = [query.names[s] for s in order]
            raise DisconnectedJoin(
                f"{query.names[stream]} shares no key with the streams before it in "
                f"{', '.join(named)}: that would be a cross product",
                remedy="choose an order in which every stream shares a key with one before it",
            )
