"""Report the progress of a query on Spark, from Spark's own progress and Plait's reports.

Spark's progress of the query, in `recentProgress` (the last hundred batches) or in the events that
listeners get, says which batches were done; what processors reported of them is in the control
directory, or in the progress itself where that directory is not shared (see `control`). Sums over
all batches are in each report (see `plait.node.reports.report`), so the last one is enough for
them, however long the query has been running.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from plait.errors import CheckpointDamaged, SourceError, did_you_mean
from plait.node.reports.cluster_monitor import ClusterMonitor
from plait.node.reports.placement import Placement, placement
from plait.node.reports.progress import Progress
from plait.node.reports.progress import progress as put_together
from plait.node.reports.report import Report
from plait.spark.checkpoint.stored_state import JOIN_OPERATOR
from plait.spark.control.joins import RegisteredJoin, find_join, joins_of, registered_names
from plait.spark.join.frame import OBSERVATION, observation
from plait.spark.join.watermarks import without_watermarks

_DECISIONS = 20
"""The last ones of the distribution manager."""


def progress(query: StreamingQuery, name: str | None = None) -> Progress:
    """Return totals and the batches that Spark remembers of a query (`Running.progress`)."""
    batches, notes = [], []
    events = list(query.recentProgress)
    for event in events:
        reports, unreadable = _reports(event, name)
        batches.append((event.batchId, reports, dict(event.durationMs)))
        notes += [(event.batchId, note) for note in unreadable]
    joins = [join for join in joins_of(str(query.id)) if join.name == name]
    if not any(reports for _, reports, _ in batches):
        _check_join(query, events, name)
        for join in joins[:1]:
            reports_here = join.control.reports(str(query.id))
            for number in reports_here.batches()[-1:]:
                batches.append((number, reports_here.of(number), {}))
    last = max((number for number, reports, _ in batches if reports), default=0)
    found = put_together(batches, [*notes, *((last, note) for note in _remarks(joins))])
    if not joins:
        return found
    reported = [(number, reports) for number, reports, _ in batches if reports]
    balance = joins[0].control.balance(_DECISIONS)
    return replace(found, placement=_placement(joins[0], reported), balance=balance)


def _placement(join: RegisteredJoin, batches: list[tuple[int, list[Report]]]) -> Placement | None:
    """Where the groups of a join are, and what each has taken in these batches."""
    tables, began = join.control.tables, join.routing.table
    if join.routing.by is None or not batches or not join.control.shared:
        return None
    monitor = ClusterMonitor(join.query, len(began.places), join.routing.processors)
    try:
        for number, reports in batches:
            monitor.add(reports, tables.at(number) or began)
        last, newest = tables.at(batches[-1][0]) or began, tables.newest() or began
    except (OSError, CheckpointDamaged):
        return None  # the query says so itself, in its next batch
    snapshot = monitor.snapshot(last, range(join.routing.processors))
    return None if snapshot is None else placement(snapshot, newest)


def _remarks(joins: list[RegisteredJoin]) -> list[str]:
    """Notes about the join that was found first."""
    endless = [s.name for join in joins[:1] for s in join.query.streams if s.unlimited]
    others = len({join.control.folder for join in joins}) - 1
    return [
        *([without_watermarks(endless)] if endless else ()),
        *(
            [
                f"the query has {others + 1} joins of the same name, and this is the one made "
                "last; tell them apart with to_df(name='...')"
            ]
            if others > 0
            else ()
        ),
    ]


def _check_join(query: StreamingQuery, events: list[Any], name: str | None) -> None:
    """Refuse a query that has no join of that name, as far as that is known."""
    called = query.name or query.id
    named = [join.name for join in joins_of(str(query.id))]
    named += [
        metric.partition(":")[2] or None
        for event in events
        for metric in event.observedMetrics
        if metric.partition(":")[0] == OBSERVATION
    ]
    if named and name not in named:
        listed = ", ".join(sorted({"one without a name" if n is None else repr(n) for n in named}))
        asked = "without a name" if name is None else f"called {name!r}"
        raise SourceError(
            f"the query {called} has no join {asked}", remedy=f"its joins are: {listed}"
        )
    if name is not None and not named and name not in registered_names():
        raise SourceError(
            f"no join called {name!r} was made here",
            remedy=did_you_mean(name, registered_names()),
        )
    ran = [event for event in events if "addBatch" in dict(event.durationMs)]
    if ran and not any(o.operatorName == JOIN_OPERATOR for e in ran for o in e.stateOperators):
        raise SourceError(
            f"the query {called} has no join of Plait",
            remedy="ask for a query over the DataFrame that to_df returned",
        )


def reports_of(event: Any, name: str | None = None) -> list[Report]:
    """The reports of the processors in Spark's progress of one batch; none if it did not join."""
    return _reports(event, name)[0]


def _reports(event: Any, name: str | None) -> tuple[list[Report], list[str]]:
    """The reports that can be read, and what is wrong with the others."""
    metrics = event.observedMetrics.get(observation(name))
    if metrics is not None:
        return [Report.from_json(text) for text in metrics["reports"]], []
    join = find_join(str(event.id), name)
    if join is None:
        return [], []
    return join.control.reports(str(event.id)).read(event.batchId)


class ProgressListener(StreamingQueryListener):
    """Hands the progress of every batch of every Plait query in a session to a function.

    The function gets the name of the query (its id, if it has none) and its progress, in which
    `batches` has this one batch and `total` all of them.
    """

    def __init__(self, show: Callable[[str, Progress], None], name: str | None = None) -> None:
        self._show = show
        self._name = name

    def onQueryStarted(self, event: Any) -> None:  # Spark's name
        """Nothing to show yet."""

    def onQueryProgress(self, event: Any) -> None:  # Spark's name
        """A batch was done."""
        found = event.progress
        if reports := reports_of(found, self._name):
            batch = (found.batchId, reports, dict(found.durationMs))
            self._show(found.name or str(found.id), put_together([batch]))

    def onQueryIdle(self, event: Any) -> None:  # Spark's name
        """Nothing new."""

    def onQueryTerminated(self, event: Any) -> None:  # Spark's name
        """Nothing more."""


def listen(
    session: SparkSession, show: Callable[[str, Progress], None], name: str | None = None
) -> Callable[[], None]:
    """Call a function with the name of the query and its progress after each batch.

    Call what is returned to stop it.

        stop = plait.spark.listen(spark, lambda name, progress: print(name, progress.total.results))

    `name` is that of the joins to listen to, if they were given one with `to_df`. A client of Spark
    Connect listens in a thread that keeps its process alive until it is ended.
    """
    listener = ProgressListener(show, name)
    session.streams.addListener(listener)
    return lambda: session.streams.removeListener(listener)
