"""A snapshot of the cluster: loads of processors and sizes of partition groups.

*Unknown is unknown.* A number that nobody measured is None, not 0. A processor whose work is not
known neither gives nor takes groups. One that holds no groups has nothing to do: its work is 0.

*The work of a group* is not measured, only that of a processor. `divided_work` divides it: the
share phi = matches / (matches + rows) goes into what rows find, the rest into the rows, and

    work_g = seconds ((1 - phi) rows_g / rows + phi pairs_g / pairs)

where pairs_g are the products of the group's stored rows, summed over all pairs of streams. Of a
group that is spread over k processors each has 1/k of the rows of one stream and all of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from plait.errors import StatisticsError


@dataclass(frozen=True, slots=True)
class ProcessorSnapshot:
    """One processor since the last snapshot; None is unknown."""

    processor: int
    seconds: float | None = None
    """What joining has taken: its own work, not how long it waited for a core."""
    nbytes: float | None = None
    """What its states hold."""
    rows: int | None = None
    """Stored rows."""
    matches: float | None = None
    """What its joins have looked at and found, results or not, counted as so many rows' work."""
    plan: str = ""
    height: int = 2
    """Levels of joins of its plan."""
    active: bool = True
    """Whether it takes part. One that does not, and still holds groups, gives them away."""

    def __post_init__(self) -> None:
        for name in ("seconds", "nbytes", "rows", "matches"):
            _check(f"processor {self.processor}", name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """One partition group since the last snapshot; None is unknown."""

    group: int
    holders: tuple[int, ...]
    """The processor that has it, or several if it is spread."""
    arrived: tuple[int, ...] | None = None
    """Rows of each stream that have come, each counted once."""
    stored: tuple[int, ...] | None = None
    """Rows of each stream that are stored, each counted once."""
    nbytes: float | None = None
    """What its rows take, each counted once."""
    work: float | None = None
    """Seconds of work at each of its holders, if that was measured; else it is estimated."""
    spread: int | None = None
    """The stream whose rows are divided among the holders."""
    moving: bool = False
    """Whether a move of it is under way."""


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """All processors and groups; times are seconds of event time.

    >>> ClusterSnapshot(1.0, 1.0, (ProcessorSnapshot(0),), (GroupSnapshot(7, (3,)),))
    Traceback (most recent call last):
    plait.errors.StatisticsError: group 7 is held by processor 3, which nobody has looked at
    """

    time: float
    span: float
    """Since the last snapshot."""
    processors: tuple[ProcessorSnapshot, ...]
    """All that exist, also those that do not take part."""
    groups: tuple[GroupSnapshot, ...]
    seconds: float | None = None
    """What the batches since the last snapshot have taken as a whole; shown, not decided by."""

    def __post_init__(self) -> None:
        for name in ("time", "span", "seconds"):
            _check("a snapshot", name, getattr(self, name))
        known = {p.processor for p in self.processors}
        if len(known) < len(self.processors):
            raise StatisticsError("a snapshot with one processor twice", remedy="give each once")
        if len({g.group for g in self.groups}) < len(self.groups):
            raise StatisticsError("a snapshot with one group twice", remedy="give each once")
        for found in self.groups:
            if not found.holders:
                raise StatisticsError(
                    f"group {found.group} has no holder", remedy="name the processor that has it"
                )
            for holder in found.holders:
                if holder not in known:
                    raise StatisticsError(
                        f"group {found.group} is held by processor {holder}, which nobody has "
                        "looked at"
                    )

    def held(self) -> dict[int, list[GroupSnapshot]]:
        """The groups of each processor."""
        found: dict[int, list[GroupSnapshot]] = {p.processor: [] for p in self.processors}
        for group in self.groups:
            for holder in group.holders:
                found[holder].append(group)
        return found


def _check(who: str, name: str, value: float | None) -> None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise StatisticsError(f"{who} with {name}={value!r}", remedy="give a number >= 0, or None")


class Work(NamedTuple):
    """The work of a group at one of its holders."""

    rows: float
    """For its rows."""
    matches: float
    """For what they find."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.rows + self.matches

    def times(self, factor: float) -> Work:
        """So many times as much."""
        return Work(self.rows * factor, self.matches * factor)


def pairs_of(rows: Sequence[float]) -> float:
    """The products of all pairs, summed.

    >>> pairs_of((2, 3, 4))
    26.0
    """
    found = before = 0.0
    for n in rows:
        found += before * n
        before += n
    return found


def part_of(counts: Sequence[float], stream: int | None, holders: int) -> tuple[float, ...]:
    """What each of so many holders has of these rows, if those of one stream are divided.

    >>> part_of((8, 2), 0, 4)
    (2.0, 2)
    """
    return tuple(n / holders if s == stream else n for s, n in enumerate(counts))


def divided_work(
    seconds: float | None, matches: float | None, groups: Sequence[GroupSnapshot]
) -> list[Work | None]:
    """The work of each of a processor's groups; None where it cannot be told.

    >>> hot = GroupSnapshot(0, (0,), arrived=(30, 30), stored=(100, 100))
    >>> cold = GroupSnapshot(1, (0,), arrived=(20, 20), stored=(100, 50))
    >>> [round(work.total, 3) for work in divided_work(1.0, 100, [hot, cold])]
    [0.633, 0.367]
    >>> divided_work(1.0, 100, [hot, GroupSnapshot(1, (0,))])
    [None, None]
    >>> divided_work(1.0, 0, [hot, cold])[0]
    Work(rows=0.6, matches=0.0)
    """
    arrived = [_here(g, g.arrived) for g in groups]
    shares: list[Work | None] = [None] * len(groups)
    if matches is not None and None not in arrived:
        came = [sum(rows) for rows in arrived if rows is not None]
        rows = sum(came)
        phi = matches / (matches + rows) if matches + rows else 0.0
        stored = [_here(g, g.stored) for g in groups]
        found = [pairs_of(rows) for rows in stored if rows is not None]
        if not rows:
            # Nothing has come, so no group has caused any work.
            shares = [Work(0.0, 0.0)] * len(groups)
        elif not phi or len(found) == len(groups):
            total = sum(found) if phi else 0.0
            matched = [n / total for n in found] if total else [n / rows for n in came]
            shares = [
                Work((1 - phi) * n / rows, phi * m) for n, m in zip(came, matched, strict=True)
            ]
    return [
        _measured(group.work, share)
        if group.work is not None
        else None
        if share is None or seconds is None
        else share.times(seconds)
        for group, share in zip(groups, shares, strict=True)
    ]


def _here(group: GroupSnapshot, counts: Sequence[int] | None) -> tuple[float, ...] | None:
    """What one holder has of a group's rows."""
    return None if counts is None else part_of(counts, group.spread, len(group.holders))


def _measured(work: float, share: Work | None) -> Work:
    """Measured work, divided into rows and matches as was estimated."""
    if share is None or not share.total:
        return Work(work, 0.0)
    return share.times(work / share.total)
