"""A manager that moves partition groups for no reason, between any two batches."""

from __future__ import annotations

from random import Random

from plait.protocol.messages import Move
from plait.workshop.laws.processors import Cluster


class Restless:
    """Begins moves of random groups by either protocol, ends them as soon as it may, or gives up.

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
        if cluster.routing.by is None or self._chance.random() > self._busy:
            return
        table, since = cluster.table, cluster.batch
        under_way = list(table.under_way)
        self._chance.shuffle(under_way)
        for move in under_way:
            if self._chance.random() < 0.2:
                cluster.table = table.give_up(move.number, since)
                self.given_up += 1
                return
            if self._may_end(cluster, move):
                cluster.table = table.end(move.number, since)
                self.ended += 1
                return
        if (wanted := self._any_move(cluster)) is not None:
            cluster.table = table.begin(wanted, since, cluster.routing.processors)

    def _may_end(self, cluster: Cluster, move: Move) -> bool:
        said = {
            (report.processor, answer["what"])
            for report in cluster.reports
            for answer in report.moves
            if answer["move"] == move.number
        }
        if move.protocol == "PTLB":
            return (move.senders[0], "all old purged") in said
        return all((receiver, "received") in said for receiver in move.receivers)

    def _any_move(self, cluster: Cluster) -> Move | None:
        chance, table = self._chance, cluster.table
        processors = range(cluster.routing.processors)
        free = [g for g in range(len(table.places)) if g not in table.moving]
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
            return Move(self._moves, "MSLB", groups, senders, several, stream)
        others = [p for p in processors if (p,) != senders]
        receiver = (chance.choice(others),)
        if len(senders) == 1 and chance.random() < 0.5:
            return Move(self._moves, "PTLB", groups, senders, receiver)
        return Move(self._moves, "MSLB", groups, senders, receiver)
