"""The distribution manager of a virtual cluster: it looks, decides, and has moves carried out.

`plait.groups.balance.manager` decides, from one look at all machines and groups, as a function on
values. The state machines of `plait_lab.protocol` carry a move out. Between them stands this host:
it counts what a look is made of, begins the moves that are asked for, and tells how they ended.

As in the D-CAPE paper, the manager names the sender, the receiver and the amount of memory, and the
sender chooses the groups. A group that is to be spread is named by the manager.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, ProcessorSnapshot
from plait.groups.balance.manager import ManagerState, MoveEnded, manage
from plait.groups.balance.proposal import BalanceSetting
from plait.groups.balance.relocation import BalanceDecision
from plait.groups.moves.move import Move, Protocol
from plait_lab.virtual.cluster import MoveRecord, VirtualCluster


@dataclass(frozen=True, slots=True)
class Balancing:
    """When the manager looks, and by what it decides."""

    setting: BalanceSetting
    every: float
    """Seconds between two looks."""
    protocol: Protocol | None = None
    """The protocol of all moves; None leaves the choice to the manager."""
    start: float = 0.0
    """When it begins to look."""
    rounds: int | None = None
    """How many decisions to move it may make; None: any number."""


@dataclass(slots=True)
class Distribution:
    """The manager at work on a cluster."""

    cluster: VirtualCluster
    balancing: Balancing
    manager: ManagerState = field(default_factory=ManagerState)
    decisions: list[tuple[float, BalanceDecision]] = field(default_factory=list)
    """What it asked for, and when."""
    _numbers: dict[int, Move] = field(default_factory=dict)
    _seen: _Seen | None = None

    def begin(self) -> None:
        """Look from now on."""
        self.cluster.on_end.append(self._ended)
        self.cluster.line.plan(self.balancing.start, self._look)

    def _look(self, now: float) -> None:
        seen, before = _seen(self.cluster, now), self._seen
        self._seen = seen
        if before is not None:
            found = manage(
                self.balancing.setting, self.manager, look_at(self.cluster, before, seen)
            )
            self.manager = found.manager
            if found.decision is not None:
                self.decisions.append((now, found.decision))
                for move in found.decision.moves:
                    self._carry_out(move)
        rounds = self.balancing.rounds
        if rounds is None or len(self.decisions) < rounds:
            self.cluster.line.plan(now + self.balancing.every, self._look)

    def _carry_out(self, move: Move) -> None:
        protocol = self.balancing.protocol or move.protocol
        single = len(move.senders) == len(move.receivers) == 1
        if single and move.forecast.amount:
            (sender,), (receiver,) = move.senders, move.receivers
            number = self.cluster.ask(protocol, sender, receiver, move.forecast.amount)
        else:
            way: Protocol = protocol if single else "MSLB"
            number = self.cluster.begin(way, move.groups, move.receivers, move.spread)
        self._numbers[number] = move

    def _ended(self, record: MoveRecord) -> None:
        """A move of ours, or somebody else's, has ended."""
        move = self._numbers.pop(record.move.number, None)
        if move is None:
            return
        ended = MoveEnded(
            move.number,
            self.cluster.line.now,
            record.done,
            rows=float(record.moved.rows),
            recomputed=record.moved.work if record.moved.rows else None,
        )
        self.manager = manage(self.balancing.setting, self.manager, ended).manager


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was counted up to a time."""

    time: float
    busy: tuple[float, ...]
    results: tuple[int, ...]
    arrived: tuple[tuple[int, ...], ...]


def _seen(cluster: VirtualCluster, now: float) -> _Seen:
    return _Seen(
        now,
        tuple(cluster.busy),
        tuple(trace.results for trace in cluster.traces),
        tuple(map(tuple, cluster.arrived.tolist())),
    )


def look_at(cluster: VirtualCluster, before: _Seen, after: _Seen) -> ClusterSnapshot:
    """All machines and groups since the last look.

    The memory of a machine is divided among its groups by their rows: its combinations and queues
    are theirs.
    """
    span = after.time - before.time
    stored = [np.array(p.store.by_group()).T for p in cluster.processors]
    per_row = [
        p.nbytes / rows.sum() if rows.sum() else 0.0
        for p, rows in zip(cluster.processors, stored, strict=True)
    ]
    places = cluster.manager.places
    moving = {g for m in cluster.manager.moving for g in m.move.groups}
    groups = []
    for group, place in enumerate(places):
        first = place.processors[0]
        rows = stored[first][group]
        groups.append(
            GroupSnapshot(
                group,
                place.processors,
                tuple(_less(after.arrived[group], before.arrived[group])),
                tuple(rows.tolist()),
                float(rows.sum()) * per_row[first],
                spread=place.spread,
                moving=group in moving,
            )
        )
    processors = tuple(
        ProcessorSnapshot(
            p,
            after.busy[p] - before.busy[p],
            machine.nbytes,
            int(stored[p].sum()),
            after.results[p] - before.results[p],
            str(machine.plan),
            machine.height,
        )
        for p, machine in enumerate(cluster.processors)
    )
    return ClusterSnapshot(after.time, span, processors, tuple(groups))


def _less(after: tuple[int, ...], before: tuple[int, ...]) -> list[int]:
    return [a - b for a, b in zip(after, before, strict=True)]
