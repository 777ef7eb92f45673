"""Which moves of partition groups make sense; all others are refused by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import get_args

from plait.errors import MoveError
from plait.groups.moves.move import Move, Protocol
from plait.groups.moves.places import Place


def check_move(
    move: Move, places: Sequence[Place], moving: Collection[int], processors: int
) -> None:
    """Refuse a move of groups that are at these places, if it makes no sense; some are moving.

    >>> check_move(Move(1, "PTLB", (0,), (0,), (0,)), [Place((0,)), Place((1,))], (), 2)
    Traceback (most recent call last):
    plait.errors.MoveError: group 0 is on processor 0 already; name another receiver
    """
    check_protocol(move.protocol)
    if not move.groups or not move.receivers:
        raise MoveError("the move names no group or no receiver", remedy="name them")
    if len(set(move.receivers)) < len(move.receivers) or len(set(move.groups)) < len(move.groups):
        raise MoveError("a group or processor is named twice", remedy="name each once")
    check_processors((*move.senders, *move.receivers), processors)
    if (len(move.receivers) > 1) != (move.spread is not None):
        raise MoveError(
            "a group in several places needs the stream whose rows are divided, and no other does",
            remedy="name the stream to spread, or one receiver",
        )
    for group in move.groups:
        if not 0 <= group < len(places):
            raise MoveError(
                f"there is no group {group}: there are {len(places)}, numbered from 0",
                remedy="name one of them",
            )
        if group in moving:
            raise MoveError(
                f"group {group} is moving already",
                remedy="wait until it has arrived, or give that move up",
            )
        here = places[group]
        if sorted(here.processors) != sorted(move.senders):
            raise MoveError(
                f"group {group} is on processor {_listed(here.processors)}, not on "
                f"{_listed(move.senders)}",
                remedy="move groups that are at different processors one after the other",
            )
        if (set(here.processors), here.spread) == (set(move.receivers), move.spread):
            raise MoveError(
                f"group {group} is on processor {_listed(here.processors)} already",
                remedy="name another receiver",
            )
    if move.protocol == "PTLB" and (len(move.senders), len(move.receivers)) != (1, 1):
        raise MoveError(
            "PTLB moves groups from one processor to one other",
            remedy="use MSLB for a group that is spread",
        )


def check_protocol(protocol: str) -> None:
    """Refuse a protocol that there is not."""
    if protocol not in get_args(Protocol):
        raise MoveError(f"there is no protocol {protocol!r}", remedy="use PTLB or MSLB")


def check_processors(named: Sequence[int], processors: int) -> None:
    """Refuse a processor that there is not."""
    for processor in named:
        if not 0 <= processor < processors:
            raise MoveError(
                f"there is no processor {processor}: there are {processors}, numbered from 0",
                remedy="name one of them",
            )


def _listed(processors: Sequence[int]) -> str:
    return ", ".join(map(str, processors))
