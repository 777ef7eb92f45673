"""The routing table: which processors hold which partition group, from some batch on.

A table is a value with a number. A move of groups is two tables: one that begins it and one that
ends it, by the change of places or by giving it up. Each table says which moves are under way and
which ones it ends, so a processor that goes from one table to the next knows what to do.

*Invariant.* All tasks of a batch, and of every replay of it, route by the same table: a table names
the batch (`since`) from which it holds, and was written before that batch began. Tables that follow
each other have numbers and batches that ascend.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from plait.errors import MoveError, SourceError
from plait.protocol.messages import Move


@dataclass(frozen=True, slots=True)
class Table:
    """Where the groups are. Table 0 is the one that a checkpoint begins with."""

    places: tuple[tuple[int, ...], ...]
    """For each group, the processors that hold it: one, or those that it is spread over."""
    number: int = 0
    since: int = 0
    """The first batch that is routed by it."""
    spread: tuple[tuple[int, int], ...] = ()
    """(group, stream) of the groups in several places: the stream whose rows are divided."""
    under_way: tuple[Move, ...] = ()
    ended: tuple[Move, ...] = ()
    """The moves that this table completes."""
    given_up: tuple[Move, ...] = ()
    last: int = 0
    """The greatest number of a move so far; none is used twice."""

    @property
    def moving(self) -> frozenset[int]:
        """The groups that are on their way."""
        return frozenset(g for move in self.under_way for g in move.groups)

    def begin(self, move: Move, since: int, processors: int) -> Table:
        """The next table, in which a move has begun."""
        return self.changed(since, processors, begin=(move,))

    def end(self, number: int, since: int) -> Table:
        """The next table, in which the groups of a move are in their new places."""
        return self.changed(since, end=(number,))

    def give_up(self, number: int, since: int) -> Table:
        """The next table, in which the groups of a move stay where they were."""
        return self.changed(since, give_up=(number,))

    def changed(
        self,
        since: int,
        processors: int = 0,
        *,
        begin: Iterable[Move] = (),
        end: Collection[int] = (),
        give_up: Collection[int] = (),
    ) -> Table:
        """The next table, in which several moves begin, end, or are given up, by their numbers.

        A group whose move ends here cannot begin another one before the next table.
        """
        under_way, last = self.under_way, self.last
        for move in begin:
            check_move(replace(self, under_way=under_way), move, processors)
            under_way, last = (*under_way, move), max(last, move.number)
        ended = tuple(self.find(number) for number in end)
        given_up = tuple(self.find(number) for number in give_up)
        places, spread = list(self.places), dict(self.spread)
        for move in ended:
            for group in move.groups:
                places[group] = move.receivers
                spread.pop(group, None)
                if move.spread is not None:
                    spread[group] = move.spread
        if since <= self.since and self.number:
            raise MoveError(
                f"table {self.number} holds from batch {self.since} on, the next one cannot hold "
                f"from batch {since} on",
                remedy="decide again for a later batch",
            )
        return Table(
            tuple(places),
            self.number + 1,
            since,
            tuple(sorted(spread.items())),
            tuple(m for m in under_way if m not in ended and m not in given_up),
            ended,
            given_up,
            last,
        )

    def find(self, number: int) -> Move:
        """A move that is under way."""
        for move in self.under_way:
            if move.number == number:
                return move
        raise MoveError(f"no move {number} is under way", remedy="plait.progress shows the moves")

    def to_dict(self) -> dict[str, Any]:
        """In the types of JSON.

        >>> move = Move(1, "PTLB", (0,), (0,), (1,))
        >>> table = Table(((0,), (1,))).begin(move, 5, 2)
        >>> Table.from_dict(table.to_dict()) == table
        True
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Table:
        """The inverse of `to_dict`; anything else is a SourceError."""
        try:
            under_way, ended, given_up = (
                tuple(_move(m) for m in given[name]) for name in ("under_way", "ended", "given_up")
            )
            return cls(
                tuple(_ints(place) for place in given["places"]),
                int(given["number"]),
                int(given["since"]),
                tuple((int(g), int(s)) for g, s in given["spread"]),
                under_way,
                ended,
                given_up,
                int(given["last"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SourceError(f"it is no routing table: {error}") from None


def check_move(table: Table, move: Move, processors: int) -> None:
    """Refuse a move that makes no sense, by name.

    >>> check_move(Table(((0,), (1,))), Move(1, "PTLB", (0,), (0,), (0,)), 2)
    Traceback (most recent call last):
    plait.errors.MoveError: group 0 is on processor 0 already; name another receiver
    """
    if not move.groups or not move.senders or not move.receivers:
        raise MoveError("the move names no group or no processor", remedy="name them")
    for p in (*move.senders, *move.receivers):
        if not 0 <= p < processors:
            raise MoveError(
                f"there is no processor {p}: the query has {processors}, numbered from 0",
                remedy="name one of them, or start the query with more",
            )
    if move.number <= table.last:
        raise MoveError(f"there was a move {move.number} already", remedy="take another number")
    if len(set(move.receivers)) < len(move.receivers) or len(set(move.groups)) < len(move.groups):
        raise MoveError("a group or processor is named twice", remedy="name each once")
    if (len(move.receivers) > 1) != (move.spread is not None):
        raise MoveError(
            "a group in several places needs the stream whose rows are divided, and no other does",
            remedy="name the stream to spread, or one receiver",
        )
    for group in move.groups:
        if not 0 <= group < len(table.places):
            raise MoveError(
                f"there is no group {group}: there are {len(table.places)}, numbered from 0",
                remedy="plait.progress shows the groups",
            )
        if group in table.moving:
            raise MoveError(f"group {group} is moving already", remedy="wait until it has arrived")
        here = table.places[group]
        if sorted(here) != sorted(move.senders):
            raise MoveError(
                f"group {group} is on processor {_listed(here)}, not on {_listed(move.senders)}",
                remedy="send it from where it is",
            )
        if here == move.receivers and move.spread is None:
            raise MoveError(
                f"group {group} is on processor {_listed(here)} already",
                remedy="name another receiver",
            )
    if move.protocol == "PTLB" and (len(move.senders), len(move.receivers)) != (1, 1):
        raise MoveError(
            "PTLB moves groups from one processor to one other", remedy="use MSLB to spread a group"
        )


def initial(places: Sequence[int]) -> Table:
    """The table of a new checkpoint: each group on one processor."""
    return Table(tuple((p,) for p in places))


def _listed(processors: Sequence[int]) -> str:
    return ", ".join(map(str, processors))


def _ints(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


def _move(given: Mapping[str, Any]) -> Move:
    protocol = given["protocol"]
    if protocol not in ("PTLB", "MSLB"):
        raise ValueError(f"{protocol!r} is no protocol")
    spread = given["spread"]
    return Move(
        int(given["number"]),
        protocol,
        _ints(given["groups"]),
        _ints(given["senders"]),
        _ints(given["receivers"]),
        None if spread is None else int(spread),
    )
