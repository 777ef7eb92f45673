"""How a query is doing: the reports of all processors put together, per batch and in all.

Rows that pack tasks count are in the beats of every processor, so these counts are the same in all
reports; what processors count themselves is added up. A stage takes as long as its slowest
processor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any

from plait.adapt.events import Event
from plait.node.reports.placement import Placement
from plait.node.reports.progress_text import html, lines
from plait.node.reports.report import SUMMED, Report, plus
from plait.node.time_outliers import time_outlier_notes

_RAN = "addBatch"
"""Among Spark's times, the one that only a batch has that was run."""
_FROM_BEATS = ("rows", "null_times", "ahead", "null_keys", "filtered", "malformed")


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """What became of the rows, by stream, and what was done, in one batch or in all of them."""

    rows: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    null_times: Mapping[str, int] = field(default_factory=dict)
    """Rows without a usable event time."""
    ahead: Mapping[str, int] = field(default_factory=dict)
    """Rows further ahead of the clock than their stream may be."""
    null_keys: Mapping[str, int] = field(default_factory=dict)
    filtered: Mapping[str, int] = field(default_factory=dict)
    """Rows that failed a condition on their own stream."""
    malformed: Mapping[str, int] = field(default_factory=dict)
    """Kafka values that could not be decoded into rows; see `plait.spark.from_kafka`."""
    results: int = 0
    routed: Mapping[int, int] = field(default_factory=dict)
    """Rows that each processor got, copies included."""
    rebuilt: int = 0
    """How often a processor had to rebuild its engine from the state."""
    reused: int = 0
    """How often a processor found its engine in memory."""
    written_bytes: int = 0
    unwritten: Mapping[str, int] = field(default_factory=dict)
    """Reports and event logs that could not be written; results do not depend on them."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Time per stage of the slowest processor."""

    @property
    def hottest(self) -> tuple[int, float]:
        """The processor with the most rows, and how many times the mean that is.

        >>> BatchCounts(routed={0: 10, 1: 30}).hottest
        (1, 1.5)
        """
        total = sum(self.routed.values())
        if not total:
            return 0, 1.0
        processor = max(self.routed, key=lambda p: (self.routed[p], -p))
        return processor, self.routed[processor] * len(self.routed) / total


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """One batch, by Spark's number where Spark runs it."""

    number: int
    counted: BatchCounts
    milliseconds: Mapping[str, int] = field(default_factory=dict)
    """Spark's own times of this batch (`durationMs`)."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How a query is doing. `print` it, give it to rich, or end a cell of a notebook with it.

    `total` covers all batches since the checkpoint began, across restarts; `batches` are those
    that are remembered one by one, the last one last.
    """

    batches: tuple[BatchProgress, ...] = ()
    total: BatchCounts = field(default_factory=BatchCounts)
    processed: int = 0
    """Batches in all."""
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """Of each stream that was seen, in microseconds since 1970."""
    state_rows: int = 0
    state_bytes: int = 0
    segments: int = 0
    plans: Mapping[int, str] = field(default_factory=dict)
    """The plan that each processor runs."""
    epochs: Mapping[int, int] = field(default_factory=dict)
    """The newest decision of the driver that each processor has followed."""
    migrations: tuple[tuple[int, Mapping[str, Any]], ...] = ()
    """By processor, the changes of plan in the remembered batches, each as it stood last."""
    events: tuple[Event, ...] = ()
    """What the processors decided for themselves in the remembered batches, and why."""
    notes: tuple[tuple[int, str], ...] = ()
    """What went wrong beside the results, with the batch in which it was said last."""
    unreported: tuple[int, ...] = ()
    """The remembered batches that were done and of which no report can be read."""
    placement: Placement | None = None
    """Where partition groups are, and what each takes; None if they are cells of a hypercube."""
    balance: tuple[Event, ...] = ()
    """What the distribution manager did last, and why."""

    @property
    def last(self) -> BatchProgress | None:
        """The last batch."""
        return self.batches[-1] if self.batches else None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for logs and dashboards; see also `to_json`."""
        return asdict(self)

    def to_json(self) -> str:
        """Everything as JSON.

        >>> Progress(processed=3).to_json()[:45]
        '{"batches": [], "total": {"rows": {}, "late":'
        """
        return json.dumps(self.to_dict(), default=str)

    def __str__(self) -> str:
        return "\n".join(lines(self))

    def __rich_console__(self, console: Any, options: object) -> Iterator[object]:
        """What rich asks for: the same lines, of which no name is taken for markup.

        The console is handed in by whoever has one, so nothing here needs rich.
        """
        for number, line in enumerate(lines(self)):
            heading = number == 0 and self.last is not None
            yield console.render_str(
                line, style="bold" if heading else "", markup=False, emoji=False, highlight=False
            )

    def _repr_html_(self) -> str:
        return html(self)


def counted(reports: Sequence[Report]) -> BatchCounts:
    """One batch, from the reports of all its processors."""
    parts = {r.processor: {n: getattr(r, n) for n in SUMMED} for r in reports}
    return _together(parts, sum(r.batch > 1 for r in reports))


def progress(
    batches: Iterable[tuple[int, Sequence[Report], Mapping[str, int]]],
    notes: Iterable[tuple[int, str]] = (),
) -> Progress:
    """Put together batches: number, reports and Spark's times.

    Those without reports count not, but if Spark has times of them, they are named. `notes` are
    those of whoever collected the reports, by batch. A processor whose last report is missing is
    taken as it was in the one before.

    >>> from plait.node.reports.report import Report
    >>> one = Report(0, 1, rows={"a": 2}, results=3, total={"rows": {"a": 9}, "results": 7})
    >>> found = progress([(0, [one], {})])
    >>> found.total.rows, found.total.results, found.batches[0].counted.results
    ({'a': 9}, 7, 3)
    """
    all_batches = list(batches)
    known = [(number, reports, times) for number, reports, times in all_batches if reports]
    said = [(number, note) for number, rs, _ in known for r in rs for note in r.notes]
    told = tuple(sorted((number, note) for note, number in _last([*notes, *said]).items()))
    silent = tuple(number for number, rs, times in all_batches if not rs and _RAN in times)
    if not known:
        return Progress(notes=told, unreported=silent)
    latest = {r.processor: r for _, reports, _ in known for r in reports}
    newest = [latest[processor] for processor in sorted(latest)]
    told += tuple((known[-1][0], note) for note in time_outlier_notes(r.far_ahead for r in newest))
    return Progress(
        tuple(
            BatchProgress(number, counted(reports), dict(times)) for number, reports, times in known
        ),
        _together({r.processor: r.total for r in newest}, sum(r.batch - 1 for r in newest)),
        max(r.batch for r in newest),
        max((r.watermarks for r in newest), key=len),
        sum(r.state_rows for r in newest),
        sum(r.state_bytes for r in newest),
        sum(r.segments for r in newest),
        {r.processor: r.plan for r in newest},
        {r.processor: r.epoch for r in newest},
        _migrations([reports for _, reports, _ in known]),
        tuple(event for _, reports, _ in known for r in reports for event in r.events),
        told,
        silent,
    )


def _last(notes: Iterable[tuple[int, str]]) -> dict[str, int]:
    """In which batch each note was said last."""
    return {note: number for number, note in sorted(notes)}


def _migrations(batches: Sequence[Sequence[Report]]) -> tuple[tuple[int, Mapping[str, Any]], ...]:
    """Each migration once, as it was reported last; it is known by where and when it began."""
    latest = {
        (r.processor, m["start"], m["new"]): m
        for reports in batches
        for r in reports
        for m in r.migrations
    }
    return tuple((processor, m) for (processor, _, _), m in latest.items())


def _together(parts: Mapping[int, Mapping[str, Any]], later: int) -> BatchCounts:
    """The counts of all processors as those of the query; `later` batches began with an engine."""

    def all_of(name: str) -> list[Any]:
        return [part[name] for part in parts.values() if name in part]

    beats = {
        name: max(all_of(name), key=lambda c: sum(c.values()))
        for name in _FROM_BEATS
        if all_of(name)
    }
    stages = {stage for part in all_of("seconds") for stage in part}
    rebuilt = sum(all_of("rebuilt"))
    return BatchCounts(
        **beats,
        late=reduce(plus, all_of("late"), {}),
        results=sum(all_of("results")),
        routed={p: sum(parts[p].get("routed", {}).values()) for p in sorted(parts)},
        rebuilt=rebuilt,
        reused=later - rebuilt,
        written_bytes=sum(all_of("written_bytes")),
        unwritten=reduce(plus, all_of("unwritten"), {}),
        seconds={s: max(p.get(s, 0.0) for p in all_of("seconds")) for s in sorted(stages)},
    )
