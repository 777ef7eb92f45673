"""Which rows of a state nothing to come can join: by watermarks, or by the tuples that came.

*By watermarks* (the usual way): a row goes when the watermarks of all other streams have passed it;
see `states.py`. It bears streams out of order, and a combination goes as soon as its earliest
tuple is too old.

*By lemma 2.2* (the way of the paper, whose experiments use it): a tuple that enters a join purges
the states of the other inputs. With m its earliest time, a row t of such a state goes if m is more
than W after the latest time of t. This is sound when each stream is in order (lemma 2.1): whatever
enters by the same input later has a tuple that entered its stream later, and so a time not before
m. A state remembers only the largest m of each of the other inputs, so purging after a slice is the
same as purging after each of its tuples. In a join of more than two inputs all the others must have
passed a row: one that lags may still bring it together with what the others brought before. For
bounds other than a global window, W is the largest bound between the two inputs.

*What differs.* Results do not. A combination stays until W after its latest time, up to twice as
long as by watermarks, and the state of an input whose partners are rare combinations waits for
them. Since combinations refer to base rows, a base row that was purged is still held, though it
counts no more, until no combination has it and the watermarks too have passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from plait.errors import PlanError, did_you_mean
from plait.query.query import Query

Purge = Literal["watermark", "lemma"]


def check_purge(query: Query, purge: Purge) -> None:
    """Refuse an unknown rule, and the lemma for streams that may be out of order."""
    if purge not in get_args(Purge):
        raise PlanError(
            f"there is no purging by {purge!r}", remedy=did_you_mean(purge, get_args(Purge))
        )
    if purge == "lemma" and query.lateness == "least":
        raise PlanError(
            "rows are late by the least watermark of all streams, so each stream may be out of "
            "order, and its tuples cannot purge the states of others",
            remedy="purge by watermarks, or let rows be late by their own watermark",
        )
    delayed = [s.name for s in query.streams if s.delay]
    if purge == "lemma" and delayed:
        raise PlanError(
            f"stream {delayed[0]!r} may be out of order (its watermark has a delay), so its tuples "
            "cannot purge the states of others",
            remedy="purge by watermarks, or leave the delay out",
        )


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
