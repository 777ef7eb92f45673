"""A manager that moves partition groups for no reason, between any two batches."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from plait.groups.moves.move import Move
from plait.node.reports.cluster_monitor import is_durable
from plait_lab.laws.processors import Cluster

_MOST_PROCESSORS = 5


class Restless:
    """Begins moves of random groups by either protocol, ends them when it may, or gives up.

    Several moves may begin and end with one table. Now and then a processor is added.

    It keeps to the protocols: a move by PTLB ends when the sender has said that nothing old is
    left, one by MSLB when all receivers have said that they can read what was exported.
    """

    def __init__(self, chance: Random, busy: float = 0.5) -> None:
        self._chance = chance
        self._busy = busy
        self._moves = 0
        self.ended = 0
        self.given_up = 0

    def manage(self, cluster: Cluster) -> None:
        """Before a batch: change the table, perhaps."""
        if is_durable(cluster.table, cluster.routing.processors, cluster.last_reports):
            cluster.forget()
        if cluster.routing.by is None or self._chance.random() > self._busy:
            return
        table, chance = cluster.table, self._chance
        if cluster.batch and len(cluster.stores) < _MOST_PROCESSORS and chance.random() < 0.1:
            cluster.add_processor()
        give_up = [m.number for m in table.under_way if chance.random() < 0.15]
        end = [
            m.number
            for m in table.under_way
            if m.number not in give_up and chance.random() < 0.7 and self._may_end(cluster, m)
        ]
        begin: list[Move] = []
        moving = set(table.moving)
        while chance.random() < 0.4:
            if (wanted := self._any_move(cluster, moving)) is None:
                break
            begin.append(wanted)
            moving |= set(wanted.groups)
        if begin or end or give_up:
            cluster.table = table.changed(
                cluster.batch,
                cluster.routing.processors,
                begin=begin,
                end=end,
                give_up=give_up,
            )
        self.given_up += len(give_up)
        self.ended += len(end)

    def _may_end(self, cluster: Cluster, move: Move) -> bool:
        said = {
            (report.processor, answer["what"])
            for report in cluster.last_reports
            for answer in report.moves
            if answer["move"] == move.number
        }
        if move.protocol == "PTLB":
            return (move.senders[0], "all old purged") in said
        return all((receiver, "received") in said for receiver in move.receivers)

    def _any_move(self, cluster: Cluster, moving: Collection[int]) -> Move | None:
        chance, table = self._chance, cluster.table
        processors = range(cluster.routing.processors)
        free = [g for g in range(len(table.places)) if g not in moving]
        if not free or len(processors) < 2:
            return None
        first = chance.choice(free)
        senders = table.places[first]
        same = [g for g in free if table.places[g] == senders]
        groups = tuple(sorted(chance.sample(same, chance.randint(1, len(same)))))
        self._moves += 1
        if chance.random() < 0.25:
            several = tuple(chance.sample(processors, chance.randint(2, len(processors))))
            stream = chance.randrange(len(cluster.query.streams))
            if (set(several), stream) == (set(senders), dict(table.spread).get(first)):
                return None
            return Move(self._moves, "MSLB", groups, senders, several, stream)
        others = [p for p in processors if (p,) != senders]
        receiver = (chance.choice(others),)
        if len(senders) == 1 and chance.random() < 0.5:
            return Move(self._moves, "PTLB", groups, senders, receiver)
        return Move(self._moves, "MSLB", groups, senders, receiver)
