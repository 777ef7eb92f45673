"""Take snapshots of the cluster from the reports of all processors.

The host hands in the reports of each batch that has ended (`add`), and takes a snapshot when it
wants a decision (`snapshot`). A snapshot covers all batches since the one before.

*What is counted and what is estimated.* Rows that came for a group are counted, each once: those of
a stream that is divided among processors are added up, and of copies the largest number counts. The
rows that a group has stored are those that came within the last window and delay. Its bytes are
that many rows of the mean size.

*Work* is what the tasks took of a core: a task that had to wait for one has no more work for it.
Much of it may go into rows that a condition drops, so results do not tell how much goes into
matches. What lookups visited does: chains are ordered by time, so almost all that they visit is
combined and checked. Both are counted as so many rows' work, by the calibrated costs.

*Time* is how far the least watermark has come since the first report, in seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, ProcessorSnapshot
from plait.groups.routing.table import Table
from plait.node.reports.report import Report
from plait.node.reports.work import WORK
from plait.optimize.costs import DEFAULT, Costs
from plait.query.query import Query

Counts = npt.NDArray[np.int64]
_SECOND = 1_000_000
_VISITED = WORK.index("visited")


@dataclass(slots=True)
class _Since:
    """What a processor has done since the last snapshot."""

    seconds: float = 0.0
    matches: float = 0.0
    last: Report | None = None


@dataclass(slots=True)
class ClusterMonitor:
    """Reports since the last snapshot, and the arrivals of a window."""

    query: Query
    groups: int
    processors: int
    costs: Costs = DEFAULT
    _began: int | None = None
    _now: int = 0
    """The least watermark, in microseconds."""
    _last_time: float = 0.0
    _since: dict[int, _Since] = field(default_factory=dict)
    _arrived: Counts | None = None
    _stored: deque[tuple[int, Counts]] = field(default_factory=deque)
    """What came in the batches of the last window, with the watermark after each."""

    @property
    def window(self) -> float:
        """Seconds by which the rows of a result may be apart."""
        return self.query.bounds.widest / _SECOND

    @property
    def life(self) -> float:
        """Seconds for which a row is stored: the window and the longest delay that has an end."""
        delays = [s.delay for s in self.query.streams if not s.unlimited]
        return (self.query.bounds.widest + max(delays, default=0)) / _SECOND

    @property
    def time(self) -> float:
        """Seconds since the first report."""
        return 0.0 if self._began is None else (self._now - self._began) / _SECOND

    @property
    def span(self) -> float:
        """Seconds since the last snapshot."""
        return self.time - self._last_time

    def add(self, reports: Sequence[Report], table: Table) -> None:
        """The reports of one more batch, which was routed by this table."""
        marks = [min(r.watermarks.values()) for r in reports if r.watermarks]
        if not marks:
            return
        first = self._began is None
        self._now = max(marks) if self._began is None else max(self._now, *marks)
        self._began = self._now if self._began is None else self._began
        for report in [] if first else reports:  # how long the first took to come is not known
            since = self._since.setdefault(report.processor, _Since())
            stages = report.cpu or report.seconds
            # To prepare is the price of a restart or of a move, not of the groups.
            since.seconds += sum(took for stage, took in stages.items() if stage != "prepare")
            since.matches += report.results + self._visited(report)
            since.last = report
        came = self._counted(reports, dict(table.spread))
        if not first:
            self._arrived = came if self._arrived is None else self._arrived + came
        self._stored.append((self._now, came))
        while self._stored[0][0] < self._now - self.life * _SECOND:
            self._stored.popleft()

    def snapshot(self, table: Table, active: Collection[int]) -> ClusterSnapshot | None:
        """All processors and groups since the last snapshot; None if no time has passed."""
        if self._arrived is None or self.span <= 0:
            return None
        stored = np.sum([came for _, came in self._stored], axis=0)
        found = ClusterSnapshot(
            self.time,
            self.span,
            tuple(self._processor(p, p in active) for p in range(self.processors)),
            self._groups(table, self._arrived, stored),
        )
        self._last_time, self._since, self._arrived = self.time, {}, None
        return found

    def _processor(self, number: int, active: bool) -> ProcessorSnapshot:
        since = self._since.get(number)
        if since is None or since.last is None:
            return ProcessorSnapshot(number, active=active)
        last = since.last
        return ProcessorSnapshot(
            number,
            since.seconds,
            float(last.state_bytes),
            last.state_rows,
            since.matches,
            last.plan,
            active=active,
        )

    def _groups(self, table: Table, arrived: Counts, stored: Counts) -> tuple[GroupSnapshot, ...]:
        size, spread, moving = self._row_size(stored), dict(table.spread), table.moving
        return tuple(
            GroupSnapshot(
                g,
                holders,
                tuple(arrived[g].tolist()),
                tuple(stored[g].tolist()),
                None if size is None else float(stored[g].sum() * size),
                None,
                spread.get(g),
                g in moving,
            )
            for g, holders in enumerate(table.places)
        )

    def _visited(self, report: Report) -> float:
        """What lookups have visited, as so many rows' work."""
        costs, visited = self.costs, sum(done[_VISITED] for done in report.work.values())
        row = costs.arrive + costs.insert + costs.delete + costs.probe
        return visited * (costs.visit + costs.match + 2 * costs.carry) / row if row else 0.0

    def _row_size(self, stored: Counts) -> float | None:
        """Bytes of state for each stored row, combined tuples included."""
        last = [s.last for s in self._since.values() if s.last is not None]
        rows = int(stored.sum())
        return sum(report.state_bytes for report in last) / rows if rows else None

    def _counted(self, reports: Sequence[Report], divided: Mapping[int, int]) -> Counts:
        """Rows of each group and stream, each counted once."""
        copies = np.zeros((len(reports), self.groups, len(self.query.streams)), np.int64)
        for r, report in enumerate(reports):
            for name, counts in report.groups.items():
                stream = self.query.index(name)
                copies[r, list(counts), stream] = list(counts.values())
        found: Counts = copies.max(axis=0, initial=0)
        for group, stream in divided.items():
            found[group, stream] = copies[:, group, stream].sum()
        return found


def is_durable(table: Table, processors: int, reports: Collection[Report]) -> bool:
    """Whether all processors have gone over to a table in a batch that was committed.

    `reports` are those of the last batch in which they ran. Until then, they need the tables before
    this one, and what was exported for the moves that it ends.

    >>> table = Table(((0,), (1,)), number=3)
    >>> is_durable(table, 2, [Report(0, table_before=3), Report(1, table_before=3)])
    True
    >>> is_durable(table, 2, [])
    False
    """
    return len(reports) == processors and all(r.table_before == table.number for r in reports)
