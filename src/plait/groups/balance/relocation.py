"""The outcome of a decision: moves, and processors that join in or leave; and PTLB or MSLB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from plait.figures import duration
from plait.groups.balance.policy import BalancePolicy
from plait.groups.moves.cost import Cargo, MoveCosts, MovePrediction, predict_move
from plait.groups.moves.move import Move, Protocol

Kind = Literal["stay", "move", "join", "leave", "stuck"]


@dataclass(frozen=True, slots=True)
class BalanceDecision:
    """What to do, and why; also why not."""

    kind: Kind
    reasons: tuple[str, ...]
    moves: tuple[Move, ...] = ()
    join: tuple[int, ...] = ()
    """Processors that are to take part from now on."""
    leave: tuple[int, ...] = ()
    """Processors that are not to take part any more; their groups are given away later."""
    stuck: tuple[int, ...] = ()
    """Groups that are too hot, and that no move and no spreading would help."""
    overloaded: tuple[int, ...] = ()
    """Processors above the margin."""
    pressed: int = 0
    """1 if the load asks for one more processor, -1 for one less; else 0."""
    before: float | None = None
    """The load of the slowest processor, as far as is known."""
    after: float | None = None
    """The same, as it is predicted."""
    predicted: Mapping[int, float] = field(default_factory=dict)
    """The loads of the processors that take part in the moves."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the event log."""
        return asdict(self) | {"moves": [move_record(move) for move in self.moves]}


def move_record(move: Move) -> dict[str, Any]:
    """A move with its forecast as plain data, for the event log.

    >>> move_record(Move(3, "PTLB", (7,), (0,), (1,)))["pause"]
    0.0
    """
    plain = asdict(move)
    return {"was": plain.pop("spread_before"), **plain.pop("forecast"), **plain}


class ProtocolChoice(NamedTuple):
    """The protocol for a move, and why."""

    protocol: Protocol
    reason: str
    pause: float
    work: float


def way_back(move: Move, number: int, way: ProtocolChoice) -> Move:
    """The move that takes the groups of another back."""
    return replace(
        move,
        number=number,
        protocol=way.protocol,
        senders=move.receivers,
        receivers=move.senders,
        spread=move.spread_before,
        spread_before=move.spread,
        forecast=replace(
            move.forecast, pause=way.pause, work=way.work, reason=way.reason, returned=True
        ),
    )


def choose_protocol(
    cargo: Cargo,
    costs: MoveCosts,
    policy: BalancePolicy,
    window: float,
    *,
    heights: tuple[int, int] = (2, 2),
    purge: float | None = None,
    paused: float = 0.0,
    short: bool = False,
    several: bool = False,
) -> ProtocolChoice:
    """PTLB or MSLB, whichever is predicted to cost less, within the latency target.

    `heights` are those of the sender's and the receiver's plan. `paused` is for how long the sender
    pauses for other moves at the same time. `short` says that the sender lacks memory, which PTLB
    would not give back before old rows are gone; `several`, that there is more than one sender or
    receiver, which only MSLB can do.

    >>> small = Cargo(nbytes=1e6, rows=1e4, rows_work=0.1, match_work=0.2)
    >>> choose_protocol(small, MoveCosts(), BalancePolicy(), 10.0).reason
    'moving the rows takes 31 ms, new rows at both for 20 s 5.0 s'
    >>> choose_protocol(small, MoveCosts(), BalancePolicy(latency=0.01), 10.0)[:2]
    ('PTLB', 'MSLB would pause for 31 ms, the limit is 10 ms')
    """
    found = predict_move(
        cargo, costs, window, sender_height=heights[0], receiver_height=heights[1], purge=purge
    )
    pause, extra = found.pause, found.extra
    known = 0.0 if pause is None else pause

    def mslb(reason: str) -> ProtocolChoice:
        return ProtocolChoice("MSLB", reason, known, known)

    if several:
        late = policy.latency is not None and paused + known > policy.latency
        longer = f", although the limit is {duration(policy.latency)}" if late else ""
        return mslb(
            f"only MSLB has several senders or receivers; it pauses {duration(known)}{longer}"
        )
    if short:
        return mslb("the sender is short of memory, and PTLB gives none back for a window")
    if pause is None:
        return _ptlb(found, "the size of the groups is not known")
    if policy.latency is not None and paused + pause > policy.latency:
        limit = duration(policy.latency)
        return _ptlb(
            found, f"MSLB would pause for {duration(paused + pause)}, the limit is {limit}"
        )
    if extra is None:
        return mslb("the work of the groups is not known")
    both = (
        f"moving the rows takes {duration(pause)}, new rows at both for {duration(found.duration)}"
    )
    reason = f"{both} {duration(extra)}"
    return mslb(reason) if pause <= extra else _ptlb(found, reason)


def _ptlb(found: MovePrediction, reason: str) -> ProtocolChoice:
    return ProtocolChoice("PTLB", reason, 0.0, 0.0 if found.extra is None else found.extra)


def groups_to_move(
    weights: Sequence[tuple[int, float | None]], amount: float, most: float | None = None
) -> tuple[int, ...]:
    """The groups whose weights add up to about `amount`, and to no more than `most`, if that is
    given: what the sender of the paper computes for ComputePartitionsToMove.

    Large groups first, so that few are moved. Groups of unknown weight, or of none, stay. At the
    end one more is taken if that comes nearer to the amount.

    >>> groups_to_move([(0, 5.0), (1, 3.0), (2, 2.0), (3, None)], 6.0)
    (0,)
    >>> groups_to_move([(0, 5.0), (1, 3.0), (2, 2.0)], 7.0)
    (0, 2)
    >>> groups_to_move([(0, 5.0)], 4.0), groups_to_move([(0, 5.0)], 4.0, most=4.5)
    ((0,), ())
    """
    limit = float("inf") if most is None else most
    total, chosen, left = 0.0, [], []
    for group, weight in sorted(
        ((g, w) for g, w in weights if w is not None and w > 0), key=lambda f: (-f[1], f[0])
    ):
        if total + weight <= min(amount, limit):
            chosen.append(group)
            total += weight
        else:
            left.append((weight, group))
    for weight, group in sorted(left):
        if total + weight <= limit and total + weight - amount < amount - total:
            chosen.append(group)
            break
    return tuple(sorted(chosen))
