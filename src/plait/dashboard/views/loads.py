"""Compute the load of processors and partition groups, and which groups are moving."""

from __future__ import annotations

from dataclasses import dataclass

from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.errors import PlaitError
from plait.groups.moves.move import Move
from plait.groups.routing.table import Table
from plait.node.reports.cluster_monitor import ClusterMonitor
from plait.node.reports.placement import GroupShare, Placement, placement


@dataclass(frozen=True, slots=True)
class ProcessorView:
    """One processor in the last batches."""

    number: int
    plan: str
    rows: int
    """Rows that came to it in the last batch."""
    busy: float
    """Seconds of the last batch."""
    state_bytes: int
    groups: int | None
    share: float
    """Of the rows of all processors, times their number: 1 is the mean."""


@dataclass(frozen=True, slots=True)
class LoadView:
    """All processors, groups and moves."""

    processors: tuple[ProcessorView, ...]
    groups: tuple[GroupShare, ...] = ()
    moves: tuple[Move, ...] = ()
    """Under way."""
    table: int = 0
    since: int = 0
    budget: float | None = None
    """Bytes that the state of one processor may take, if there is a limit."""

    @property
    def work(self) -> float | None:
        """Of all groups; None if that of some is not known."""
        known = [g.work for g in self.groups if g.work is not None]
        return sum(known) if known and len(known) == len(self.groups) else None


def load_view(snapshot: JoinSnapshot) -> LoadView:
    """What each processor and each group takes."""
    question = snapshot.question
    began = None if question is None else question.table
    table = snapshot.table or began
    where = _placement(snapshot, table, began) if table is not None and began is not None else None
    counts: dict[int, int] = {}
    for places in () if table is None else table.places:
        for processor in places:
            counts[processor] = counts.get(processor, 0) + 1
    latest = sorted(snapshot.latest.values(), key=lambda r: r.processor)
    routed = {r.processor: sum(r.routed.values()) for r in latest}
    mean = sum(routed.values()) / len(routed) if routed else 0.0
    processors = tuple(
        ProcessorView(
            number=r.processor,
            plan=r.plan,
            rows=routed[r.processor],
            busy=sum(r.seconds.values()),
            state_bytes=r.state_bytes,
            groups=None if table is None else counts.get(r.processor, 0),
            share=routed[r.processor] / mean if mean else 1.0,
        )
        for r in latest
    )
    budget = question.budget if question is not None else None
    limit = budget.memory if budget is not None and budget.unit == "bytes" else None
    if where is None:
        moves = () if table is None else table.under_way
        return LoadView(processors, (), moves, budget=limit)
    return LoadView(
        processors=processors,
        groups=where.groups,
        moves=where.moves,
        table=where.table,
        since=where.since,
        budget=limit,
    )


def _placement(snapshot: JoinSnapshot, table: Table, began: Table) -> Placement | None:
    """Where the groups are and what each has taken in the last batches."""
    query = snapshot.query
    assert query is not None, "with a table there is a question"
    numbers = [r.processor for _, reports in snapshot.recent for r in reports]
    processors = max([snapshot.question.processors if snapshot.question else 0,
                      *(n + 1 for n in numbers)])  # fmt: skip
    monitor = ClusterMonitor(query, len(began.places), processors)
    try:
        for number, reports in snapshot.recent:
            monitor.add(reports, table if table.since <= number else began)
        seen = monitor.snapshot(table, range(processors))
        return None if seen is None else placement(seen, table)
    except (PlaitError, IndexError, ValueError, ArithmeticError):
        return None  # reports of another version, or of another table
