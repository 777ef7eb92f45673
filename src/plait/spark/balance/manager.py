"""The distribution manager of a query, in the driver, beside the batches.

A thread of the driver looks for what processors have reported, lets the moves under way go on, and
now and then decides about new ones: the decisions are `plait.groups.balance.manager`, the moves
`plait.spark.balance.moves`. All it needs is in the control directory and the checkpoint; nothing
waits for it.

*Correct output.* It does not depend on this: a move is correct whenever it begins. What goes wrong
here is logged, and groups stay where they are.

*One manager for each checkpoint.* It holds a lock in the control directory. Where that is a folder,
the system releases the lock when the process ends, however that happens; in a remote store it gets
old. A thread whose query rests releases it too.

*Recovery.* A manager that is started again finds the moves under way in the routing tables and
brings them to their end. What it had learnt about loads it learns again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock as Mutex
from threading import Thread
from typing import Protocol

from plait.errors import MoveError, PlaitError
from plait.groups.balance.cluster import Look
from plait.groups.balance.draft import BalanceSetting
from plait.groups.balance.manager import Manager, MoveEnded, manage
from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.relocation import Balance
from plait.groups.moves.cost import MoveCosts
from plait.groups.moves.messages import Move
from plait.groups.routing.table import Table
from plait.machine.clock import REAL
from plait.node.reports.looks import Looks
from plait.node.reports.report import Report
from plait.optimize.costs import load
from plait.spark.balance.moves import Moves
from plait.spark.control.clerk import Clerk
from plait.spark.control.clerk_files import QUESTION, question_of
from plait.spark.control.directory import Control
from plait.spark.control.joins import Made
from plait.spark.control.locks import lock_on

LOG = logging.getLogger("plait")

_LOOKS = 8
"""Looks for each window of event time, if batches are as short."""
_SOON, _LATER = 0.1, 1.0
"""Seconds between two searches for reports, where they come, and where they do not."""
_REMOTE = 5.0
"""Seconds between two searches in a remote store, where each one takes some requests."""
_RESTING = 60.0
"""A query that has reported nothing for so many seconds may be run by another driver."""


class Balancer:
    """The distribution manager of one join in one run of a query.

    Without a policy it decides nothing, and only brings moves to their end.
    """

    def __init__(self, join: Made, query: str, policy: BalancePolicy | None) -> None:
        self.query = query
        self._decides = policy is not None
        self._join = join
        self._moves = Moves(join.routing, join.control, query)
        table, processors = self._moves.table, join.routing.processors
        costs = load()
        self._looks = Looks(join.query, len(table.places), processors, costs)
        life = self._looks.life
        self._setting = BalanceSetting(
            self._looks.window or life, policy or BalancePolicy(), MoveCosts.of(costs), purge=life
        )
        self._manager = Manager()
        self._sent: dict[int, tuple[int, int]] = {}
        """Rows and bytes that were exported for each move so far."""
        self._took: dict[int, float] = {}
        """Seconds that taking rows in took, of each move, at the slowest receiver."""
        asked = None if policy is None else policy.active
        held = {p for place in table.places for p in place}
        every = range(processors) if join.active is None else join.active
        self._active = set(every) if asked is None else held
        """Who takes part: all, or, where their number is given, those that hold groups now."""
        ended = self._moves.ended
        self.done = -1 if ended is None else ended
        """The last batch that was looked at; those of an earlier run are not."""

    @property
    def behind(self) -> bool:
        """Whether batches have ended that were not looked at."""
        ended = self._moves.ended
        return ended is not None and ended > self.done

    def catch_up(self) -> None:
        """Go through the batches that have ended since the last time."""
        ended = self._moves.ended
        if ended is None:
            return
        control, began = self._join.control, self._join.routing.table
        reports: Sequence[Report] = ()
        for batch in range(self.done + 1, ended + 1):
            found = control.reports(self.query, batch)
            self._count(found)
            self._looks.add(found, control.tables.at(batch) or began)
            reports = found or reports  # in some batches no processor runs
        self.done = ended
        table = self._moves.advance(reports)
        self._tell(table)
        if self._decides and self._looks.span >= self._setting.window / _LOOKS:
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

    def _tell(self, table: Table) -> None:
        """Tell the manager which moves have ended, once a batch has gone by the new table."""
        if self.done < table.since:
            return
        under_way = {move.number for move in table.under_way}
        for asked in [m for m in self._manager.moves if m.number not in under_way]:
            done = all(table.places[g] == asked.receivers for g in asked.groups)
            why = "" if done else "what was exported could not be read, or it was called off"
            rows, size = self._sent.pop(asked.number, (0, 0))
            took = self._took.pop(asked.number, None)
            now = self._looks.time
            self._managed(
                MoveEnded(asked.number, now, done, why, nbytes=size, rows=rows, recomputed=took)
            )

    def _decide(self, table: Table) -> None:
        look = self._looks.look(table, self._active)
        self._manager = replace(self._manager, number=table.last + 1)
        wish = None if look is None else self._managed(look)
        if wish is None:
            return
        self._active = (self._active | set(wish.join)) - set(wish.leave)
        if not wish.moves:
            return
        for reason in wish.reasons:
            LOG.info("after batch %d: %s", self.done, reason)
        try:
            self._moves.change(begin=[Move(**asked.message()) for asked in wish.moves])
        except MoveError as error:  # somebody else has moved groups meanwhile
            for asked in wish.moves:
                self._managed(MoveEnded(asked.number, self._looks.time, False, str(error)))

    def _managed(self, told: Look | MoveEnded) -> Balance | None:
        self._manager, wish, events = manage(self._setting, self._manager, told)
        self._join.control.write_balance(events, self.done)
        return wish


class Beside(Protocol):
    """What is done beside a query, now and then."""

    def turn(self) -> bool:
        """Do what there is to do; whether there was something."""

    def release(self) -> None:
        """Let another process do it."""


class Managing:
    """The distribution manager of whatever query runs a join."""

    def __init__(self, join: Made, policy: BalancePolicy | None) -> None:
        self._join, self._policy = join, policy
        self._lock = lock_on(join.control)
        self._balancer: Balancer | None = None
        self._heard = 0.0

    @property
    def done(self) -> int:
        """The last batch that was looked at; -1 before the first."""
        return -1 if self._balancer is None else self._balancer.done

    def turn(self) -> bool:
        """Look at the batches that have ended."""
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
        if now - self._heard > _RESTING:
            self._lock.release()
        return False

    def release(self) -> None:
        """Let another process manage the groups."""
        self._balancer = None
        self._lock.release()


class Watched:
    """One thing that is done beside a query, and when to do it next.

    `otherwise` is what follows if it cannot be done. At least so many seconds, `least`, are between
    two looks.
    """

    def __init__(self, beside: Beside, otherwise: str, least: float = _SOON) -> None:
        self._beside = beside
        self._otherwise = otherwise
        self._least = self._pause = least
        self._said = ""
        self.due = 0.0

    def look(self, now: float) -> None:
        """See what has happened, and do what is to be done."""
        news = False
        try:
            news = self._beside.turn()
        except Exception as error:  # whatever it is, the query and the other joins go on
            self.release()
            said = str(error) if isinstance(error, PlaitError | OSError) else repr(error)
            if said != self._said:
                LOG.warning("%s: %s", self._otherwise, said)
            self._said = said
        self._pause = self._least if news else max(self._least, min(2 * self._pause, _LATER))
        self.due = now + self._pause

    def release(self) -> None:
        """Let another process do it."""
        self._beside.release()

    @property
    def done(self) -> int:
        """The last batch that a manager has looked at; -1 before the first."""
        return self._beside.done if isinstance(self._beside, Managing) else -1


class BalanceThread:
    """A thread that looks after the joins of this driver, for as long as it has any."""

    def __init__(self) -> None:
        self._joins: dict[tuple[str, str], Watched] = {}
        """By control directory, and by what is done."""
        self._change = Mutex()
        self._thread: Thread | None = None

    def watch(self, join: Made, policy: BalancePolicy | None) -> None:
        """Balance a join from now on, instead of the one that was made before it there."""
        least = _REMOTE if join.control.remote else _SOON
        manager = Watched(Managing(join, policy), "partition groups stay where they are", least)
        self._begin((join.control.folder, "balance"), manager)

    def attend(self, join: Made) -> None:
        """Keep the history of a join and answer requests, from now on."""
        clerk = Watched(Clerk(join), "the history of batches is not kept")
        self._begin((join.control.folder, "clerk"), clerk)

    def _begin(self, key: tuple[str, str], watched: Watched) -> None:
        with self._change:
            before = self._joins.pop(key, None)
            if before is not None:
                before.release()
            self._joins[key] = watched
            if self._thread is None:
                self._thread = Thread(target=self._run, name="plait-balance", daemon=True)
                self._thread.start()

    def leave(self, control: Control) -> None:
        """Look no more after the join that has this control directory."""
        with self._change:
            for key in [key for key in self._joins if key[0] == control.folder]:
                self._joins.pop(key).release()

    def done(self, control: Control) -> int:
        """The last batch that was looked at of the join with this control directory, or -1."""
        watched = self._joins.get((control.folder, "balance"))
        return -1 if watched is None else watched.done

    def _run(self) -> None:
        while True:
            with self._change:
                now = REAL.wall()
                for watched in [w for w in self._joins.values() if w.due <= now]:
                    watched.look(now)
                if not self._joins:
                    self._thread = None
                    return
                due = min(watched.due for watched in self._joins.values())
            time.sleep(max(due - REAL.wall(), _SOON))


THREAD = BalanceThread()
"""That of this process."""


def look_after(join: Made) -> None:
    """Look after a join of this driver from now on, instead of the one made before it there.

    Where groups stay, those that were on their way still arrive.
    """
    THREAD.leave(join.control)
    if not join.control.shared:
        return
    if join.control.remote:  # nothing can be added to a file there, so no history is kept
        join.control.tell(QUESTION, question_of(join).to_json())
    else:
        THREAD.attend(join)
    if join.routing.by is not None and join.routing.processors > 1:
        THREAD.watch(join, join.balance)
