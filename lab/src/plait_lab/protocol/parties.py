"""Splits and processors: what each knows of the moves, as values.

*Invariants.* A group takes part in at most one open move, and the numbers of its moves increase.
`ended` has, for each group, its last move that has ended here. So any message about a move is
recognised as late (`is_over`), whatever came before it.

*Cost.* A party's state is bounded by the number of groups. A transition costs the groups of its
move and the moves that are open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from plait.groups.moves.move import Move
from plait.groups.moves.places import Place
from plait_lab.protocol.messages import Settled, processor_name, split_name
from plait_lab.protocol.tags import Tag

Pairs = tuple[tuple[int, int], ...]


def _is_over(ended: Pairs, move: Move) -> bool:
    return any(group in move.groups and number >= move.number for group, number in ended)


def _ended(ended: Pairs, move: Move) -> Pairs:
    return tuple(sorted({**dict(ended), **dict.fromkeys(move.groups, move.number)}.items()))


@dataclass(frozen=True, slots=True)
class Split:
    """What routes rows to processors.

    >>> split = Split(0, (Place((1,)), Place((0, 2), spread=1, since=4)))
    >>> split.route(0, stream=0, pick=0)
    ((1, Tag(since=0, flag=0)),)
    >>> split.route(1, stream=0, pick=3)
    ((0, Tag(since=4, flag=0)), (2, Tag(since=4, flag=0)))
    >>> split.route(1, stream=1, pick=3)
    ((2, Tag(since=4, flag=0)),)
    """

    number: int
    places: tuple[Place, ...]
    """For each group."""
    open: tuple[Move, ...] = ()
    """The moves that it duplicates (PTLB) or buffers (MSLB) rows for."""
    ended: Pairs = ()

    @property
    def name(self) -> str:
        """Its address."""
        return split_name(self.number)

    def route(self, group: int, stream: int, pick: int) -> tuple[tuple[int, Tag], ...] | None:
        """The processors that get a row, each with its tag; None if it is to be buffered.

        `pick` chooses the processor if the rows of this stream are spread: any number will do, for
        instance a hash of the row or a count.
        """
        place = self.places[group]
        targets = place.processors
        if stream == place.spread:
            targets = (targets[pick % len(targets)],)
        move = next((move for move in self.open if group in move.groups), None)
        if move is None:
            return tuple((target, Tag(place.since)) for target in targets)
        if move.protocol == "MSLB":
            return None
        (receiver,) = move.receivers
        old = tuple((target, Tag(place.since, move.number)) for target in targets)
        return (*old, (receiver, Tag(move.number)))

    def is_over(self, move: Move) -> bool:
        """Whether the move has ended here."""
        return _is_over(self.ended, move)

    def is_open(self, move: Move) -> bool:
        """Whether the move has begun here, and not ended."""
        return move in self.open

    def begun(self, move: Move) -> Split:
        """With one more open move."""
        return replace(self, open=tuple(sorted((*self.open, move), key=lambda m: m.number)))

    def over(self, move: Move, place: Place | None = None) -> Split:
        """After a move; `place` is where its groups are, if they have moved."""
        places = self.places
        if place is not None:
            places = tuple(place if g in move.groups else p for g, p in enumerate(places))
        rest = tuple(m for m in self.open if m.number != move.number)
        return Split(self.number, places, rest, _ended(self.ended, move))

    def settled(self, move: Move) -> Settled:
        """The answer to the last message of a move."""
        return Settled(move.number, self.name)


@dataclass(frozen=True, slots=True)
class MovePart:
    """What a processor knows of one open move."""

    move: Move
    started: tuple[int, ...] = ()
    """Splits whose StartOfPartitions has come."""
    finished: tuple[int, ...] = ()
    """Splits whose EndOfPartitions or EndOfPartitionInputFlag has come."""
    purged: bool = False
    """Whether all old rows are gone from the sender (PTLB)."""
    arrived: tuple[int, ...] = ()
    """Senders whose partitions are imported (MSLB)."""


@dataclass(frozen=True, slots=True)
class ProcessorParty:
    """What joins the rows of some groups.

    >>> ProcessorParty.of(1, 2, (Place((1,)), Place((0,)))).held
    ((0, 0),)
    """

    number: int
    splits: int
    """How many splits there are."""
    held: Pairs = ()
    """(group, since): the live rows that it has. A group is there twice while it is being spread
    over processors of which this one is a sender and a receiver."""
    open: tuple[MovePart, ...] = ()
    ended: Pairs = ()

    @classmethod
    def of(cls, number: int, splits: int, places: Iterable[Place]) -> ProcessorParty:
        """The processor that holds the groups of these places."""
        held = ((g, p.since) for g, p in enumerate(places) if number in p.processors)
        return cls(number, splits, tuple(held))

    @property
    def name(self) -> str:
        """Its address."""
        return processor_name(self.number)

    @property
    def watching(self) -> tuple[Move, ...]:
        """The moves for which its host looks whether old rows are left."""
        return tuple(p.move for p in self.open if self.watches(p))

    def watches(self, part: MovePart) -> bool:
        """Whether the old rows of a move are known to be all here, and not known to be gone."""
        sends = part.move.protocol == "PTLB" and self.number in part.move.senders
        return sends and not part.purged and len(part.started) == self.splits

    def is_over(self, move: Move) -> bool:
        """Whether the move has ended here."""
        return _is_over(self.ended, move)

    def part(self, move: Move) -> MovePart:
        """What it knows of a move."""
        return next((p for p in self.open if p.move.number == move.number), MovePart(move))

    def within(self, part: MovePart) -> ProcessorParty:
        """With this knowledge of an open move."""
        rest = (p for p in self.open if p.move.number != part.move.number)
        return replace(self, open=tuple(sorted((*rest, part), key=lambda p: p.move.number)))

    def with_groups(self, move: Move) -> ProcessorParty:
        """With the groups that a move brings."""
        return replace(
            self, held=tuple(sorted({*self.held, *((g, move.number) for g in move.groups)}))
        )

    def of_move(self, move: Move, *, brought: bool) -> Pairs:
        """What it holds of the groups of a move: what the move brought, or what was there."""
        return tuple(
            (group, since)
            for group, since in self.held
            if group in move.groups and (since == move.number) == brought
        )

    def over(self, move: Move, dropped: Pairs = ()) -> ProcessorParty:
        """After a move, without what is dropped."""
        return replace(
            self,
            held=tuple(pair for pair in self.held if pair not in dropped),
            open=tuple(p for p in self.open if p.move.number != move.number),
            ended=_ended(self.ended, move),
        )

    def settled(self, move: Move) -> Settled:
        """The answer to the last message of a move."""
        return Settled(move.number, self.name)


def also(numbers: tuple[int, ...], number: int) -> tuple[int, ...]:
    """One more in a sorted set of numbers.

    >>> also((1, 3), 2), also((1, 3), 3)
    ((1, 2, 3), (1, 3))
    """
    return tuple(sorted({*numbers, number}))
