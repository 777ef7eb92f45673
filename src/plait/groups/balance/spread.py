"""Choose how to spread a hot group: which stream to divide, over which processors.

If the rows of stream s are divided among k processors and those of the others are copied to each,
one of them has of the group's work

    rows:     (rows_s / k + rows_others) / rows
    matches:  (pairs with s / k + pairs without s) / pairs

So the copies are what it costs: k parts together are more than the whole. The processors are those
with the least load, apart from the group. For every stream and k the slowest of them is predicted;
taken is the smallest k that is as good as the best, up to the margin, so that nothing is copied
for little.

*Cost.* Sorting the processors, and one pass over k for each stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plait.groups.balance.cluster import GroupSnapshot, Work, pairs_of, part_of


class Spread(NamedTuple):
    """A group spread over processors, and what is predicted."""

    stream: int
    """Its rows are divided."""
    processors: tuple[int, ...]
    part: Work
    """What the group takes at each of them."""
    slowest: float
    """The load of the slowest of them, or of one that had the group before."""


def part_shares(group: GroupSnapshot, stream: int | None, processors: int) -> Work | None:
    """The shares of a group's work that one of so many processors has; None if unknown.

    >>> group = GroupSnapshot(0, (0,), arrived=(90, 10), stored=(90, 10))
    >>> part_shares(group, 0, 2), part_shares(group, 1, 2)
    (Work(rows=0.55, matches=0.5), Work(rows=0.95, matches=0.5))
    """
    if group.arrived is None or group.stored is None:
        return None
    rows, pairs = sum(group.arrived), pairs_of(group.stored)
    here = sum(part_of(group.arrived, stream, processors))
    found = pairs_of(part_of(group.stored, stream, processors))
    return Work(here / rows if rows else 1.0, found / pairs if pairs else 1.0)


def whole_work(group: GroupSnapshot, part: Work) -> Work | None:
    """What a spread group would take at one processor, from what it takes at each of its holders.

    >>> group = GroupSnapshot(0, (1, 2), arrived=(90, 10), stored=(90, 10), spread=0)
    >>> whole_work(group, Work(5.5, 5.0))
    Work(rows=10.0, matches=10.0)
    """
    share = part_shares(group, group.spread, len(group.holders))
    if share is None or not share.rows or not share.matches:
        return None
    return Work(part.rows / share.rows, part.matches / share.matches)


def best_spread(
    group: GroupSnapshot,
    whole: Work,
    apart: Mapping[int, float],
    allowed: Sequence[int],
    slack: float,
) -> Spread | None:
    """How to spread a group over some of the allowed processors; None if its rows are unknown.

    `apart` are the loads without the group, of the allowed processors and of its holders. A
    smaller number of processors is taken if the slowest has at most `slack` more load.

    >>> group = GroupSnapshot(0, (0,), arrived=(90, 10), stored=(90, 10))
    >>> found = best_spread(group, Work(1.0, 1.0), dict.fromkeys(range(8), 0.1), range(8), 0.05)
    >>> found.stream, found.processors, round(found.slowest, 2)
    (0, (0, 1, 2, 3, 4, 5, 6), 0.47)
    """
    if group.arrived is None or group.stored is None or len(allowed) < 2:
        return None
    mine = set(group.holders)
    # Of processors with the same load those that have the group already come first.
    order = sorted(allowed, key=lambda p: (apart[p], p not in mine, p))
    many = np.arange(2, len(order) + 1)
    last = np.array([apart[p] for p in order])[1:]
    slowest = np.stack(
        [
            last
            + _divided(whole.rows, *_with(group.arrived, stream), many)
            + _divided(whole.matches, *_pairs_with(group.stored, stream), many)
            for stream in range(len(group.arrived))
        ]
    )
    left = max((apart[p] for p in mine), default=0.0)
    good = slowest <= max(left, float(slowest.min())) + slack
    k = int(np.argmax(good.any(axis=0)))
    stream = int(np.argmin(slowest[:, k]))
    share = part_shares(group, stream, k + 2)
    assert share is not None, "its rows are known"
    part = Work(whole.rows * share.rows, whole.matches * share.matches)
    most = max(float(slowest[stream, k]), left)
    return Spread(stream, tuple(sorted(order[: k + 2])), part, most)


def _divided(work: float, with_it: float, all_: float, many: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Work for `all_`, of which what goes with the stream is divided among so many."""
    if not all_:
        return np.full(len(many), work)
    return work * (with_it / many + (all_ - with_it)) / all_


def _with(rows: Sequence[float], stream: int) -> tuple[float, float]:
    return rows[stream], sum(rows)


def _pairs_with(rows: Sequence[float], stream: int) -> tuple[float, float]:
    return rows[stream] * (sum(rows) - rows[stream]), pairs_of(rows)
