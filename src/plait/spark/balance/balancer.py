"""Balance the partition groups of a running join, from what its processors report.

A `BalanceTask` runs in the driver's background thread (`plait.spark.control.background`). It reads
the reports of the batches that have ended, advances the moves under way, and asks
`plait.groups.balance.manager` for new ones. `plait.spark.balance.moves` carries them out.

*Correct output.* It does not depend on this: a move is correct whenever it begins. If balancing
fails, that is logged, and groups stay where they are.

*One balancer for each checkpoint.* It holds a lock in the control directory. In a folder, the
system releases the lock when the process ends, however that happens; in a remote store it expires.
A task whose query is idle releases it too.

*Recovery.* A balancer that is started again finds the moves under way in the routing tables and
brings them to their end. What it had measured about loads it measures again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from plait.errors import MoveError
from plait.groups.balance.cluster import ClusterSnapshot
from plait.groups.balance.manager import ManagerState, MoveEnded, manage
from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.proposal import BalanceSetting
from plait.groups.balance.relocation import BalanceDecision
from plait.groups.moves.cost import MoveCosts
from plait.groups.routing.table import Table
from plait.machine.clock import REAL
from plait.node.reports.cluster_monitor import ClusterMonitor
from plait.node.reports.report import Report
from plait.optimize.costs import load
from plait.spark.balance.moves import Moves
from plait.spark.control.joins import RegisteredJoin
from plait.spark.control.locks import lock_on

LOG = logging.getLogger("plait")

_LOOKS = 8
"""Decisions for each window of event time, if batches are as short."""
_IDLE = 60.0
"""Seconds without a report after which another driver may balance the query."""


class Balancer:
    """The balancer of one join in one run of a query.

    Without a policy it begins no moves, and only brings those under way to their end.
    """

    def __init__(self, join: RegisteredJoin, query: str, policy: BalancePolicy | None) -> None:
        self.query = query
        self._decides = policy is not None
        self._join = join
        self._moves = Moves(join.routing, join.control, query)
        table, processors = self._moves.table, join.routing.processors
        costs = load()
        self._monitor = ClusterMonitor(join.query, len(table.places), processors, costs)
        life = self._monitor.life
        self._setting = BalanceSetting(
            self._monitor.window or life, policy or BalancePolicy(), MoveCosts.of(costs), purge=life
        )
        self._manager = ManagerState()
        self._sent: dict[int, tuple[int, int]] = {}
        """Rows and bytes that were exported for each move so far."""
        self._took: dict[int, float] = {}
        """Seconds that the slowest receiver of each move took to import rows."""
        asked = None if policy is None else policy.active
        held = {p for place in table.places for p in place}
        every = range(processors) if join.active is None else join.active
        self._active = set(every) if asked is None else held
        """The processors that take part: all; if their number is given, those that hold groups."""
        ended = self._moves.ended
        self.done = -1 if ended is None else ended
        """The last batch that was processed; those of an earlier run are not."""

    @property
    def behind(self) -> bool:
        """Whether batches have ended that were not processed yet."""
        ended = self._moves.ended
        return ended is not None and ended > self.done

    def catch_up(self) -> None:
        """Process the batches that have ended since the last time."""
        ended = self._moves.ended
        if ended is None:
            return
        control, began = self._join.control, self._join.routing.table
        reports: Sequence[Report] = ()
        for batch in range(self.done + 1, ended + 1):
            found = control.reports(self.query).of(batch)
            self._count(found)
            self._monitor.add(found, control.tables.at(batch) or began)
            reports = found or reports  # in some batches no processor runs
        self.done = ended
        table = self._moves.advance(reports)
        self._end_moves(table)
        if self._decides and self._monitor.span >= self._setting.window / _LOOKS:
            self._decide(table)

    def _count(self, reports: Sequence[Report]) -> None:
        for answer in (answer for report in reports for answer in report.moves):
            if answer["what"] == "sent":
                rows, size = self._sent.get(answer["move"], (0, 0))
                sent = (rows + int(answer["rows"]), size + int(answer["bytes"]))
                self._sent[answer["move"]] = sent
            elif answer["what"] == "taken in":
                seconds = float(answer["seconds"])
                self._took[answer["move"]] = max(seconds, self._took.get(answer["move"], 0.0))

    def _end_moves(self, table: Table) -> None:
        """Tell the manager which moves have ended, once a batch was routed by the new table."""
        if self.done < table.since:
            return
        under_way = {move.number for move in table.under_way}
        for asked in [m for m in self._manager.moves if m.number not in under_way]:
            done = all(table.places[g] == asked.receivers for g in asked.groups)
            why = "" if done else "the export could not be read, or the move was called off"
            rows, size = self._sent.pop(asked.number, (0, 0))
            took = self._took.pop(asked.number, None)
            now = self._monitor.time
            self._manage(
                MoveEnded(asked.number, now, done, why, nbytes=size, rows=rows, recomputed=took)
            )

    def _decide(self, table: Table) -> None:
        snapshot = self._monitor.snapshot(table, self._active)
        self._manager = replace(self._manager, number=table.last + 1)
        decision = None if snapshot is None else self._manage(snapshot)
        if decision is None:
            return
        self._active = (self._active | set(decision.join)) - set(decision.leave)
        if not decision.moves:
            return
        for reason in decision.reasons:
            LOG.info("after batch %d: %s", self.done, reason)
        try:
            self._moves.change(begin=decision.moves)
        except MoveError as error:  # somebody else has moved groups meanwhile
            for asked in decision.moves:
                self._manage(MoveEnded(asked.number, self._monitor.time, False, str(error)))

    def _manage(self, event: ClusterSnapshot | MoveEnded) -> BalanceDecision | None:
        self._manager, decision, events = manage(self._setting, self._manager, event)
        self._join.control.write_balance(events, self.done)
        return decision


class BalanceTask:
    """Balance a join, whichever query runs it."""

    def __init__(self, join: RegisteredJoin, policy: BalancePolicy | None) -> None:
        self._join, self._policy = join, policy
        self._lock = lock_on(join.control)
        self._balancer: Balancer | None = None
        self._heard = 0.0

    @property
    def done(self) -> int:
        """The last batch that was processed; -1 before the first."""
        return -1 if self._balancer is None else self._balancer.done

    def turn(self) -> bool:
        """Balance by the batches that have ended since the last turn."""
        now = REAL.wall()
        query = self._join.control.newest_query()
        if query is None:
            return False
        if self._balancer is None or self._balancer.query != query:
            self._lock.take()
            self._balancer = Balancer(self._join, query, self._policy)
            self._heard = now
        if self._balancer.behind:
            self._lock.take()
            self._balancer.catch_up()
            self._heard = now
            return True
        if now - self._heard > _IDLE:
            self._lock.release()
        return False

    def release(self) -> None:
        """Release the lock, so that another process can balance the groups."""
        self._balancer = None
        self._lock.release()
