"""Build a decision move by move: loads and memory as they will be after the moves so far.

The rules (`plait.groups.balance.decide`) add moves to the proposal one after the other. Each sees
the cluster as the moves before it will leave it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from plait.figures import duration
from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, Work, divided_work
from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.relocation import BalanceDecision, Kind, choose_protocol
from plait.groups.moves.cost import Cargo, MoveCosts
from plait.groups.moves.move import Move, MoveForecast


@dataclass(frozen=True, slots=True)
class BalanceSetting:
    """The window of the query, and the policy and costs by which groups are balanced."""

    window: float
    """The widest bound of the query, in seconds."""
    policy: BalancePolicy = field(default_factory=BalancePolicy)
    costs: MoveCosts = field(default_factory=MoveCosts)
    purge: float | None = None
    """How long old rows live, if PTLB is not done after W or 2W: one that purges by watermarks
    drops a combination with its oldest row, after a window and the delay."""
    movable: bool = True
    """Whether groups can move; not in a hypercube."""

    @property
    def half_life(self) -> float:
        """After how many seconds a measured load counts half."""
        return self.policy.half_life or max(self.window / 2, 1e-6)

    @property
    def rest(self) -> float:
        """The least time between two moves of a processor."""
        return self.window if self.policy.rest is None else self.policy.rest

    @property
    def trial(self) -> float:
        """How long a move is watched."""
        return self.window if self.policy.trial is None else self.policy.trial


@dataclass(frozen=True, slots=True)
class Overload:
    """For how long a processor has been above the margin."""

    snapshots: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class BalanceContext:
    """What earlier snapshots and moves say, beside the snapshot itself."""

    loads: Mapping[int, float]
    """Work per second of each processor, as far as is known."""
    overloaded: Mapping[int, Overload] = field(default_factory=dict)
    """Up to the snapshot before."""
    busy: Mapping[int, str] = field(default_factory=dict)
    """Processors that are left alone for now, and why."""
    banned: Mapping[str, float] = field(default_factory=dict)
    """«from 3» and «to 3»: until when a processor neither gives nor takes groups."""
    under_way: int = 0
    """Moves."""
    number: int = 1
    """Of the next move."""
    pressed: int = 0
    """Snapshots in a row in which the load asked for more processors, or (below 0) for fewer."""
    coming: Mapping[int, float] = field(default_factory=dict)
    """Bytes of state that moves under way bring to a processor, or (below 0) take from it."""


class BalanceProposal:
    """Loads and memory as they will be after the moves so far, and the reasons."""

    def __init__(
        self, setting: BalanceSetting, snapshot: ClusterSnapshot, context: BalanceContext
    ) -> None:
        self.setting, self.policy = setting, setting.policy
        self.snapshot, self.context = snapshot, context
        self.processors = {p.processor: p for p in snapshot.processors}
        self.held = snapshot.held()
        self.active = [p.processor for p in snapshot.processors if p.active]
        self.loads = {p: context.loads[p] for p in self.processors if p in context.loads}
        self.nbytes: dict[int, float] = {}
        for p, found in self.processors.items():
            if found.nbytes is not None or not self.held[p]:
                # What is on the way must not be sent away, or find its place taken, twice.
                self.nbytes[p] = max(0.0, (found.nbytes or 0.0) + context.coming.get(p, 0.0))
        self.before = max(self.loads.values(), default=None)
        self.moves: list[Move] = []
        self.taken: set[int] = set()
        """Groups that move."""
        self.involved: set[int] = set()
        """Processors that take part in the moves."""
        self.reasons: list[str] = []
        self.stuck: list[int] = []
        self.above: tuple[int, ...] = ()
        self.pressed = 0
        self._pauses: dict[int, float] = {}
        self._works: dict[int, dict[int, Work | None]] = {}

    # -- what is known

    @property
    def measure(self) -> dict[int, float]:
        """What is balanced."""
        return self.loads if self.policy.by == "work" else self.nbytes

    @property
    def left(self) -> int:
        """How many more moves may begin."""
        return self.policy.moves - self.context.under_way - len(self.moves)

    @property
    def room(self) -> float:
        """Bytes of state that a processor should have at most."""
        memory = self.policy.memory
        return float("inf") if memory is None else memory * (1 - self.policy.headroom)

    def room_of(self, processor: int) -> float:
        """Bytes of state that a processor can still take; if that is unknown, none."""
        if self.policy.memory is None:
            return float("inf")
        return self.room - self.nbytes.get(processor, float("inf"))

    def mean(self, measure: Mapping[int, float]) -> float:
        """What each processor that takes part would have if all had the same."""
        many = sum(1 for p in self.active if p in measure)
        return sum(measure.values()) / many if many else 0.0

    def hindrance(self, processor: int, way: str) -> str | None:
        """Why a processor does not give («from») or take («to») now."""
        if (why := self.context.busy.get(processor)) is not None:
            return why
        until = self.context.banned.get(f"{way} {processor}", -1.0)
        if self.snapshot.time < until:
            more = until - self.snapshot.time
            return f"moving groups {way} it did not pay, so not for {duration(more)} more"
        return None

    def receivers(self) -> list[int]:
        """Processors that may take groups now."""
        return [p for p in self.active if self.hindrance(p, "to") is None]

    def work(self, processor: int) -> dict[int, Work | None]:
        """The load of each group of a processor."""
        if processor not in self._works:
            found, groups = self.processors[processor], self.held[processor]
            works = divided_work(found.seconds, found.matches, groups)
            span, load = self.snapshot.span, self.context.loads.get(processor)
            scale = 1 / span if span else 0.0
            if load is not None and found.seconds:
                # Shares are those of the last snapshot, the load that of a longer time.
                scale = load / found.seconds
            self._works[processor] = {
                g.group: None if w is None else w.times(scale)
                for g, w in zip(groups, works, strict=True)
            }
        return self._works[processor]

    def weight(self, processor: int, group: GroupSnapshot) -> float | None:
        """A group's part in what is balanced."""
        if self.policy.by == "memory":
            return group.nbytes
        work = self.work(processor)[group.group]
        return None if work is None else work.total

    def movable(self, processor: int) -> list[GroupSnapshot]:
        """Groups that only this processor holds and that are not on the way."""
        return [
            g
            for g in self.held[processor]
            if not g.moving and len(g.holders) == 1 and g.group not in self.taken
        ]

    def has_room_for(self, processor: int, group: GroupSnapshot) -> bool:
        """Whether a group fits into a processor's memory; if that is unknown, it does not."""
        if self.policy.memory is None or processor in group.holders:
            return True
        return group.nbytes is not None and group.nbytes <= self.room_of(processor)

    # -- moves

    def move(
        self, sender: int, receiver: int, groups: list[GroupSnapshot], *, short: bool = False
    ) -> Move:
        """A move of groups from one processor to another, by the better protocol."""
        cargo, setting = self._cargo(sender, groups), self.setting
        way = choose_protocol(
            cargo,
            setting.costs,
            self.policy,
            setting.window,
            heights=(self.processors[sender].height, self.processors[receiver].height),
            purge=setting.purge,
            paused=self._pauses.get(sender, 0.0),
            short=short,
        )
        self._pauses[sender] = self._pauses.get(sender, 0.0) + way.pause
        rows, matches = cargo.rows_work, cargo.match_work
        load = 0.0 if rows is None or matches is None else rows + matches
        return Move(
            number=0,
            protocol=way.protocol,
            groups=tuple(sorted(g.group for g in groups)),
            senders=(sender,),
            receivers=(receiver,),
            forecast=MoveForecast(cargo.nbytes, load, way.pause, way.work, way.reason),
        )

    def several_move(
        self, group: GroupSnapshot, receivers: tuple[int, ...], stream: int | None, load: float
    ) -> Move:
        """A move of one group with several senders or receivers."""
        setting, sender = self.setting, group.holders[0]
        height = max(self.processors[r].height for r in receivers)
        way = choose_protocol(
            self._cargo(sender, [group]),
            setting.costs,
            self.policy,
            setting.window,
            heights=(self.processors[sender].height, height),
            several=True,
        )
        return Move(
            number=0,
            protocol=way.protocol,
            groups=(group.group,),
            senders=group.holders,
            receivers=receivers,
            spread=stream,
            spread_before=group.spread,
            forecast=MoveForecast(group.nbytes, load, way.pause, way.work, way.reason),
        )

    def undone(self, sender: int) -> None:
        """Moves of a sender were drawn up and are not made."""
        self._pauses.pop(sender, None)

    def accept(self, move: Move, loads: Mapping[int, float] | None = None) -> None:
        """Take a move into the decision, with the loads that follow."""
        self.moves.append(move)
        self.taken.update(move.groups)
        self.involved.update(move.senders, move.receivers)
        for processors, sign in ((move.senders, -1), (move.receivers, 1)):
            for p in processors:
                if p in self.loads and loads is None:
                    self.loads[p] = max(0.0, self.loads[p] + sign * move.forecast.load)
                if p in self.nbytes:
                    self.nbytes[p] = max(0.0, self.nbytes[p] + sign * (move.forecast.amount or 0.0))
        self.loads.update(loads or {})

    def decision(self) -> BalanceDecision:
        """All of it, with numbers for the moves."""
        first = self.context.number
        moves = tuple(replace(m, number=first + i) for i, m in enumerate(self.moves))
        kind: Kind = "move" if moves else "stuck" if self.stuck else "stay"
        return BalanceDecision(
            kind,
            tuple(self.reasons),
            moves,
            stuck=tuple(sorted(self.stuck)),
            overloaded=self.above,
            pressed=self.pressed,
            before=self.before,
            after=max(self.loads.values(), default=None),
            predicted={p: self.loads[p] for p in sorted(self.involved) if p in self.loads},
        )

    def _cargo(self, sender: int, groups: list[GroupSnapshot]) -> Cargo:
        """What is known of groups together; one unknown makes the sum unknown."""
        works = [self.work(sender).get(g.group) for g in groups]
        return Cargo(
            _sum(g.nbytes for g in groups),
            _sum(None if g.stored is None else sum(g.stored) for g in groups),
            _sum(None if w is None else w.rows for w in works),
            _sum(None if w is None else w.matches for w in works),
        )


def _sum(values: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def several(processors: Sequence[int]) -> str:
    """Processors, in words.

    >>> several((1, 2))
    'processors 1, 2'
    """
    names = ", ".join(map(str, processors[:8])) + (", ..." if len(processors) > 8 else "")
    return f"processor{'s' if len(processors) > 1 else ''} {names}"
