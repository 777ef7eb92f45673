"""Serve readers outside the driver: keep the history of a join, and answer requests for plans.

A background task (`plait.spark.control.background`) that needs only the control directory and the
checkpoint. What fails here is logged; the query does not notice.

    question.json     what the join was asked to do; see `plait.node.reports.question`
    sink.json         how often the session compacts the logs of file sinks; see `rebalance`
    history.jsonl     one line for each batch that has ended; see `plait.node.reports.history`
    requests/, answers/   see `plait.spark.control.plan_requests`

*Recovery.* The last line of the history says where to go on. Reports of the last hundred batches
are kept, so a driver that was started again leaves no gap.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from plait.errors import PlaitError
from plait.machine.sealed import sealed
from plait.machine.stores import store_at
from plait.node.reports.history_log import HistoryWriter
from plait.node.reports.report import Report
from plait.node.reports.requests import PlanAnswer, PlanRequest
from plait.node.time_outliers import time_outlier_notes
from plait.spark.control.driver_files import HISTORY, QUESTION, SINK, batch_records, question_of
from plait.spark.control.joins import RegisteredJoin, pin, unpin
from plait.spark.control.locks import lock_on
from plait.spark.control.plan_requests import PlanRequests
from plait.spark.control.report_files import QueryReports

LOG = logging.getLogger("plait")

_AT_ONCE = 32
"""The most batches of one turn: other tasks wait for the thread."""
_EXPIRED = 120.0
"""Seconds after which a request is refused."""
_IDLE = 60.0
"""Seconds without news after which another driver may serve the query."""


class DriverService:
    """The service of one join; `clock` returns seconds since 1970."""

    def __init__(self, join: RegisteredJoin, clock: Callable[[], float] = time.time) -> None:
        self._join = join
        self._clock = clock
        self._lock = lock_on(join.control, "clerk.lock", "keeps the history of")
        self._history: HistoryWriter | None = None
        self._requests = PlanRequests(Path(join.control.folder))
        self._to_release = 0
        """The epoch to release once all processors have followed it; 0: none."""
        self._done = -1
        """The last batch in the history, or the last one without anything to write."""
        self._active = clock()
        self._warned: set[str] = set()
        """The streams whose rows far ahead were logged already."""

    def turn(self) -> bool:
        """Write the history and answer requests; whether there was something to do."""
        query, now = self._join.control.newest_query(), self._clock()
        if query is None:
            return False
        reports, waiting = self._join.control.reports(query), self._requests.waiting()
        ended = reports.last_ended(self._join.routing.processors)
        if not (waiting or self._to_release or (ended is not None and ended > self._done)):
            if now - self._active > _IDLE:
                self.release()
            return False
        self._active = now
        self._lock.take()
        try:
            news = self._write(reports, ended)
        finally:  # requests are answered, also where nothing can be written down
            for name, request in waiting:
                self._requests.answer(name, self._answer(query, request))
        if self._to_release and self._is_followed(reports, ended, self._to_release):
            self._to_release = 0
            unpin(self._join, query)
        return news or bool(waiting)

    def release(self) -> None:
        """Release the lock, so that another process can serve the join."""
        self._lock.release()
        self._history = None

    # -- history

    def _write(self, reports: QueryReports, ended: int | None) -> bool:
        """Write the question once, and the batches that have ended; whether there were any."""
        if self._history is not None:
            return self._write_history(reports, ended, self._history)
        try:
            self._write_once(QUESTION, question_of(self._join).to_json())
            if self._join.interval:
                self._write_once(SINK, sealed({"interval": self._join.interval}))
        finally:
            self._history = HistoryWriter(Path(self._join.control.folder, HISTORY))
            news = self._write_history(reports, ended, self._history)
        return news

    def _write_once(self, name: str, text: str) -> None:
        """Write a file of the control directory, unless it has that content already."""
        store, raw = store_at(self._join.control.folder), text.encode()
        try:
            there = store.read(name)
        except OSError:
            there = b""
        if there != raw:
            store.write(name, raw)

    def _write_history(
        self, reports: QueryReports, ended: int | None, history: HistoryWriter
    ) -> bool:
        if ended is None or ended <= history.last:
            self._done = history.last if ended is None else ended
            return False
        there = [batch for batch in reports.batches() if history.last < batch <= ended]
        history.add(batch_records(reports, there[:_AT_ONCE]))
        self._warn_of_rows_far_ahead(reports.of(ended))
        self._done = ended if len(there) <= _AT_ONCE else history.last
        return bool(there)

    def _warn_of_rows_far_ahead(self, reports: Sequence[Report]) -> None:
        """Log once for each stream that a row far ahead has made its rows late."""
        told = [report.far_ahead for report in reports]
        for stream in sorted({name for streams in told for name in streams} - self._warned):
            for note in time_outlier_notes({stream: s[stream]} for s in told if stream in s):
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
                self._to_release = 0
                return PlanAnswer(request, unpin(self._join, query), at=now)
            number = pin(self._join, query, request.plan, request.strategy)
        except PlaitError as error:
            return PlanAnswer(request, refused=str(error), at=now)
        self._to_release = number if request.action == "migrate" else 0
        return PlanAnswer(request, number, at=now)

    def _is_followed(self, reports: QueryReports, ended: int | None, epoch: int) -> bool:
        """Whether every processor has followed an epoch in the last batch that has ended."""
        found = [] if ended is None else reports.of(ended)
        return len(found) == self._join.routing.processors and all(
            report.epoch >= epoch for report in found
        )
