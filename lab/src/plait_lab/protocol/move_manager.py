"""The distribution manager: it begins moves, and brings each to its end.

*Correct output.* Every move that begins is completed or given up, and all its parties agree which.
The manager alone decides: a move is completed when it enters its last step, which can no longer be
given up, and is closed when every party has said Settled.

*Invariants.* A group takes part in one open move at most. Numbers of moves are never used twice.
Answers of another step, or of no open move, change nothing. `places` is where the groups are, and
during a move where they were.

*Cost.* Of a message: the open moves, and when a move ends, the groups.

*Ties and time.* There is no clock. When its host finds that an answer takes too long, or after a
restart, it calls `tick`, and what is unanswered is sent again; all messages may come twice. A host
that is tired of waiting calls `give_up`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite

from plait.errors import MoveError
from plait.groups.moves.move import Move, Protocol
from plait.groups.moves.places import Place
from plait.groups.moves.sense import check_move, check_processors, check_protocol
from plait_lab.protocol import mslb, ptlb
from plait_lab.protocol.actions import MoveFinished, Reaction
from plait_lab.protocol.messages import (
    Answer,
    ComputePartitionsToMove,
    Message,
    PartitionsToMove,
    processor_name,
)
from plait_lab.protocol.move_steps import GIVE_UP, ProtocolStep, parties
from plait_lab.protocol.tags import placed

COMPUTE = ComputePartitionsToMove.__name__


@dataclass(frozen=True, slots=True)
class OpenMove:
    """A move under way."""

    move: Move
    step: str
    """The name of the message that was sent last."""
    answered: tuple[str, ...] = ()
    """Who has answered it."""
    amount: float = 0.0
    """How much the sender was asked to choose."""


@dataclass(frozen=True, slots=True)
class MoveManager:
    """What the distribution manager knows: a value that outlives its process."""

    processors: int
    splits: int
    places: tuple[Place, ...]
    """For each group."""
    last: int = 0
    """The number of the last move."""
    moving: tuple[OpenMove, ...] = ()

    @classmethod
    def of(cls, processors: int, splits: int, places: Iterable[Place]) -> MoveManager:
        """One that has moved nothing yet.

        >>> MoveManager.of(2, 1, [Place((0,)), Place((1,))]).last
        0
        """
        return cls(processors, splits, tuple(places))

    @property
    def idle(self) -> bool:
        """Whether no move is open."""
        return not self.moving

    def begin(
        self,
        protocol: Protocol,
        groups: Iterable[int],
        receivers: Iterable[int],
        spread: int | None = None,
    ) -> Reaction[MoveManager]:
        """Moves groups from where they are; what makes no sense is a MoveError.

        >>> MoveManager.of(2, 1, [Place((0,))]).begin("MSLB", [0], [0])
        Traceback (most recent call last):
        plait.errors.MoveError: group 0 is on processor 0 already; name another receiver
        """
        chosen, to = tuple(groups), tuple(receivers)
        here = next((self.places[g] for g in chosen if 0 <= g < len(self.places)), Place((0,)))
        move = Move(self.last + 1, protocol, chosen, here.processors, to, spread, here.spread)
        check_move(move, self.places, self._busy(), self.processors)
        return replace(self, last=move.number)._enter(move, _steps(move)[0])

    def ask(
        self, protocol: Protocol, sender: int, receiver: int, amount: float
    ) -> Reaction[MoveManager]:
        """Moves groups of about this much memory, which the sender chooses.

        >>> begun = MoveManager.of(2, 1, [Place((0,))]).ask("PTLB", 0, 1, 1e6)
        >>> begun.messages
        (('processor-0', ComputePartitionsToMove(move=1, amount=1000000.0)),)
        """
        check_protocol(protocol)
        check_processors((sender, receiver), self.processors)
        if sender == receiver:
            raise MoveError(
                f"processor {sender} would send groups to itself", remedy="name another receiver"
            )
        if not (isfinite(amount) and amount > 0):
            raise MoveError(
                f"{amount} is no amount of memory to move", remedy="use a positive number of bytes"
            )
        move = Move(self.last + 1, protocol, (), (sender,), (receiver,))
        moving = OpenMove(move, COMPUTE, amount=amount)
        after = replace(self, last=move.number, moving=(*self.moving, moving))
        return Reaction(after, messages=after._unanswered(moving))

    def on(self, message: Message) -> Reaction[MoveManager]:
        """The manager gets an answer; one that it does not wait for changes nothing."""
        if not isinstance(message, Answer):
            return Reaction(self)
        moving = self._moving(message.move)
        if moving is None:
            return Reaction(self)
        if isinstance(message, PartitionsToMove):
            return self._chosen(moving, message)
        if moving.step == COMPUTE:
            return Reaction(self)
        step = _step(moving)
        awaited = parties(step.by, moving.move, self.splits)
        if type(message) is not step.answer or message.by not in awaited:
            return Reaction(self)
        answered = tuple(sorted({*moving.answered, message.by}))
        if len(answered) < len(awaited):
            return Reaction(self._with(replace(moving, answered=answered)))
        return self._next(moving.move, step)

    def tick(self) -> Reaction[MoveManager]:
        """Time has passed: what is not answered is sent again."""
        messages = [m for moving in self.moving for m in self._unanswered(moving)]
        return Reaction(self, messages=tuple(messages))

    def give_up(self, number: int) -> Reaction[MoveManager]:
        """Gives a move up: its groups stay where they were.

        In its last step a move can no longer be given up; it only waits for parties to confirm it.
        """
        moving = self._moving(number)
        if moving is None:
            raise MoveError(f"move {number} is not under way", remedy=self._open())
        if moving.step == COMPUTE:
            return self._closed(moving.move, done=False)
        if not _step(moving).revocable:
            raise MoveError(
                f"move {number} can no longer be given up: it is at {moving.step}",
                remedy="it ends when all parties have confirmed; then move the groups back",
            )
        return self._enter(moving.move, GIVE_UP)

    def _chosen(self, moving: OpenMove, message: PartitionsToMove) -> Reaction[MoveManager]:
        """The sender has chosen. Groups that cannot move any more are left out."""
        move = moving.move
        if moving.step != COMPUTE or message.by != processor_name(move.senders[0]):
            return Reaction(self)
        busy = self._busy()
        groups = tuple(
            group
            for group in dict.fromkeys(message.groups)
            if 0 <= group < len(self.places)
            and group not in busy
            and self.places[group].processors == move.senders
        )
        if not groups:
            return self._closed(move, done=False)
        known = replace(move, groups=groups)
        return self._enter(known, _steps(known)[0])

    def _next(self, move: Move, step: ProtocolStep) -> Reaction[MoveManager]:
        """All have answered."""
        if step is GIVE_UP:
            return self._closed(move, done=False)
        steps = _steps(move)
        following = steps.index(step) + 1
        if following < len(steps):
            return self._enter(move, steps[following])
        return self._closed(move, done=True)

    def _enter(self, move: Move, step: ProtocolStep) -> Reaction[MoveManager]:
        moving = OpenMove(move, step.name)
        after = self._with(moving)
        return Reaction(after, messages=after._unanswered(moving))

    def _closed(self, move: Move, *, done: bool) -> Reaction[MoveManager]:
        places = self.places
        if done:
            places = tuple(
                placed(move) if g in move.groups else place for g, place in enumerate(places)
            )
        rest = tuple(m for m in self.moving if m.move.number != move.number)
        return Reaction(replace(self, places=places, moving=rest), (MoveFinished(move, done),))

    def _unanswered(self, moving: OpenMove) -> tuple[tuple[str, Message], ...]:
        """The messages of a step to all who have not answered it."""
        move = moving.move
        if moving.step == COMPUTE:
            question = ComputePartitionsToMove(move.number, moving.amount)
            return ((processor_name(move.senders[0]), question),)
        step = _step(moving)
        to = parties(step.to, move, self.splits)
        # Where others answer than were asked, an answer does not say that its sender has done all.
        done = moving.answered if step.to == step.by else ()
        return tuple((party, step.order(move)) for party in to if party not in done)

    def _with(self, moving: OpenMove) -> MoveManager:
        rest = (m for m in self.moving if m.move.number != moving.move.number)
        ordered = sorted((*rest, moving), key=lambda m: m.move.number)
        return replace(self, moving=tuple(ordered))

    def _moving(self, number: int) -> OpenMove | None:
        return next((m for m in self.moving if m.move.number == number), None)

    def _busy(self) -> set[int]:
        """The groups that are moving."""
        return {group for m in self.moving for group in m.move.groups}

    def _open(self) -> str:
        numbers = ", ".join(str(m.move.number) for m in self.moving)
        return f"moves under way: {numbers}" if numbers else "no move is under way"


def _steps(move: Move) -> tuple[ProtocolStep, ...]:
    return ptlb.STEPS if move.protocol == "PTLB" else mslb.STEPS


def _step(moving: OpenMove) -> ProtocolStep:
    return next(s for s in (*_steps(moving.move), GIVE_UP) if s.name == moving.step)
