"""Judge whether a move paid: compare the slowest processor that took part, before and after.

Only those that took part are compared, so that what happens elsewhere is not held against a move.
What they have to do together is the same before and after, but for streams that became faster or
slower: what the slowest took before is scaled by the rows that come. Where these, or those of the
groups that were moved, differ by too much, nothing can be said, and nothing is held against it.

A move *paid* if the saving that was predicted has come true in part. If it has not, the processors
are left alone for a while. The groups go back only if the slowest now takes more than before by
the tolerance, and if it is one that took them. A sender that is still the slowest has become slower
for another reason, and would have to do even more if they came back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from plait.groups.balance.policy import BalancePolicy
from plait.groups.moves.move import Move


@dataclass(frozen=True, slots=True)
class MoveTrial:
    """Moves that were decided together and have yet to show that they pay."""

    moves: tuple[Move, ...]
    before: float
    """The load of the slowest processor of those that take part."""
    predicted: float
    """What it was predicted to be afterwards, as a share of that."""
    rate: float | None
    """Rows per second of all their groups before; None if unknown."""
    moved: float | None
    """Rows per second of the groups that move, before."""
    pending: tuple[int, ...]
    """The numbers of moves that are not done yet."""
    began: float | None = None
    """When the last of them was done."""
    seconds: Mapping[int, float] = field(default_factory=dict)
    """What each processor has taken since."""
    span: float = 0.0
    rows: float | None = 0.0
    """Rows of all their groups since."""
    moved_rows: float | None = 0.0
    """Rows of the groups that moved since."""
    snapshots: int = 0

    @property
    def processors(self) -> tuple[int, ...]:
        """Those that take part."""
        return tuple(sorted({p for m in self.moves for p in (*m.senders, *m.receivers)}))

    @property
    def groups(self) -> frozenset[int]:
        """Those that move."""
        return frozenset(g for m in self.moves for g in m.groups)

    def ended(self, number: int, *, done: bool, time: float) -> MoveTrial | None:
        """With one move done or given up; None if there is nothing left to be judged.

        What came before is known of all moves together. If one was given up, the others cannot be
        compared with it, and nothing is held against them.
        """
        if number not in self.pending:
            return self
        pending = tuple(n for n in self.pending if n != number)
        began = None if pending else time
        if done:
            return replace(self, pending=pending, began=began)
        moves = tuple(m for m in self.moves if m.number != number)
        if not moves:
            return None
        return replace(self, moves=moves, pending=pending, began=began, rate=None, moved=None)

    def after(
        self,
        seconds: Mapping[int, float | None],
        span: float,
        rows: float | None,
        moved: float | None,
    ) -> MoveTrial:
        """With one more snapshot, if all processors were heard of; else unchanged."""
        taken: dict[int, float] = {}
        for p in self.processors:
            one = seconds.get(p)
            if one is None:
                return self
            taken[p] = self.seconds.get(p, 0.0) + one
        return replace(
            self,
            seconds=taken,
            span=self.span + span,
            rows=None if rows is None or self.rows is None else self.rows + rows,
            moved_rows=None
            if moved is None or self.moved_rows is None
            else self.moved_rows + moved,
            snapshots=self.snapshots + 1,
        )


@dataclass(frozen=True, slots=True)
class MoveVerdict:
    """What became of a trial."""

    paid: bool
    back: bool
    """Whether the groups should go back."""
    measured: float | None
    """What the slowest takes, as a share of what it would have taken; None if that is unknown."""
    predicted: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def judge_move(trial: MoveTrial, policy: BalancePolicy) -> MoveVerdict:
    """Compare the slowest processor with what it took before.

    >>> move = Move(1, "MSLB", (7,), (0,), (1,))
    >>> trial = MoveTrial((move,), 0.8, 0.5, 100.0, 40.0, (), 0.0)
    >>> good = trial.after({0: 4.0, 1: 4.4}, 10.0, 1000.0, 400.0)
    >>> judge_move(good, BalancePolicy()).reason
    'the slowest takes 0.55 times what it did, 0.50 times was predicted: it paid'
    >>> judge_move(trial.after({0: 4.0, 1: 9.0}, 10.0, 1000.0, 400.0), BalancePolicy()).back
    True
    """
    predicted = trial.predicted
    faster = _ratio(trial.rows, trial.span, trial.rate)
    hotter = _ratio(trial.moved_rows, trial.span, trial.moved)
    if faster is None or hotter is None or not trial.before or not trial.seconds:
        return MoveVerdict(True, False, None, predicted, "what came, or what it took, is not known")
    for ratio, what in ((faster, "in all"), (hotter, "of the groups that moved")):
        if not 1 / policy.comparable <= ratio <= policy.comparable:
            reason = f"{ratio:.2f} times as many rows {what} come as before: cannot be compared"
            return MoveVerdict(True, False, None, predicted, reason)
    slowest = max(trial.seconds, key=lambda p: (trial.seconds[p], -p))
    measured = trial.seconds[slowest] / trial.span / (trial.before * faster)
    needed = 1 - policy.worth * (1 - predicted)
    if predicted >= 1:
        needed = predicted + policy.tolerance
    paid = measured <= needed
    took = any(slowest in m.receivers and slowest not in m.senders for m in trial.moves)
    back = not paid and took and measured > max(1.0, predicted) + policy.tolerance
    said = "it paid" if paid else "it did not pay" + (", the groups go back" if back else "")
    reason = (
        f"the slowest takes {measured:.2f} times what it did, {predicted:.2f} times was predicted"
    )
    return MoveVerdict(paid, back, measured, predicted, f"{reason}: {said}")


def _ratio(rows: float | None, span: float, rate: float | None) -> float | None:
    """How many times as fast rows come; nothing before and nothing now is the same."""
    if rows is None or rate is None or not span:
        return None
    if not rate:
        return 1.0 if not rows else float("inf")
    return rows / span / rate
