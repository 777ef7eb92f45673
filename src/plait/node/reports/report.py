"""What a processor says about a batch: counts, sizes, times, and the sums since the beginning.

The sums are kept in the header of the processor's state, so they are committed with the batch:
a batch that is repeated counts once, and they go on after a restart. That makes them right after
any number of batches, also for those who look only now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from plait.adapt.events import Event
from plait.codec import from_plain
from plait.errors import SourceError
from plait.machine.sealed import sealed, unsealed
from plait.node.time_outliers import TimeOutlier

SUMMED = (
    "rows",
    "null_times",
    "ahead",
    "null_keys",
    "filtered",
    "malformed",
    "late",
    "routed",
    "results",
    "rebuilt",
    "written_bytes",
    "unwritten",
    "seconds",
)
"""The fields of a report that are added up."""


@dataclass(slots=True)
class Report:
    """What a processor did in one batch."""

    processor: int
    batch: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    """Rows of each stream that pack tasks saw; the same in the reports of all processors."""
    null_times: dict[str, int] = field(default_factory=dict)
    ahead: dict[str, int] = field(default_factory=dict)
    """Rows further ahead of the clock than their stream may be."""
    null_keys: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    malformed: dict[str, int] = field(default_factory=dict)
    """Values of each stream that could not be read; see `plait.groups.routing.malformed`."""
    late: dict[str, int] = field(default_factory=dict)
    """Late rows of each stream; a row that went to several processors is counted by one."""
    routed: dict[str, int] = field(default_factory=dict)
    """Rows of each stream that came to this processor: skew shows here."""
    groups: dict[str, dict[int, int]] = field(default_factory=dict)
    """Rows of each stream that came to this processor, by partition group."""
    table: int = 0
    """The routing table of the batch; see `plait.groups.routing.table`."""
    table_before: int = 0
    """The routing table of the state before the batch: what it ended is durable here."""
    moves: list[dict[str, Any]] = field(default_factory=list)
    """What became of moves of partition groups here: their answers to the manager."""
    delivered: int = -1
    """The last batch before this one of which rows went from here to files of a table; -1: none."""
    results: int = 0
    rebuilt: bool = False
    written_bytes: int = 0
    segments: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    states: dict[str, list[int]] = field(default_factory=dict)
    """Rows and bytes of each state, by its streams; see `plait.node.reports.work`."""
    work: dict[str, list[int]] = field(default_factory=dict)
    """What each join did in this batch, by its streams; see `plait.node.reports.work`."""
    watermarks: dict[str, int] = field(default_factory=dict)
    """In microseconds; a stream that was never seen is missing."""
    far_ahead: dict[str, TimeOutlier] = field(default_factory=dict)
    """Streams that are far ahead of the others; see `plait.node.time_outliers`."""
    plan: str = ""
    epoch: int = 0
    """The newest decision of the driver that the processor has followed; see `epochs`."""
    migrations: list[dict[str, Any]] = field(default_factory=list)
    """The changes of plan that began, went on or ended in this batch."""
    events: list[Event] = field(default_factory=list)
    """What the adaptive loop did in this batch; only what was decided travels with the report."""
    notes: list[str] = field(default_factory=list)
    """What went wrong beside the results, or changed with a restart, in sentences."""
    unwritten: dict[str, int] = field(default_factory=dict)
    """Reports and event logs of earlier batches that could not be written, since it was told."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each stage of the batch took."""
    cpu: dict[str, float] = field(default_factory=dict)
    """What the stages took of a core, without waiting for one: what the batch's work is."""
    total: dict[str, Any] = field(default_factory=dict)
    """The fields in `SUMMED`, added up over all batches of the checkpoint, this one included."""

    def to_dict(self) -> dict[str, Any]:
        """In the types of JSON."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return parts | {"events": [event.brief() for event in self.events]}

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Report:
        """The inverse of `to_dict`, but for what events do not tell in brief.

        Fields that another version has are left out; a value of another type is a SourceError.

        >>> Report.from_dict({"processor": 1, "plan": "a", "heat": 3}).plan
        'a'
        """
        try:
            events = [_event(event) for event in parts.get("events", ())]
            report = from_plain(cls, {**parts, "events": ()}, any_version=True)
            sums = {name: n for name, n in report.total.items() if name in SUMMED}
            from_plain(cls, {"processor": 0, **sums}, any_version=True)
        except (AttributeError, KeyError, TypeError, SourceError) as error:
            raise SourceError(f"it is no report: {error}") from None
        report.events = events
        return report

    def to_json(self) -> str:
        """One line of JSON, with its checksum."""
        return sealed(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The inverse of `to_json`; anything else is a SourceError."""
        return cls.from_dict(unsealed(text))


@dataclass(frozen=True, slots=True)
class EventHead:
    """What every event has."""

    event: str
    batch: int
    time: int
    processor: int


def _event(given: Mapping[str, Any]) -> Event:
    from_plain(EventHead, given, any_version=True)
    return Event.from_dict(given)


def add(counts: dict[str, int], name: str, n: int) -> None:
    """Count `n` more; what never happened is not listed."""
    if n:
        counts[name] = counts.get(name, 0) + n


def added(total: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The sums with one more batch.

    >>> added({"results": 2, "rows": {"a": 1}}, Report(0, rows={"a": 1, "b": 5}, results=3))["rows"]
    {'a': 2, 'b': 5}
    """
    return {name: plus(total.get(name, 0), getattr(report, name)) for name in SUMMED}


def plus(a: Any, b: Any) -> Any:
    """The sum of two numbers, or of two mappings to numbers name by name; 0 is nothing.

    >>> plus({"a": 1}, {"a": 2, "b": 3}), plus(0, {"a": 1}), plus(1, True)
    ({'a': 3, 'b': 3}, {'a': 1}, 2)
    """
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        left, right = a or {}, b or {}
        return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}
    return a + b
