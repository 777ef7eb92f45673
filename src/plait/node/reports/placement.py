"""Where the partition groups of a query are, and what each of them takes: for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from plait.adapt.events import Event
from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, divided_work
from plait.groups.moves.move import Move
from plait.groups.routing.table import Table


@dataclass(frozen=True, slots=True)
class GroupShare:
    """One partition group over the remembered batches; None is unknown."""

    group: int
    holders: tuple[int, ...]
    """The processor that has it, or several if it is spread."""
    rows: int
    """Rows that came for it, of all streams."""
    stored: int
    nbytes: float | None
    work: float | None
    """Seconds that its processors have worked for it, estimated from rows and matches."""


@dataclass(frozen=True, slots=True)
class Placement:
    """All partition groups, and the moves under way."""

    table: int
    """The number of the routing table."""
    since: int
    """The batch from which it holds."""
    groups: tuple[GroupShare, ...]
    moves: tuple[Move, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def lines(self) -> list[str]:
        """A text for people.

        >>> groups = (GroupShare(0, (0,), 6, 9, 90.0, 0.75), GroupShare(1, (1,), 2, 3, 30.0, 0.25))
        >>> moves = (Move(1, "MSLB", (0,), (0,), (1,)),)
        >>> print("\\n".join(Placement(1, 5, groups, moves).lines()))
        2 groups: 1 on processor 0 (75% of the work), 1 on processor 1 (25% of the work)
        the most work is in group 0: 75%, 6 rows, 90 bytes
        group 0 is moving from processor 0 to 1 by MSLB
        """
        held: dict[int, list[GroupShare]] = {}
        for share in self.groups:
            for holder in share.holders:
                held.setdefault(holder, []).append(share)
        known = [g.work for g in self.groups if g.work is not None]
        total = sum(known) if len(known) == len(self.groups) else 0.0

        def part(shares: Sequence[GroupShare]) -> str:
            if not total:
                return ""
            work = sum((g.work or 0.0) / len(g.holders) for g in shares)
            return f" ({work / total:.0%} of the work)"

        each = ", ".join(
            f"{len(shares)} on processor {p}{part(shares)}" for p, shares in sorted(held.items())
        )
        found = [f"{len(self.groups)} groups: {each}"]
        if total:
            top = max(self.groups, key=lambda g: (g.work or 0.0, -g.group))
            size = "" if top.nbytes is None else f", {top.nbytes:,.0f} bytes"
            of_all = (top.work or 0.0) / total
            found.append(
                f"the most work is in group {top.group}: {of_all:.0%}, {top.rows:,} rows{size}"
            )
        for share in self.groups:
            if len(share.holders) > 1:
                found.append(f"group {share.group} is spread over processors {_all(share.holders)}")
        return [*found, *map(_moving, self.moves)]


def placement(snapshot: ClusterSnapshot, table: Table) -> Placement:
    """The groups as a snapshot shows them, placed by a table."""
    held, work = snapshot.held(), dict.fromkeys((g.group for g in snapshot.groups), 0.0)
    unknown: set[int] = set()
    for processor in snapshot.processors:
        groups = held[processor.processor]
        shares = divided_work(processor.seconds, processor.matches, groups)
        for group, found in zip(groups, shares, strict=True):
            if found is None:
                unknown.add(group.group)
            else:
                work[group.group] += found.total
    return Placement(
        table.number,
        table.since,
        tuple(_share(g, None if g.group in unknown else work[g.group]) for g in snapshot.groups),
        table.under_way,
    )


def _share(group: GroupSnapshot, work: float | None) -> GroupShare:
    return GroupShare(
        group.group,
        group.holders,
        sum(group.arrived or ()),
        sum(group.stored or ()),
        group.nbytes,
        work,
    )


def balance_line(event: Event) -> str:
    """What the distribution manager did, and why, in a line.

    >>> balance_line(Event("reviewed", 17, 0, {"moves": [1], "reason": "it paid"}))
    'balance after batch 17: it paid'
    """
    data = event.data
    if event.kind == "relocated":
        move = data["move"]
        many, before = _groups(len(move["groups"])), _all(move["senders"])
        way = f"from processor {before} to {_all(move['receivers'])} by {move['protocol']}"
        said = (
            f"{many} went {way}" if data["done"] else f"moving {many} {way} failed: {data['why']}"
        )
    elif event.kind == "reviewed":
        said = str(data["reason"])
    elif event.kind == "unbalanced":
        said = "; ".join(data["reasons"])
    else:
        said = "; ".join(data["decision"]["reasons"])
    return f"balance after batch {event.batch}: {said}"


def _groups(many: int) -> str:
    return "1 group" if many == 1 else f"{many} groups"


_MOST_NAMED = 8


def _moving(move: Move) -> str:
    named = _all(move.groups[:_MOST_NAMED]) + (", ..." if len(move.groups) > _MOST_NAMED else "")
    one = len(move.groups) == 1
    to = f"{'is' if one else 'are'} moving from processor {_all(move.senders)} to "
    return f"group{'' if one else 's'} {named} {to}{_all(move.receivers)} by {move.protocol}"


def _all(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
