"""What is remembered of batches long gone: a few numbers for each, and every decision.

Reports are kept of the last hundred batches or so, and they are large. Of each batch that has ended
one `HistoryEntry` remains, made of the reports of all its processors: one line in a log. When there
are too many, neighbours are put together, the older ones first (`thinned`), so that the log of a
query that runs for years stays small and still reaches back to its beginning.

*Invariants.* Sums over all lines do not change by putting together. Sizes, plans and watermarks are
those of the last batch of a line. Decisions are kept, the newest ones of a line if there are many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any

from plait.adapt.events import Event
from plait.codec import from_plain
from plait.errors import SourceError
from plait.node.reports.progress import counted
from plait.node.reports.report import Report, plus

_KEPT = 64
"""Decisions that a line keeps, at most."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One batch that has ended, or several that follow each other."""

    first: int
    last: int
    """Numbers of batches, both included."""
    at: float = 0.0
    """When the last one began, in seconds since 1970; 0 if that is not known."""
    took: float = 0.0
    """Seconds that they took in all."""
    batches: int = 1
    """How many of them there were reports of."""
    rows: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    aside: int = 0
    """Rows without a usable time or key."""
    results: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """Time per stage of the slowest processor."""
    written_bytes: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    fullest: int = 0
    """Bytes of state of the fullest processor."""
    watermarks: dict[str, int] = field(default_factory=dict)
    plans: dict[str, int] = field(default_factory=dict)
    """How many processors ran each plan."""
    hottest: tuple[int, float] = (0, 1.0)
    """The processor with the most rows, and how many times the mean that is."""
    decisions: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without what is as usual."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return {n: p for n, p in parts.items() if p or n in ("first", "last")}

    @classmethod
    def from_dict(cls, given: object) -> HistoryEntry:
        """The inverse of `to_dict`; fields of later versions are left out.

        Anything else is a SourceError.

        >>> entry = HistoryEntry(3, 3, results=7)
        >>> HistoryEntry.from_dict(entry.to_dict()) == entry
        True
        """
        found = from_plain(cls, given, any_version=True)
        if found.first > found.last:
            raise SourceError("its last batch is before its first")
        return found

    def and_then(self, later: HistoryEntry) -> HistoryEntry:
        """With those that follow.

        >>> HistoryEntry(1, 1, results=2).and_then(HistoryEntry(2, 2, results=3)).results
        5
        """
        sums = {name: plus(getattr(self, name), getattr(later, name)) for name in _SUMMED}
        decided = (*self.decisions, *later.decisions)[-_KEPT:]
        return replace(later, first=self.first, decisions=decided, **sums)


_SUMMED = (
    "took", "batches", "rows", "late", "aside", "results", "seconds", "written_bytes"
)  # fmt: skip


def history_entry(
    number: int, reports: Sequence[Report], at: float = 0.0, took: float = 0.0
) -> HistoryEntry:
    """What remains of a batch. Without `took`, it took as long as its slowest processor.

    >>> one = Report(0, 1, rows={"a": 2}, results=3, state_bytes=9, seconds={"join": 0.5})
    >>> past = history_entry(17, [one])
    >>> past.last, past.rows, past.results, past.took
    (17, {'a': 2}, 3, 0.5)
    """
    sums = counted(reports)
    slowest = max((sum(r.seconds.values()) for r in reports), default=0.0)
    return HistoryEntry(
        first=number,
        last=number,
        at=round(at, 3),
        took=round(took or slowest, 4),
        batches=1,
        rows=dict(sums.rows),
        late={name: n for name, n in sums.late.items() if n},
        aside=sum(
            sum(c.values()) for c in (sums.null_times, sums.ahead, sums.null_keys, sums.malformed)
        ),
        results=sums.results,
        seconds={stage: round(s, 4) for stage, s in sums.seconds.items()},
        written_bytes=sums.written_bytes,
        state_rows=sum(r.state_rows for r in reports),
        state_bytes=sum(r.state_bytes for r in reports),
        fullest=max((r.state_bytes for r in reports), default=0),
        watermarks=max((r.watermarks for r in reports), key=len, default={}),
        plans=dict(Counter(r.plan for r in reports)),
        hottest=(sums.hottest[0], round(sums.hottest[1], 3)),
        decisions=tuple(d for report in reports for d in _decisions(number, report))[-_KEPT:],
    )


def thinned(lines: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """The older half with neighbours put together.

    >>> [(p.first, p.last) for p in thinned([HistoryEntry(n, n) for n in range(5)])]
    [(0, 1), (2, 2), (3, 3), (4, 4)]
    """
    half = len(lines) // 2
    old, new = lines[:half], lines[half:]
    pairs = [reduce(HistoryEntry.and_then, old[i : i + 2]) for i in range(0, half, 2)]
    return [*pairs, *new]


def _decisions(number: int, report: Report) -> Iterator[dict[str, Any]]:
    """What was decided in a batch at one processor, in brief.

    A change of plan that no event tells was asked for by somebody. One that goes on beside the old
    plan is told in every batch; whoever shows them knows it by where it began. What another version
    tells in other ways is left out.
    """
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        yield from _told(number, report)


def _told(number: int, report: Report) -> Iterator[dict[str, Any]]:
    why: Mapping[str, Any] = {}
    told = set()
    for event in report.events:
        common = {"batch": number, "processor": report.processor, "time": event.time}
        if event.kind == "compared":
            why = event.data.get("decision", {})
        elif event.kind == "migrated":
            told.add((event.data.get("start"), str(event.data.get("new"))))
            yield common | _change(event, why)
        elif event.kind == "judged":
            yield common | {"kind": "judged"} | _chosen(event.data, _JUDGED)
        elif event.kind == "unqualified":
            yield common | {"kind": "unqualified"} | _chosen(event.data, _SHORT)
    for record in report.migrations:
        fresh = record.get("start") in (None, report.batch - 1, report.batch)
        if fresh and (record.get("start"), str(record.get("new"))) not in told:
            common = {"batch": number, "processor": report.processor}
            yield common | {"kind": "asked"} | _chosen(record, _RECORD)


_RECORD = ("old", "new", "strategy", "status", "pause", "shared", "recomputed", "start", "reason")
_JUDGED = ("plan", "old", "paid", "measured", "predicted", "reason")
_SHORT = ("plan", "resource", "reasons")


def _change(event: Event, why: Mapping[str, Any]) -> dict[str, Any]:
    """A change of plan by the adaptive loop, with the comparison that led to it."""
    found = {"kind": "migrated"} | _chosen(event.data, (*_RECORD, "returned", "refused", "change"))
    found["label"] = event.data.get("plan", "")
    if not event.data.get("returned"):
        found["reasons"] = list(why.get("reasons", ()))
        for name, cost in (("before", why.get("current")), ("after", why.get("cost"))):
            if cost:
                found[name] = cost.get("cpu")
    return found


def _chosen(data: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: data[name] for name in names if name in data}
