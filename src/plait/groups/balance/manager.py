"""Run the balancer step by step: take in a snapshot or the end of a move, remember, decide, judge.

`manage` takes the state so far and one input (`ClusterSnapshot`, `MoveEnded`). It returns the next
state, what is to be done, and events for the log. It has no clock and no transport. The host takes
a snapshot after one or more batches, carries out the moves one by one, and tells how each ended. A
host that restarts begins with a new state: moves under way are in the snapshots
(`GroupSnapshot.moving`).

*Correct output.* Whatever it asks for, results are the same: the protocols see to that. What it
asks for can be carried out: no group moves twice at once, every sender holds the group, every
receiver exists and takes part.

*Invariants.* A processor that takes part in a move, is watched after one, or rests, is in no other,
except where processors left or memory is short. At most as many moves as the policy allows are
under way. A move that did not pay leaves its processors alone, twice as long each time.

*Cost.* One pass over the groups for each snapshot, and what `plait.groups.balance.decide` takes.

*Time* is event time in seconds. A snapshot in which it does not advance teaches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from plait.adapt.events import Event, EventKind
from plait.adapt.guard import Bans
from plait.figures import duration
from plait.groups.balance.cluster import ClusterSnapshot
from plait.groups.balance.decide import rebalance
from plait.groups.balance.move_guard import MoveTrial, MoveVerdict, judge_move
from plait.groups.balance.proposal import BalanceContext, BalanceSetting, Overload
from plait.groups.balance.relocation import BalanceDecision, choose_protocol, move_record, way_back
from plait.groups.moves.cost import Cargo, MoveCosts
from plait.groups.moves.move import Move


@dataclass(frozen=True, slots=True)
class MoveEnded:
    """A move was carried out, or given up with the groups where they were; None is unknown."""

    number: int
    time: float
    done: bool = True
    why: str = ""
    """Why it was given up."""
    nbytes: float = 0.0
    transferred: float | None = None
    """Seconds that the bytes were on the way."""
    rows: float = 0.0
    recomputed: float | None = None
    """Seconds that storing the rows and computing combined states took."""


class Measured(NamedTuple):
    """What a processor took, forgetting."""

    seconds: float
    span: float
    rows: float | None
    """Rows of its groups; of one that is spread, a part."""
    plan: str = ""
    """By which this was; what it took by another plan says nothing."""


@dataclass(frozen=True, slots=True)
class ManagerState:
    """What the balancer remembers between two inputs."""

    number: int = 1
    """Of the next move."""
    measured: Mapping[int, Measured] = field(default_factory=dict)
    """By processor, since its last move."""
    overloaded: Mapping[int, Overload] = field(default_factory=dict)
    moves: tuple[Move, ...] = ()
    """Those under way."""
    trials: tuple[MoveTrial, ...] = ()
    """Those that are not judged yet."""
    ended: Mapping[int, float] = field(default_factory=dict)
    """When the last move of a processor ended."""
    bans: Bans = field(default_factory=Bans)
    pressed: int = 0
    costs: MoveCosts | None = None
    """What moves have taken; None: none was measured yet."""
    said: str = ""
    """What was last decided, in brief: staying is told once."""


class BalanceStep(NamedTuple):
    """The outcome of one input: the next state, what is to be done, and events for the log."""

    manager: ManagerState
    decision: BalanceDecision | None = None
    """Moves to begin, processors that join in or leave; None: nothing."""
    events: tuple[Event, ...] = ()


def manage(
    setting: BalanceSetting, manager: ManagerState, told: ClusterSnapshot | MoveEnded
) -> BalanceStep:
    """Take in one input; return the next state, what is to be done, and events.

    >>> from plait.groups.balance.policy import BalancePolicy
    >>> from plait.groups.balance.cluster import GroupSnapshot, ClusterSnapshot, ProcessorSnapshot
    >>> processors = (ProcessorSnapshot(0, 8.0, matches=0), ProcessorSnapshot(1))
    >>> snapshot = ClusterSnapshot(10.0, 10.0, processors, tuple(
    ...     GroupSnapshot(g, (0,), (50, 50), (50, 50), nbytes=1e4) for g in range(4)))
    >>> setting = BalanceSetting(window=10.0, policy=BalancePolicy(confirm=1))
    >>> manager, decision, events = manage(setting, ManagerState(), snapshot)
    >>> print(decision.reasons[0])
    processor 0 has a load of 0.8, the mean is 0.4; 2 of its groups, 0.4 together, go to processor 1
    >>> decision.moves[0].protocol, manager.moves == decision.moves
    ('MSLB', True)
    """
    if isinstance(told, MoveEnded):
        return _ended(setting, manager, told)
    if told.span <= 0:
        return BalanceStep(manager)
    if manager.costs is not None:
        setting = replace(setting, costs=manager.costs)
    rows = _rows_of(told)
    manager = _learnt(setting, manager, told, rows)
    manager, moves, events = _judged(setting, manager, told)
    if moves:
        reasons = tuple(f"groups {_brief(m.groups)} go back: {m.forecast.reason}" for m in moves)
        decision = BalanceDecision("move", reasons, moves)
    else:
        decision = rebalance(setting, told, context_of(setting, manager, told))
    return _asked(manager, told, decision, events)


# -- snapshots


def _rows_of(snapshot: ClusterSnapshot) -> dict[int, float | None]:
    """The rows that came for each processor's groups; those of a spread group in equal parts."""
    rows: dict[int, float | None] = {p.processor: 0.0 for p in snapshot.processors}
    for group in snapshot.groups:
        came = None if group.arrived is None else sum(group.arrived) / len(group.holders)
        for holder in group.holders:
            before = rows[holder]
            rows[holder] = None if came is None or before is None else before + came
    return rows


def _learnt(
    setting: BalanceSetting,
    manager: ManagerState,
    snapshot: ClusterSnapshot,
    rows: Mapping[int, float | None],
) -> ManagerState:
    """With what was measured; of processors that were not heard of, nothing is known now."""
    keep = 0.5 ** (snapshot.span / setting.half_life)
    holding = {h for group in snapshot.groups for h in group.holders}
    measured: dict[int, Measured] = {}
    seconds: dict[int, float | None] = {}
    for found in snapshot.processors:
        p, took = found.processor, found.seconds
        if took is None and p not in holding:
            took = 0.0
        seconds[p] = took
        if took is None:
            continue
        past, came = manager.measured.get(p), rows[p]
        if past is not None and past.plan != found.plan:
            # This one has the end of the old plan, the migration, and the beginning of the new.
            measured[p] = Measured(0.0, 0.0, 0.0, found.plan)
            continue
        past = past or Measured(0.0, 0.0, 0.0)
        measured[p] = Measured(
            keep * past.seconds + took,
            keep * past.span + snapshot.span,
            None if came is None or past.rows is None else keep * past.rows + came,
            found.plan,
        )
    watched = [t for t in manager.trials if t.began is not None]
    arrived = _came(snapshot, watched)
    trials = tuple(
        t
        if t.began is None
        else t.after(
            seconds,
            snapshot.span,
            _total(rows.get(p) for p in t.processors),
            _total(arrived.get(g) for g in t.groups),
        )
        for t in manager.trials
    )
    return replace(manager, measured=measured, trials=trials)


def _came(snapshot: ClusterSnapshot, trials: Iterable[MoveTrial]) -> dict[int, float | None]:
    """The rows that came for each of the trials' groups."""
    wanted = {g for trial in trials for g in trial.groups}
    return {
        g.group: None if g.arrived is None else float(sum(g.arrived))
        for g in snapshot.groups
        if g.group in wanted
    }


def _total(values: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def context_of(
    setting: BalanceSetting, manager: ManagerState, snapshot: ClusterSnapshot
) -> BalanceContext:
    """What is remembered when it is decided."""
    busy: dict[int, str] = {}
    for p, time in manager.ended.items():
        if snapshot.time - time < setting.rest:
            busy[p] = (
                f"its last move ended {duration(snapshot.time - time)} ago, the least time between "
                f"two is {duration(setting.rest)}"
            )
    for trial in manager.trials:
        busy |= dict.fromkeys(trial.processors, "it is watched after a move")
    coming: dict[int, float] = {}
    for move in manager.moves:
        busy |= dict.fromkeys((*move.senders, *move.receivers), "it takes part in a move")
        for p in {*move.senders} ^ {*move.receivers}:
            amount = move.forecast.amount or 0.0
            coming[p] = coming.get(p, 0.0) + (amount if p in move.receivers else -amount)
    return BalanceContext(
        {p: m.seconds / m.span for p, m in manager.measured.items() if m.span > 0},
        manager.overloaded,
        busy,
        manager.bans.until,
        len(manager.moves),
        manager.number,
        manager.pressed,
        coming,
    )


def _asked(
    manager: ManagerState,
    snapshot: ClusterSnapshot,
    decision: BalanceDecision,
    events: tuple[Event, ...],
) -> BalanceStep:
    """The manager that has asked for what was decided, and what the log says about it."""
    past = manager.overloaded
    overloaded = {
        p: Overload(
            past.get(p, Overload()).snapshots + 1, past.get(p, Overload()).seconds + snapshot.span
        )
        for p in decision.overloaded
    }
    brief = f"{decision.kind} {list(decision.overloaded)} {list(decision.stuck)}"
    asks = bool(decision.moves or decision.join or decision.leave)
    if asks or brief != manager.said:
        events = (*events, _event(snapshot.time, "weighed", decision=decision.to_dict()))
    if decision.stuck and brief != manager.said:
        why = {"groups": list(decision.stuck), "reasons": list(decision.reasons)}
        events = (*events, _event(snapshot.time, "unbalanced", **why))
    pressed = manager.pressed + decision.pressed if decision.pressed else 0
    if decision.pressed * manager.pressed < 0:
        pressed = decision.pressed
    manager = replace(
        manager,
        number=manager.number + len(decision.moves),
        overloaded=overloaded,
        moves=(*manager.moves, *decision.moves),
        trials=(*manager.trials, *_trials(manager, snapshot, decision)),
        pressed=0 if decision.join or decision.leave else pressed,
        said=brief,
    )
    return BalanceStep(manager, decision if asks else None, events)


# -- did it pay?


def _trials(
    manager: ManagerState, snapshot: ClusterSnapshot, decision: BalanceDecision
) -> list[MoveTrial]:
    """What is to be watched: the moves of each sender together.

    Groups that go back, or that must go, are not judged: staying was no choice.
    """
    above = set(decision.overloaded)
    together: dict[tuple[int, ...], list[Move]] = {}
    for move in decision.moves:
        if not move.forecast.returned and above.intersection(move.senders):
            together.setdefault(move.senders, []).append(move)
    trials = [
        MoveTrial(tuple(moves), 0.0, 1.0, None, None, tuple(m.number for m in moves))
        for moves in together.values()
    ]
    came, found = _came(snapshot, trials), list[MoveTrial]()
    for trial in trials:
        known = [manager.measured.get(p) for p in trial.processors]
        loads = [m.seconds / m.span for m in known if m is not None and m.span > 0]
        after = [decision.predicted[p] for p in trial.processors if p in decision.predicted]
        if len(loads) < len(known) or not loads or not after or max(loads) <= 0:
            continue
        rate = _total(None if m is None or m.rows is None else m.rows / m.span for m in known)
        moved = _total(came.get(g) for g in trial.groups)
        found.append(
            replace(
                trial,
                before=max(loads),
                predicted=max(after) / max(loads),
                rate=rate,
                moved=None if moved is None else moved / snapshot.span,
            )
        )
    return found


def _judged(
    setting: BalanceSetting, manager: ManagerState, snapshot: ClusterSnapshot
) -> tuple[ManagerState, tuple[Move, ...], tuple[Event, ...]]:
    """Judge the moves that were watched for long enough."""
    policy, bans = setting.policy, manager.bans
    kept, back = list[MoveTrial](), list[Move]()
    events: list[Event] = []
    for trial in manager.trials:
        watched = None if trial.began is None else snapshot.time - trial.began
        if watched is None or watched < setting.trial or trial.snapshots < policy.confirm:
            kept.append(trial)
            continue
        verdict = judge_move(trial, policy)
        labels = _labels(trial.moves)
        if verdict.paid:
            bans = _pardoned(bans, labels) if verdict.measured is not None else bans
        else:
            for label in labels:
                bans = bans.after(label, snapshot.time, policy.backoff * setting.trial)
        returned = _back(setting, manager.number + len(back), trial, verdict, snapshot)
        back.extend(returned)
        events.append(_verdict_event(snapshot, trial, verdict))
    return replace(manager, trials=tuple(kept), bans=bans), tuple(back), tuple(events)


def _labels(moves: tuple[Move, ...]) -> list[str]:
    senders = {p for m in moves for p in m.senders}
    receivers = {p for m in moves for p in m.receivers} - senders
    return [f"from {p}" for p in sorted(senders)] + [f"to {p}" for p in sorted(receivers)]


def _pardoned(bans: Bans, labels: list[str]) -> Bans:
    """Without the failures of those whose move paid."""
    return Bans(
        {name: t for name, t in bans.until.items() if name not in labels},
        {name: n for name, n in bans.failures.items() if name not in labels},
    )


def _back(
    setting: BalanceSetting,
    number: int,
    trial: MoveTrial,
    verdict: MoveVerdict,
    snapshot: ClusterSnapshot,
) -> list[Move]:
    """The moves that take groups back which are still where they went."""
    if not verdict.back:
        return []
    gone = trial.groups
    found = {g.group: g for g in snapshot.groups if g.group in gone}
    active = {p.processor for p in snapshot.processors if p.active}
    heights = {p.processor: p.height for p in snapshot.processors}
    moves: list[Move] = []
    for move in trial.moves:
        there = [
            found[g]
            for g in move.groups
            if g in found and found[g].holders == move.receivers and not found[g].moving
        ]
        if not there or not active.issuperset(move.senders):
            continue
        nbytes = _total(g.nbytes for g in there)
        stored = _total(None if g.stored is None else float(sum(g.stored)) for g in there)
        way = choose_protocol(
            Cargo(nbytes, stored, None, None),
            setting.costs,
            setting.policy,
            setting.window,
            heights=(heights[move.receivers[0]], heights[move.senders[0]]),
            purge=setting.purge,
            several=len(move.senders) + len(move.receivers) > 2,
        )
        forecast = replace(move.forecast, amount=nbytes)
        there_now = replace(move, groups=tuple(g.group for g in there), forecast=forecast)
        way = way._replace(reason=verdict.reason)
        moves.append(way_back(there_now, number + len(moves), way))
    return moves


# -- moves end


def _ended(setting: BalanceSetting, manager: ManagerState, told: MoveEnded) -> BalanceStep:
    """A move was carried out or given up; one that is told twice ends once."""
    move = next((m for m in manager.moves if m.number == told.number), None)
    if move is None:
        return BalanceStep(manager)
    involved = {*move.senders, *move.receivers}
    bans = manager.bans
    if not told.done:
        for label in _labels((move,)):
            bans = bans.after(label, told.time, setting.trial)
    costs = (manager.costs or setting.costs).learnt(
        nbytes=told.nbytes,
        transferred=told.transferred,
        rows=told.rows,
        recomputed=told.recomputed,
    )
    trials = (t.ended(told.number, done=told.done, time=told.time) for t in manager.trials)
    manager = replace(
        manager,
        # What a processor took before says nothing about what it takes with other groups.
        measured={p: m for p, m in manager.measured.items() if p not in involved or not told.done},
        moves=tuple(m for m in manager.moves if m.number != told.number),
        trials=tuple(t for t in trials if t is not None),
        ended={**manager.ended, **dict.fromkeys(involved, told.time)},
        bans=bans,
        costs=costs,
    )
    data = {"move": move_record(move), "done": told.done, "why": told.why}
    return BalanceStep(manager, None, (_event(told.time, "relocated", **data),))


def _verdict_event(snapshot: ClusterSnapshot, trial: MoveTrial, verdict: MoveVerdict) -> Event:
    numbers = [m.number for m in trial.moves]
    return _event(snapshot.time, "reviewed", moves=numbers, **verdict.to_dict())


def _brief(groups: tuple[int, ...]) -> str:
    return ", ".join(map(str, groups[:8])) + (", ..." if len(groups) > 8 else "")


def _event(time: float, kind: EventKind, **data: Any) -> Event:
    return Event(kind, 0, round(time * 1e6), data)
