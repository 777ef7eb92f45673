"""The clerk of a join, in the driver: keeps its history, and answers what other processes ask.

It runs in the thread beside the query (`plait.spark.balance.manager`) and needs the control
directory and the checkpoint only. What goes wrong here is logged; the query does not notice.

    question.json     what the join was asked to do; see `plait.node.reports.question`
    sink.json         how often the session compacts the logs of file sinks; see `rebalance`
    history.jsonl     a line for each batch that has ended; see `plait.node.reports.history`
    requests/, answers/   see `plait.spark.control.plan_requests`

*Recovery.* The last line of the history says where to go on. Reports of the last hundred batches
are there, so a driver that was started again leaves no gap.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from plait.errors import PlaitError
from plait.machine.sealed import sealed
from plait.machine.stores import store_at
from plait.node.far_ahead import far_ahead_notes
from plait.node.reports.history_log import HistoryWriter
from plait.node.reports.requests import PlanAnswer, PlanRequest
from plait.spark.control.driver_files import HISTORY, QUESTION, SINK, batch_record, question_of
from plait.spark.control.joins import RegisteredJoin, pin, unpin
from plait.spark.control.locks import lock_on
from plait.spark.control.plan_requests import PlanRequests

LOG = logging.getLogger("plait")

_AT_ONCE = 32
"""Batches that one turn goes through, at most: others wait for the thread."""
_EXPIRED = 120.0
"""Seconds after which a request is refused."""
_IDLE = 60.0
"""Seconds without news after which another driver may serve the query."""


class DriverService:
    """The clerk of one join; `clock` tells the seconds since 1970."""

    def __init__(self, join: RegisteredJoin, clock: Callable[[], float] = time.time) -> None:
        self._join = join
        self._clock = clock
        self._lock = lock_on(join.control, "clerk.lock", "keeps the history of")
        self._history: HistoryWriter | None = None
        self._requests = PlanRequests(Path(join.control.folder))
        self._once = 0
        """The epoch that is to be released once all processors have followed it; 0: none."""
        self._told = -1
        """The last batch that the history tells, or of which there is nothing to tell."""
        self._heard = clock()
        self._warned: set[str] = set()
        """The streams of which the log tells already that a row is far ahead."""

    def turn(self) -> bool:
        """Do what there is to do; whether there was something."""
        query, now = self._join.control.newest_query(), self._clock()
        if query is None:
            return False
        waiting = self._requests.waiting()
        if not (waiting or self._once or self._behind(query)):
            if now - self._heard > _IDLE:
                self.release()
            return False
        self._heard = now
        self._lock.take()
        try:
            news = self._write(query)
        finally:  # who asks is answered, also where nothing can be written down
            for name, request in waiting:
                self._requests.answer(name, self._answer(query, request))
        if self._once and self._everywhere(query, self._once):
            self._once = 0
            unpin(self._join, query)
        return news or bool(waiting)

    def _behind(self, query: str) -> bool:
        """Whether batches have ended that the history does not tell, as far as is known."""
        ended = self._join.control.last_ended(query, self._join.routing.processors)
        return ended is not None and ended > self._told

    def release(self) -> None:
        """Let another process do this."""
        self._lock.release()
        self._history = None

    # -- history

    def _write(self, query: str) -> bool:
        """Write down what was asked, and the batches that have ended; whether there were any."""
        if self._history is not None:
            return self._write_history(query, self._history)
        try:
            self._write_once(QUESTION, question_of(self._join).to_json())
            if self._join.interval:
                self._write_once(SINK, sealed({"interval": self._join.interval}))
        finally:
            self._history = HistoryWriter(Path(self._join.control.folder, HISTORY))
            news = self._write_history(query, self._history)
        return news

    def _write_once(self, name: str, text: str) -> None:
        """Write a file of the control directory, unless it says that already."""
        store, raw = store_at(self._join.control.folder), text.encode()
        try:
            there = store.read(name)
        except OSError:
            there = b""
        if there != raw:
            store.write(name, raw)

    def _write_history(self, query: str, history: HistoryWriter) -> bool:
        control = self._join.control
        ended = control.last_ended(query, self._join.routing.processors)
        if ended is None or ended <= history.last:
            self._told = history.last if ended is None else ended
            return False
        there = [b for b in control.batches(query) if history.last < b <= ended]
        history.add(list(filter(None, (batch_record(control, query, b) for b in there[:_AT_ONCE]))))
        self._warn_of_rows_far_ahead(query, ended)
        self._told = ended if len(there) <= _AT_ONCE else history.last
        return bool(there)

    def _warn_of_rows_far_ahead(self, query: str, batch: int) -> None:
        """Log once of each stream that a row far ahead has made its rows late."""
        told = [report.far_ahead for report in self._join.control.reports(query, batch)]
        for stream in sorted({name for streams in told for name in streams} - self._warned):
            for note in far_ahead_notes({stream: s[stream]} for s in told if stream in s):
                self._warned.add(stream)
                LOG.warning("%s", note)

    # -- requests

    def _answer(self, query: str, request: PlanRequest | None) -> PlanAnswer | None:
        if request is None:
            return None
        now = self._clock()
        # Assumption: clock-of-a-request
        if now - request.at > _EXPIRED:
            return PlanAnswer(request, refused="it was asked too long ago; ask again", at=now)
        try:
            if request.action == "release":
                self._once = 0
                return PlanAnswer(request, unpin(self._join, query), at=now)
            number = pin(self._join, query, request.plan, request.strategy)
        except PlaitError as error:
            return PlanAnswer(request, refused=str(error), at=now)
        self._once = number if request.action == "migrate" else 0
        return PlanAnswer(request, number, at=now)

    def _everywhere(self, query: str, epoch: int) -> bool:
        """Whether every processor has followed an epoch."""
        control, processors = self._join.control, self._join.routing.processors
        ended = control.last_ended(query, processors)
        reports = [] if ended is None else control.reports(query, ended)
        return len(reports) == processors and all(report.epoch >= epoch for report in reports)
