"""The state of one join as a value: what a control directory tells at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from plait.dashboard.reading.decision_cards import DecisionCard
from plait.dashboard.reading.series import Series
from plait.errors import PlaitError
from plait.groups.routing.table import Table
from plait.node.epochs import Epoch
from plait.node.reports.history import HistoryEntry
from plait.node.reports.question import Question
from plait.node.reports.report import Report
from plait.node.reports.requests import PlanAnswer, PlanRequest
from plait.query.query import Query

if TYPE_CHECKING:
    from plait.dashboard.reading.sites import SitesSnapshot

_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class ProcessorEstimates:
    """What a processor estimated of its streams when it last compared plans."""

    batch: int
    time: int
    """Event time, in microseconds."""
    statistics: Mapping[str, Any]
    standing: Mapping[str, Any]
    """The plan that ran, what its states held, and how far off the cost model was."""


@dataclass(frozen=True, slots=True)
class JoinSnapshot:
    """Everything that is shown of one join."""

    name: str
    folder: str
    version: int = 0
    """Another number whenever something has changed."""
    read: float = 0.0
    """When it was read, in seconds since 1970."""
    question: Question | None = None
    running: str = ""
    """The id of the query that has reported last."""
    history: Sequence[HistoryEntry] = ()
    series: Series = field(default_factory=Series)
    """The history as columns of numbers."""
    decisions: Sequence[DecisionCard] = ()
    """What was decided, the oldest first."""
    recent: Sequence[tuple[int, Sequence[Report]]] = ()
    """The last batches with their reports."""
    estimates: Mapping[int, ProcessorEstimates] = field(default_factory=dict)
    """By processor."""
    table: Table | None = None
    epoch: Epoch | None = None
    """The last thing that somebody asked for."""
    waiting: Sequence[tuple[str, PlanRequest | None]] = ()
    answers: Sequence[tuple[str, PlanAnswer]] = ()
    notes: Sequence[str] = ()
    sites: SitesSnapshot | None = None
    """What is known of a join over sites; then there is nothing else."""
    stale: str = ""
    """Why nothing newer could be read, if that is so."""

    @property
    def query(self) -> Query | None:
        """The question as a value, if it is known."""
        return None if self.question is None else self.question.query

    @property
    def latest(self) -> dict[int, Report]:
        """The last report of each processor."""
        return {r.processor: r for _, reports in self.recent for r in reports}

    @property
    def last(self) -> HistoryEntry | None:
        """The last batch that has ended."""
        return self.history[-1] if self.history else None


class Watcher(Protocol):
    """Read a join again and again."""

    name: str

    @property
    def snapshot(self) -> JoinSnapshot:
        """The last snapshot."""

    def refresh(self) -> JoinSnapshot:
        """Read what is new."""

    def settled(self) -> JoinSnapshot:
        """Read everything there is."""


def refreshed(watcher: Watcher) -> JoinSnapshot:
    """Take a new snapshot; if that fails for any reason, return the last one with the reason."""
    try:
        return watcher.refresh()
    except Exception as error:
        known = isinstance(error, PlaitError | OSError)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        return replace(watcher.snapshot, stale=reason[:_LONGEST_REASON])
