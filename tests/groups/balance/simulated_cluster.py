"""A cluster of processors whose loads are known, for tests of the distribution manager."""

from __future__ import annotations

from dataclasses import dataclass, field

from plait.groups.balance.cluster import (
    ClusterSnapshot,
    GroupSnapshot,
    ProcessorSnapshot,
    pairs_of,
    part_of,
)
from plait.groups.balance.manager import ManagerState, MoveEnded, manage
from plait.groups.balance.proposal import BalanceSetting
from plait.groups.balance.relocation import BalanceDecision
from plait.groups.moves.move import Move


@dataclass
class SimulatedGroup:
    rates: tuple[float, ...]
    holders: tuple[int, ...]
    spread: int | None = None
    moving: bool = False


@dataclass
class SimulatedCluster:
    """Work is counted: so much per row, and so much per pair of stored rows and second."""

    groups: list[SimulatedGroup]
    processors: int
    active: set[int] = field(default_factory=set)
    window: float = 10.0
    per_row: float = 1e-4
    per_pair: float = 1e-7
    slow: dict[int, float] = field(default_factory=dict)
    """How many times as long a processor takes."""
    delay: int = 1
    """Looks until a move is done."""
    time: float = 0.0
    under_way: list[tuple[int, Move]] = field(default_factory=list)
    began: list[Move] = field(default_factory=list)
    decisions: list[BalanceDecision] = field(default_factory=list)
    refuse: bool = False

    def __post_init__(self) -> None:
        self.active = self.active or set(range(self.processors))

    def load(self, group: SimulatedGroup) -> float:
        """Of a group at each of its holders, per second."""
        rates = part_of(group.rates, group.spread, len(group.holders))
        return self.per_row * sum(rates) + self.per_pair * pairs_of(rates) * self.window

    def nbytes(self, group: SimulatedGroup) -> float:
        return 100 * sum(group.rates) * self.window

    def loads(self) -> list[float]:
        found = [0.0] * self.processors
        for group in self.groups:
            for holder in group.holders:
                found[holder] += self.load(group) * self.slow.get(holder, 1.0)
        return found

    def snapshot(self, span: float = 1.0) -> ClusterSnapshot:
        self.time += span
        matches = [0.0] * self.processors
        for g in self.groups:
            here = part_of(g.rates, g.spread, len(g.holders))
            for holder in g.holders:
                # One result for each 1,000 pairs: about what they cost, in rows.
                matches[holder] += pairs_of(here) * self.window * self.per_pair / self.per_row
        return ClusterSnapshot(
            self.time,
            span,
            tuple(
                ProcessorSnapshot(
                    p,
                    load * span,
                    nbytes=sum(self.nbytes(g) for g in self.groups if p in g.holders)
                    if self.processors <= 10
                    else None,
                    matches=round(matches[p] * span),
                    active=p in self.active,
                )
                for p, load in enumerate(self.loads())
            ),
            tuple(
                GroupSnapshot(
                    i,
                    g.holders,
                    tuple(round(r * span) for r in g.rates),
                    tuple(round(r * self.window) for r in g.rates),
                    nbytes=self.nbytes(g),
                    spread=g.spread,
                    moving=g.moving,
                )
                for i, g in enumerate(self.groups)
            ),
        )

    def step(
        self, setting: BalanceSetting, manager: ManagerState, span: float = 1.0
    ) -> ManagerState:
        """One snapshot, and what is asked for then."""
        for left, move in self.under_way:
            if left == 0:
                self._carry_out(move)
                ended = MoveEnded(move.number, self.time, done=not self.refuse)
                manager = manage(setting, manager, ended).manager
        self.under_way = [(left - 1, move) for left, move in self.under_way if left > 0]
        manager, decision, _ = manage(setting, manager, self.snapshot(span))
        if decision is not None:
            self.decisions.append(decision)
            self.active = (self.active | set(decision.join)) - set(decision.leave)
            for move in decision.moves:
                self._begin(move)
        return manager

    def _begin(self, move: Move) -> None:
        assert all(0 <= r < self.processors and r in self.active for r in move.receivers)
        assert move.groups and len(set(move.receivers)) == len(move.receivers)
        assert set(move.receivers) != set(move.senders)
        if move.protocol == "PTLB":
            assert len(move.senders) == len(move.receivers) == 1
        for g in move.groups:
            assert not self.groups[g].moving, "a group moves twice at once"
            assert self.groups[g].holders == move.senders
            self.groups[g].moving = True
        self.began.append(move)
        self.under_way.append((self.delay, move))

    def _carry_out(self, move: Move) -> None:
        for g in move.groups:
            self.groups[g].moving = False
            if not self.refuse:
                self.groups[g].holders, self.groups[g].spread = move.receivers, move.spread

    def run(
        self, setting: BalanceSetting, snapshots: int, manager: ManagerState | None = None
    ) -> ManagerState:
        manager = manager or ManagerState()
        for _ in range(snapshots):
            manager = self.step(setting, manager)
        return manager

    def imbalance(self) -> float:
        """The slowest of those that take part, as a multiple of the mean."""
        loads = self.loads()
        return max(loads) * len(self.active) / sum(loads)
