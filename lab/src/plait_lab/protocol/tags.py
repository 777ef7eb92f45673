"""Tags of rows while partition groups move, and which processor reports a result.

*Tags.* A processor may hold rows of a group that are of no use any more: the group has left, or a
move to it was given up. It may even get the group back while they are there. And during a PTLB move
two processors hold the same new rows. So a split gives every copy of a row a tag of two numbers:

- `since`: the move by which the group came to that processor (0: it was there from the start);
- `flag`: the PTLB move during which the row was sent to a receiver as well (0: to nobody else).

*Correct output.* A result is reported where its last part arrives, if `finds` allows it. Parts that
differ in `since` never make a result: some are dead. Parts that all carry the flag of one move are
all at that move's receiver, which reports the result. Any other combination of live parts has a
part which only this processor has, so that it alone can find it. A flag has the number of its move,
because a move that was given up leaves flagged rows behind: combined with rows flagged by a later
move they are no result of either receiver.

*Ties and time.* Neither matters: the rule reads nothing but tags.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.groups.moves.move import Move
from plait.groups.moves.places import Place


@dataclass(frozen=True, slots=True)
class Tag:
    """What a split writes on one copy of a row."""

    since: int = 0
    flag: int = 0


def finds(tags: Iterable[Tag]) -> bool:
    """Whether a processor that holds parts with these tags reports the result they make.

    >>> finds([Tag(), Tag()]), finds([Tag(), Tag(flag=3)]), finds([Tag(flag=3), Tag(flag=3)])
    (True, True, False)
    >>> finds([Tag(flag=3), Tag(flag=4)]), finds([Tag(since=3), Tag(since=4)])
    (True, False)
    """
    parts = set(tags)
    if len({tag.since for tag in parts}) != 1:
        return False
    return not (len(parts) == 1 and all(tag.flag for tag in parts))


def is_old(tag: Tag, since: int, move: int) -> bool:
    """Whether a row must be purged before a PTLB move's sender may say AllOldPurged.

    `since` is what the sender's rows of the group have; others are dead.

    >>> is_old(Tag(), 0, 3), is_old(Tag(flag=2), 0, 3), is_old(Tag(flag=3), 0, 3)
    (True, True, False)
    >>> is_old(Tag(since=1), 2, 3)
    False
    """
    return tag.since == since and tag.flag != move


def placed(move: Move) -> Place:
    """Where the groups of a move are after it.

    >>> placed(Move(7, "MSLB", (1,), (0,), (1, 2), spread=0))
    Place(processors=(1, 2), spread=0, since=7)
    """
    return Place(move.receivers, move.spread, move.number)
