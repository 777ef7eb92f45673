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
from dataclasses import dataclass
from typing import Any

from plait.codec import from_plain, to_plain
from plait.errors import MoveError, SourceError
from plait.groups.moves.move import Move
from plait.groups.moves.places import Place
from plait.groups.moves.sense import check_move


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
        under_way, last, moving = self.under_way, self.last, set(self.moving)
        spread = dict(self.spread)
        here = [Place(place, spread.get(group)) for group, place in enumerate(self.places)]
        for move in begin:
            if move.number <= last:
                raise MoveError(
                    f"there was a move {move.number} already", remedy="take another number"
                )
            check_move(move, here, moving, processors)
            under_way, last = (*under_way, move), move.number
            moving |= set(move.groups)
        ended = tuple(self.find(number) for number in end)
        given_up = tuple(self.find(number) for number in give_up)
        places = list(self.places)
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
        raise MoveError(f"no move {number} is under way", remedy="progress() shows the moves")

    def to_dict(self) -> dict[str, Any]:
        """In the types of JSON.

        >>> move = Move(1, "PTLB", (0,), (0,), (1,))
        >>> table = Table(((0,), (1,))).begin(move, 5, 2)
        >>> Table.from_dict(table.to_dict()) == table
        True
        """
        found: dict[str, Any] = to_plain(self)
        return found

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Table:
        """Decode what `to_dict` returned; anything else is a SourceError."""
        try:
            return from_plain(cls, given, any_version=True)
        except SourceError as error:
            raise SourceError(f"it is no routing table: {error.message}") from None


def initial(places: Sequence[int]) -> Table:
    """The table of a new checkpoint: each group on one processor."""
    return Table(tuple((p,) for p in places))
