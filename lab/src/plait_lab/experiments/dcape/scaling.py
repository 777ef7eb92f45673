"""The distribution manager with 10, 100 and 1,000 machines: decisions, messages, time to balance.

*What is real:* the manager's decisions (`adapt.manager`) and their processor time; every message of
the protocols between manager, splits and machines, with its size, over a network with a latency and
a rate. *What is not:* the machines join nothing. What a group takes follows from the rates of its
streams, as in the cost model, and so do its bytes; old rows are gone after 2W.

One machine in ten has groups with five times the rate of the others. There is nothing about this in
the paper, whose cluster has ten machines: all claims are ours.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, ProcessorSnapshot, pairs_of
from plait.groups.balance.manager import ManagerState as Decisions
from plait.groups.balance.manager import MoveEnded, manage
from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.proposal import BalanceSetting
from plait.groups.balance.relocation import groups_to_move
from plait.groups.moves.move import Move, Protocol
from plait.groups.moves.places import Place
from plait_lab.experiments.dcape.settings import LATENCY, RATE
from plait_lab.protocol.actions import Choose, Export, MoveFinished, Reaction, WatchOldRows
from plait_lab.protocol.deliver import chosen, to_processor, to_split
from plait_lab.protocol.messages import (
    MANAGER,
    Message,
    ReceivePartitions,
    processor_name,
    split_name,
)
from plait_lab.protocol.move_manager import MoveManager
from plait_lab.protocol.parties import ProcessorParty, Split
from plait_lab.protocol.ptlb import all_old_purged
from plait_lab.reporting.comparisons import Degree, Flat, Limit, Same
from plait_lab.reporting.report import Note, Report, Series, by_project
from plait_lab.virtual.machines import Link
from plait_lab.virtual.timeline import MovedGroups, Network, Timeline

_STREAMS = 3
_PER_ROW, _PER_PAIR = 1e-4, 1e-7
_TUPLE = 64
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    machines: str = "10,100,1000"
    groups: int = 20
    """Partition groups per machine."""
    window: float = 10.0
    every: float = 5.0
    """Seconds between two looks."""
    hot: float = 5.0
    """How many times as fast the groups of one machine in ten are."""
    most: float = 300.0
    """When to stop waiting for balance, in seconds."""
    balanced: float = 1.25
    """The slowest machine over the mean, from which on the load is called balanced."""
    seed: int = 1


class StatisticalCluster:
    """Parties of the protocols with loads by rates, a network between them, and the manager."""

    def __init__(self, options: Options, machines: int, protocol: Protocol) -> None:
        rng = np.random.default_rng([options.seed, machines])
        many = machines * options.groups
        self.options, self.machines, self.protocol = options, machines, protocol
        self.holders = [g // options.groups for g in range(many)]
        self.rates = rng.uniform(8.0, 12.0, (many, _STREAMS))
        hot = max(1, machines // 10)
        self.rates[: hot * options.groups] *= options.hot
        self.work = [
            _PER_ROW * sum(r) + _PER_PAIR * pairs_of(r) * options.window
            for r in self.rates.tolist()
        ]
        self.line = Timeline()
        self.network = Network(self.line, Link(LATENCY, RATE))
        places = tuple(Place((home,)) for home in self.holders)
        self.manager = MoveManager.of(machines, _STREAMS, places)
        self.splits = [Split(s, places) for s in range(_STREAMS)]
        self.processors = [
            ProcessorParty(
                p,
                _STREAMS,
                tuple((g, 0) for g in range(p * options.groups, (p + 1) * options.groups)),
            )
            for p in range(machines)
        ]
        policy = BalancePolicy(moves=max(16, machines // 5), confirm=1, spread=False)
        self.setting = BalanceSetting(options.window, policy)
        self.decisions = Decisions()
        self.asked: dict[int, Move] = {}
        self.seconds: list[float] = []
        """Of processor time, for each look."""
        self.deciding: list[float] = []
        """The same, for looks in which moves were decided."""
        self.lengths: list[float] = []
        self.imbalances: list[tuple[float, float]] = []
        self.begun: dict[int, float] = {}
        self.promised: set[int] = set()

    # -- what the manager sees

    def loads(self) -> Floats:
        """Work per second of each machine."""
        return np.asarray(np.bincount(self.holders, self.work, self.machines), np.float64)

    @property
    def imbalance(self) -> float:
        """The slowest machine over the mean."""
        loads = self.loads()
        return float(loads.max() / loads.mean())

    def nbytes(self, group: int) -> float:
        """What a group's rows take."""
        return float(self.rates[group].sum()) * self.options.window * _TUPLE

    def look(self, now: float) -> None:
        """Look at all machines, and begin the moves that are decided."""
        self.imbalances.append((now, self.imbalance))
        span, window, moving = self.options.every, self.options.window, self._moving()
        loads = self.loads()
        held = np.bincount(self.holders, self.rates.sum(axis=1), self.machines)
        seen = ClusterSnapshot(
            now,
            span,
            tuple(
                ProcessorSnapshot(
                    p,
                    float(loads[p]) * span,
                    float(held[p]) * window * _TUPLE,
                    matches=round(float(held[p]) * span),
                )
                for p in range(self.machines)
            ),
            tuple(
                GroupSnapshot(
                    g,
                    (self.holders[g],),
                    tuple(round(r * span) for r in rates),
                    tuple(round(r * window) for r in rates),
                    self.nbytes(g),
                    work=self.work[g] * span,
                    moving=g in moving,
                )
                for g, rates in enumerate(self.rates.tolist())
            ),
        )
        began = time.process_time()
        found = manage(self.setting, self.decisions, seen)
        took = time.process_time() - began
        self.seconds.append(took)
        self.decisions = found.manager
        if found.decision is not None and found.decision.moves:
            self.deciding.append(took)
            for move in found.decision.moves:
                self._begin(move)

    def _moving(self) -> set[int]:
        return {g for m in self.manager.moving for g in m.move.groups}

    def _begin(self, move: Move) -> None:
        (sender,), (receiver,) = move.senders, move.receivers
        assert move.forecast.amount, "the bytes of every group are known"
        reaction = self.manager.ask(self.protocol, sender, receiver, move.forecast.amount)
        number = reaction.party.last
        self.asked[number], self.begun[number] = move, self.line.now
        self._managed(reaction)

    # -- messages

    def _post(self, sender: str, messages: Sequence[tuple[str, Message]]) -> None:
        for to, message in messages:
            self.network.send(sender, to, message, partial(self._arrived, to, message))

    def _arrived(self, to: str, message: Message, now: float) -> None:
        del now
        if to == MANAGER:
            self._managed(self.manager.on(message))
            return
        kind, _, number = to.partition("-")
        if kind == "split":
            split = int(number)
            reaction = to_split(self.splits[split], message)
            self.splits[split] = reaction.party
            name = split_name(split)
            self._post(name, [(processor_name(p), flag) for p, flag in reaction.flags])
            self._post(name, reaction.messages)
            return
        self._reacted(int(number), to_processor(self.processors[int(number)], message))

    def _reacted(self, number: int, reaction: Reaction[ProcessorParty]) -> None:
        self.processors[number] = reaction.party
        name = processor_name(number)
        for action in reaction.actions:
            match action:
                case Choose():
                    self._choose(number, action)
                case WatchOldRows(move=move):
                    later = self.line.now + 2 * self.options.window
                    self.line.plan(later, partial(self._purged, number, move.number))
                case Export(move=move):
                    self._post(name, self._exported(number, move))
                case _:
                    pass
        self._post(name, reaction.messages)

    def _choose(self, number: int, action: Choose) -> None:
        party = self.processors[number]
        free = [g for g, _ in party.held if g not in self.promised]
        groups = groups_to_move([(g, self.nbytes(g)) for g in free], action.amount)
        self.promised.update(groups)
        self._reacted(number, chosen(party, action.move, groups))

    def _purged(self, number: int, move: int, now: float) -> None:
        del now
        self._reacted(number, all_old_purged(self.processors[number], move))

    def _exported(self, number: int, move: Move) -> list[tuple[str, Message]]:
        size = round(sum(map(self.nbytes, move.groups)))
        cargo = MovedGroups(b"", combined=size)
        return [
            (processor_name(receiver), ReceivePartitions(move, number, cargo))
            for receiver in move.receivers
        ]

    def _managed(self, reaction: Reaction[MoveManager]) -> None:
        self.manager = reaction.party
        self._post(MANAGER, reaction.messages)
        for action in reaction.actions:
            if isinstance(action, MoveFinished):
                self._ended(action)

    def _ended(self, finished: MoveFinished) -> None:
        move, now = finished.move, self.line.now
        self.promised.difference_update(move.groups)
        if finished.done:
            self.lengths.append(now - self.begun[move.number])
            for group in move.groups:
                self.holders[group] = move.receivers[0]
        ended = MoveEnded(self.asked.pop(move.number).number, now, finished.done)
        self.decisions = manage(self.setting, self.decisions, ended).manager

    def run(self) -> float:
        """Look until the load is balanced; when that was."""
        options, now = self.options, 0.0
        while now < options.most and (self.imbalance > options.balanced or not now):
            now += options.every
            self.line.run(now)
            self.look(now)
        self.line.run(now + 4 * options.window)
        return now


@dataclass(slots=True)
class _Lines:
    decision: list[float] = field(default_factory=list)
    messages: list[float] = field(default_factory=list)
    control: list[float] = field(default_factory=list)
    balance: list[float] = field(default_factory=list)
    moves: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)


def scale(options: Options, note: Note) -> Report:
    """What a decision takes, messages and bytes per move, and the time to balance, by machines."""
    report = Report("dcape/scale", asdict(options), seed="002", runtime="virtual")
    sizes = [int(n) for n in options.machines.split(",")]
    lines: dict[Protocol, _Lines] = {}
    protocols: tuple[Protocol, ...] = ("PTLB", "MSLB")
    for protocol in protocols:
        found = lines[protocol] = _Lines()
        for machines in sizes:
            note(f"{machines} machines, {protocol}")
            cluster = StatisticalCluster(options, machines, protocol)
            found.balance.append(cluster.run())
            done = max(1, len(cluster.lengths))
            sent, nbytes = cluster.network.sent, cluster.network.nbytes
            control = sum(nbytes.values()) - nbytes["ReceivePartitions"]
            found.decision.append(statistics.median(cluster.deciding))
            found.messages.append(sum(sent.values()) / done)
            found.control.append(control / done)
            found.moves.append(len(cluster.lengths))
            found.last.append(cluster.imbalance)
            report.systems[f"{machines} machines, {protocol}"] = {
                "groups": len(cluster.holders),
                "moves": len(cluster.lengths),
                "seconds of a decision (median)": statistics.median(cluster.deciding),
                "seconds of a decision (most)": max(cluster.deciding),
                "messages per move": sum(sent.values()) / done,
                "bytes of messages per move": control / done,
                "bytes of state per move": nbytes["ReceivePartitions"] / done,
                "seconds of a move (median)": statistics.median(cluster.lengths or [0.0]),
                "seconds to balance": found.balance[-1],
                "slowest over mean, before": cluster.imbalances[0][1],
                "slowest over mean, after": cluster.imbalance,
                "messages by name": dict(sorted(sent.items())),
            }
        for label, y, unit in (
            (f"decision, {protocol}", found.decision, "seconds of processor time"),
            (f"messages per move, {protocol}", found.messages, "messages"),
            (f"bytes of messages per move, {protocol}", found.control, "bytes"),
            (f"time to balance, {protocol}", found.balance, "virtual seconds"),
        ):
            report.series.append(Series(label, sizes, y, unit, "machines", "log"))
    report.claims = [
        by_project("decision-linear", "the time of a decision grows at most like n log n with the "
                   "machines: its power", Degree(sizes, lines["MSLB"].decision, 0.0, 1.3)),
        by_project("decision-fast", "a decision for the largest cluster takes less than a second",
                   Limit(max(x for one in lines.values() for x in one.decision), 1.0, unit="s")),
        *(by_project(f"messages-{p.lower()}", f"the messages of a move by {p} do not depend on the "
                     "number of machines", Flat(one.messages, 0.05)) for p, one in lines.items()),
        by_project("balance-flat", "the time to balance by MSLB hardly depends on the number of "
                   "machines: the largest cluster over the one before",
                   Limit(lines["MSLB"].balance[-1] / lines["MSLB"].balance[-2], 2.0)),
        by_project("balanced", "every cluster is balanced in the end",
                   Same([True, *(x <= options.balanced for one in lines.values()
                                 for x in one.last)])),
    ]  # fmt: skip
    return report
