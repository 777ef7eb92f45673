"""The progress of a query on Spark, from what Spark itself keeps and tells about it.

Processors report through `observe`, so reports are in Spark's progress of the query: in
`recentProgress`, which holds the last hundred batches, and in the events that listeners get.
Sums over all batches are in each report (see `plait.cluster.report`), so the last one is enough
for them, however long the query has been running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from plait.cluster.progress import Progress
from plait.cluster.progress import progress as put_together
from plait.cluster.report import Report
from plait.runtime.spark.frame import OBSERVATION


def progress(query: StreamingQuery) -> Progress:
    """How a running or finished query is doing: totals, and the batches that Spark remembers."""
    return put_together(_batches(query.recentProgress))


def _batches(events: Iterable[Any]) -> Iterable[tuple[int, list[Report], Mapping[str, int]]]:
    for event in events:
        yield event.batchId, reports_of(event), dict(event.durationMs)


def reports_of(event: Any) -> list[Report]:
    """The reports of the processors in Spark's progress of one batch; none if it did not join."""
    metrics = event.observedMetrics.get(OBSERVATION)
    return [] if metrics is None else [Report.from_json(text) for text in metrics["reports"]]


class ProgressListener(StreamingQueryListener):
    """Hands the progress of every batch of every Plait query in a session to a function.

    The function gets the name of the query (its id, if it has none) and its progress, in which
    `batches` has this one batch and `total` all of them.
    """

    def __init__(self, show: Callable[[str, Progress], None]) -> None:
        self._show = show

    def onQueryStarted(self, event: Any) -> None:  # Spark's name
        """Nothing to show yet."""

    def onQueryProgress(self, event: Any) -> None:  # Spark's name
        """A batch was done."""
        found = event.progress
        if reports := reports_of(found):
            batch = (found.batchId, reports, dict(found.durationMs))
            self._show(found.name or str(found.id), put_together([batch]))

    def onQueryIdle(self, event: Any) -> None:  # Spark's name
        """Nothing new."""

    def onQueryTerminated(self, event: Any) -> None:  # Spark's name
        """Nothing more."""


def listen(session: SparkSession, show: Callable[[str, Progress], None]) -> Callable[[], None]:
    """Call a function with the progress of each batch; returns what ends it."""
    listener = ProgressListener(show)
    session.streams.addListener(listener)
    return lambda: session.streams.removeListener(listener)
