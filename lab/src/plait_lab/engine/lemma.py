"""Purging by lemma 2.2 of CAPE, which the paper's experiments use.

A tuple that enters a join purges the states of the other inputs. With m its earliest time, a row t
of such a state goes if m is more than W after the latest time of t. This is sound when each stream
is in order (lemma 2.1): whatever enters by the same input later has a tuple that entered its stream
later, and so a time not before m. A join remembers only the largest m of each of its inputs, so
purging after a slice is the same as purging after each of its tuples. In a join of more than two
inputs all the others must have passed a row: one that lags may still bring it together with what
the others brought before. For bounds other than a global window, W is the largest bound between the
two inputs.

*Correct output.* The same as by watermarks. A combination stays until W after its latest time, up
to twice as long, and the state of an input whose partners are rare combinations waits for them.

*Invariants.* Combinations refer to base rows. So a base row that was purged is still held, though
it counts no more, until no combination has it and the watermarks too have passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.probe import length
from plait.engine.purging import PurgeByWatermarks
from plait.engine.states import BaseWindow, CombinedState, Tuples
from plait.engine.tactics.operators import Feed, Operator
from plait.errors import PlanError
from plait.kernels.gather import take
from plait.query.query import Query


class PurgeByLemma(PurgeByWatermarks):
    """Drop rows by the tuples that entered; refuse streams that may be out of order."""

    trees_only = True

    def __init__(self, query: Query) -> None:
        super().__init__(query)
        if query.lateness == "least":
            raise PlanError(
                "rows are late by the least watermark of all streams, so each stream may be out of "
                "order, and its tuples cannot purge the states of others",
                remedy="purge by watermarks, or let rows be late by their own watermark",
            )
        delayed = [s.name for s in query.streams if s.delay]
        if delayed:
            raise PlanError(
                f"stream {delayed[0]!r} may be out of order (its watermark has a delay), so its "
                "tuples cannot purge the states of others",
                remedy="purge by watermarks, or leave the delay out",
            )
        self._entered: dict[Operator, list[int]] = {}
        """For each input of a join, the largest earliest time of a tuple that entered by it."""

    def enter(self, operator: Operator, child: int, tuples: Tuples) -> None:
        """Remember the largest earliest time."""
        if not length(tuples):
            return
        bases = operator.windows.bases
        earliest = np.minimum.reduce([take(bases[s].window.latest, p) for s, p in tuples.items()])
        known = self._entered.setdefault(operator, _nothing(operator))
        known[child] = max(known[child], int(earliest.max()))

    def expire(self, feed: Feed, state: CombinedState, watermarks: Sequence[int]) -> int:
        """Drop the combinations that all joins above have purged."""
        return state.drop_before(self._needed_since(feed, watermarks))

    def hold(
        self, cutoffs: list[int], leaves: Iterable[Feed], kept: Iterable[tuple[Feed, CombinedState]]
    ) -> None:
        """Hold the rows that are not purged, and those that others are combined with."""
        for feed in leaves:
            _hold(cutoffs, feed, self._needed_since(feed))
        for feed, state in kept:
            if (earliest := state.earliest) is not None:
                _hold(cutoffs, feed, earliest)

    def hidden(self, operator: Operator, child: int, state: BaseWindow) -> int:
        """Count the rows that are held only because others are combined with them."""
        return state.older_than(self.purged_before(operator, child))

    def purged_before(
        self, operator: Operator, child: int, watermarks: Sequence[int] | None = None
    ) -> int:
        """Rows in the state of an input are purged if their latest time is older than this.

        A new box needs no row that is older than everything new. With `watermarks`, what entered
        counts only as far as they have come: behind them, a host may hold tuples back that are to
        enter later. A combination that enters later has a tuple that is not before the watermark
        of its stream, so the lemma holds for the least watermark of an input as well.
        """
        states = operator.states
        passed = self._entered.get(operator) or _nothing(operator)
        if watermarks is not None:
            reached = (min(watermarks[s] for s in state.streams) for state in states)
            passed = [min(pair) for pair in zip(passed, reached, strict=True)]
        entered = zip((s.streams for s in states), passed, strict=True)
        others = [other for c, other in enumerate(entered) if c != child]
        cutoff = lemma_cutoff(self.query, states[child].streams, others)
        if operator.mark is not None:
            cutoff = max(cutoff, operator.mark.since(states[child].streams))
        return cutoff

    def _needed_since(self, feed: Feed, watermarks: Sequence[int] | None = None) -> int:
        return min(self.purged_before(operator, c, watermarks) for operator, c in feed.readers)


def lemma_cutoff(
    query: Query, streams: frozenset[int], others: Iterable[tuple[frozenset[int], int]]
) -> int:
    """Rows over `streams` whose latest time is before this have been purged by lemma 2.2.

    `others` are the streams of each other input, and the largest earliest time of what entered it.

    >>> from plait.testing.examples import chain
    >>> query = chain(3)
    >>> query.bounds.uniform
    10000000
    >>> ab, c = frozenset({0, 1}), frozenset({2})
    >>> lemma_cutoff(query, ab, [(c, 25_000_000)])
    15000000
    """
    matrix = query.bounds.matrix
    return min(
        passed - max(matrix[i][k] for i in streams for k in other) for other, passed in others
    )


def _nothing(operator: Operator) -> list[int]:
    return [BEFORE_ALL_TIMES] * len(operator.inputs)


def _hold(cutoffs: list[int], feed: Feed, since: int) -> None:
    assert feed.state is not None
    for stream in feed.state.streams:
        cutoffs[stream] = min(cutoffs[stream], since)
