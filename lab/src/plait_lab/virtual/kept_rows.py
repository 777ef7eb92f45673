"""The live rows of a machine, with their partition groups and tags: what moves between machines.

An engine keeps of a row what results and conditions read, and its rings drop rows from the front
only. So a machine keeps its rows beside it, as the segments of a node with a state store do: they
are what is exported, and what an engine is filled from when groups have left.

*Invariants.* A row is kept until the watermarks of all other streams have passed it, or until its
group is dropped. Rows of one group that differ in `since` are never in the engine together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.kernels.jit import Ints
from plait_lab.protocol.tags import Tag, is_old
from plait_lab.virtual.gates import Copies

Pairs = Collection[tuple[int, int]]
"""(group, since)"""
Mask = npt.NDArray[np.bool_]


class KeptRows:
    """The rows of each stream, in the order of their arrival."""

    def __init__(self, streams: int) -> None:
        self._parts: list[list[Copies]] = [[] for _ in range(streams)]

    def add(self, stream: int, copies: Copies) -> None:
        """Keep rows."""
        if len(copies):
            self._parts[stream].append(copies)

    def __len__(self) -> int:
        return sum(len(part) for parts in self._parts for part in parts)

    def expire(self, cutoffs: Sequence[int]) -> None:
        """Forget rows from before these times, a whole part at a time."""
        for stream, cutoff in enumerate(cutoffs):
            parts = self._parts[stream]
            if parts and int(parts[0].times.max()) < cutoff:
                self._parts[stream] = [p for p in parts if int(p.times.max()) >= cutoff]

    def whole(self, stream: int, cutoff: int) -> Copies | None:
        """All rows of a stream that are alive, put together; None if there are none."""
        parts = self._parts[stream]
        if not parts:
            return None
        if len(parts) > 1:
            parts = [_together(parts)]
        (one,) = parts
        alive = one.times >= cutoff
        if not alive.all():
            one = one.chosen(np.flatnonzero(alive))
        self._parts[stream] = [one] if len(one) else []
        return one if len(one) else None

    def of(self, stream: int, cutoff: int, pairs: Pairs) -> Copies | None:
        """The live rows of these (group, since)."""
        one = self.whole(stream, cutoff)
        if one is None:
            return None
        mine = one.chosen(np.flatnonzero(within(one, pairs)))
        return mine if len(mine) else None

    def drop(self, pairs: Pairs) -> int:
        """Forget the rows of these (group, since); how many they were."""
        before = len(self)
        for stream, parts in enumerate(self._parts):
            rest = [part.chosen(np.flatnonzero(~within(part, pairs))) for part in parts]
            self._parts[stream] = [part for part in rest if len(part)]
        return before - len(self)

    def has(self, pairs: Pairs) -> bool:
        """Whether there are rows of these (group, since)."""
        return any(within(part, pairs).any() for parts in self._parts for part in parts)

    def newest_old(self, live: Mapping[int, int], move: int, cutoffs: Sequence[int]) -> list[int]:
        """The time of the newest live row of each stream that was there before a PTLB move."""
        found = []
        for stream, cutoff in enumerate(cutoffs):
            one, newest = self.whole(stream, cutoff), BEFORE_ALL_TIMES
            for tag in [] if one is None else _tags(one):
                groups = [g for g, since in live.items() if is_old(tag, since, move)]
                assert one is not None
                tagged = (one.since == tag.since) & (one.flags == tag.flag)
                old = one.times[tagged & np.isin(one.groups, groups)]
                newest = max(newest, int(old.max())) if len(old) else newest
            found.append(newest)
        return found

    def by_group(self, groups: int, cutoffs: Sequence[int]) -> list[Ints]:
        """How many live rows of each group there are, by stream."""
        counts = []
        for stream, cutoff in enumerate(cutoffs):
            one = self.whole(stream, cutoff)
            given = np.empty(0, np.int64) if one is None else one.groups
            counts.append(np.bincount(given, minlength=groups))
        return counts


def _tags(copies: Copies) -> list[Tag]:
    """The tags that some rows have, and perhaps some that none has."""
    sinces, flags = np.unique(copies.since).tolist(), np.unique(copies.flags).tolist()
    return [Tag(since, flag) for since in sinces for flag in flags]


def within(copies: Copies, pairs: Pairs) -> Mask:
    """Which rows are of these (group, since)."""
    found = np.zeros(len(copies), np.bool_)
    by_since: dict[int, list[int]] = {}
    for group, since in pairs:
        by_since.setdefault(since, []).append(group)
    for since, groups in by_since.items():
        found |= (copies.since == since) & np.isin(copies.groups, groups)
    return found


def _together(parts: Sequence[Copies]) -> Copies:
    return Copies(
        pa.concat_batches([part.rows for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.groups for part in parts]),
        np.concatenate([part.since for part in parts]),
        np.concatenate([part.flags for part in parts]),
    )
