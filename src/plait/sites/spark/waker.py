"""Wake sites that wait for an answer while nothing else happens.

A query of Spark runs a batch when there is something to read. If the last packets before everything
comes to rest are lost, nobody makes a step in which they could be sent again. So a thread beside
each query looks now and then: if it is at rest, and the reports of its sites say that packets are
not acknowledged, it writes a file among the orders, which all applications read: the sites make a
step, and send again. While nobody answers, the thread waits twice as long each time. Where all is
acknowledged it writes nothing, so queries come to rest.

The thread only wakes: what it reads may be old, and waking too often or not at all changes no
result.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from plait.machine.drafts import write_whole
from plait.sites.spark.mail import Mailbox
from plait.sites.spark.mailboxes import ReportReader
from plait.sites.spark.orders import WAKE

_LOG = logging.getLogger("plait")
_SECONDS = 10.0
"""Between two looks."""
_MOST_LOOKS = 64
"""Looks at a query at rest before its sites are woken once more, at most."""


class Waker:
    """Wakes the sites of one application."""

    def __init__(self, box: Mailbox, application: str) -> None:
        self._reports = ReportReader(box.folder, application)
        self._orders = box.orders
        self._last: dict[str, dict[str, Any]] = {}
        """The last report of each site."""
        self._batch: int | None = None
        self._looks, self._waits = 0, 1
        self._file: Path | None = None

    def look(self, batch: int) -> bool:
        """Look at a query that has come to this batch; whether its sites were woken."""
        rests, self._batch = batch == self._batch, batch
        self._looks = self._looks + 1 if rests else 0
        if self._looks < self._waits:
            return False
        self._looks = 0
        if not self._unanswered():
            self._waits = 1
            return False
        self._waits = min(2 * self._waits, _MOST_LOOKS)
        self._wake()
        return True

    def _unanswered(self) -> bool:
        """Whether packets of a site here are not acknowledged."""
        for report in self._reports.new():
            if report["step"] > self._last.get(report["site"], {"step": 0})["step"]:
                self._last[report["site"]] = report
        return any(report.get("unanswered") for report in self._last.values())

    def _wake(self) -> None:
        """Write a new file; the one before has done its work."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)
        self._file = self._orders / f"{int.from_bytes(os.urandom(6))}{WAKE}"
        write_whole(self._file, "send again what is not acknowledged")


def keep_awake(query: StreamingQuery, waker: Waker, seconds: float = _SECONDS) -> None:
    """Look at a query from time to time, in a thread that ends with it."""

    def look() -> None:
        # Whoever runs the query is told how it ends.
        with suppress(PySparkException, ConnectionError):
            while not query.awaitTermination(seconds):  # type: ignore[arg-type]
                last = query.lastProgress
                if last is None or query.status["isTriggerActive"]:
                    continue
                try:
                    waker.look(int(last["batchId"]))
                except (OSError, ValueError) as error:
                    _LOG.warning("whether mail is to be sent again is not known: %s", error)

    threading.Thread(target=look, name="plait-waker", daemon=True).start()
