"""Read a control directory again and again at little cost; each time gives a `JoinSnapshot`.

*Cost.* A `DirectoryWatcher` reads what is new since the last time: the end of each log, and the
reports of batches that have ended meanwhile. The first time it reads only the ends of logs and the
reports of the last few batches. Where there is no history, it makes one from the reports that are
there, a few batches each time. So a query that has run for weeks opens as fast as a new one.

*Invariants.* Nothing is written, no lock is taken, and neither Spark nor the driver is needed. What
cannot be read is left out and named in `notes`. Any other failure marks the snapshot as `stale`
(`refreshed`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from plait.adapt.events import Event
from plait.adapt.replay import started
from plait.codec import from_plain
from plait.dashboard.reading.decision_cards import decision_cards
from plait.dashboard.reading.series import Series
from plait.dashboard.reading.snapshot import JoinSnapshot, ProcessorEstimates, Watcher
from plait.errors import PlaitError, SourceError
from plait.groups.routing.table import Table
from plait.machine.regular import folder_below, open_below, read_below
from plait.machine.stores import LARGEST
from plait.node.reports.event_log import read_events
from plait.node.reports.history import HistoryEntry
from plait.node.reports.history_log import HistoryReader
from plait.node.reports.question import Question
from plait.node.reports.report import EventHead, Report
from plait.sites.spark.mailboxes import is_mailbox
from plait.spark.control.directory import BALANCE, EVENTS, Control, controls_in
from plait.spark.control.driver_files import HISTORY, QUESTION, batch_records
from plait.spark.control.epoch_files import reason_of
from plait.spark.control.plan_requests import PlanRequests

_RECENT = 6
"""Batches of which the reports are kept whole."""
_BACK = 16
"""Batches whose reports are read at once where there is no history."""
_TAIL = 1 << 16
"""Bytes of an event log that are read the first time."""
_NEW = 1 << 22
"""Bytes of an event log that are read at once later."""
_FIRST = 1 << 20
"""The same of the history; the rest follows with the second look."""


def watch_checkpoint(place: Path) -> list[Watcher]:
    """A watcher for each join in a checkpoint, for the one of a control directory, or for sites.

    A place without any is a SourceError.
    """
    if is_mailbox(place):
        from plait.dashboard.reading.sites import SitesWatcher

        return [SitesWatcher(place)]
    if (place / "reports").is_dir():
        return [DirectoryWatcher(Control(str(place), True, temporary=not _in_checkpoint(place)))]
    found: list[Watcher] = [DirectoryWatcher(control) for control in controls_in(place)]
    if not found:
        what = "has no reports of a join" if place.is_dir() else "does not exist"
        raise SourceError(
            f"{place} {what}",
            remedy="give the checkpoint of a query that was made with to_df(checkpoint=...) and "
            "has ended its first batch, or the mailbox of sites",
        )
    return found


def _in_checkpoint(control: Path) -> bool:
    return len(control.parents) > 1 and (control.parents[1] / "offsets").is_dir()


class DirectoryWatcher:
    """Reads one control directory."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.name = Path(control.folder).name if not control.temporary else "join"
        self._folder = Path(control.folder)
        self._contents = JoinSnapshot(self.name, control.folder)
        self._history = HistoryReader(self._folder / HISTORY)
        self._before: list[HistoryEntry] = []
        """Batches from before the history began, made of their reports."""
        self._after: list[HistoryEntry] = []
        """Batches that the history does not tell yet."""
        self._gathered = _Gathered()
        self._ends: dict[str, int] = {}
        """How far each log was read."""
        self._estimatess: dict[int, ProcessorEstimates] = {}
        self._balance: list[Event] = []
        self._skipped: dict[str, list[str]] = {}
        """What could not be read, by where it is."""
        self.trouble: tuple[str, ...] = ()
        """What keeps the directory from being up to date."""

    @property
    def snapshot(self) -> JoinSnapshot:
        """What was read last."""
        return self._contents

    def refresh(self) -> JoinSnapshot:
        """Read what is new."""
        control, last = self.control, self._contents
        running = control.newest_query() or ""
        if running != last.running:
            self._before, self._after = [], []
        question = last.question or self._question()
        recent = self._recent(running, question, () if running != last.running else last.recent)
        lines = self._lines(running, [number for number, _ in recent])
        told = self._gathered.take(lines)
        balance = self._balance_events()
        self._read_estimates()
        query = None if question is None else question.query
        epoch, notes = (None, []) if query is None else control.epochs.newest(query)
        table, trouble = self._table()
        requests = PlanRequests(self._folder)
        unread = [note for told in self._skipped.values() for note in told]
        found = replace(
            last,
            read=time.time(),
            question=question,
            running=running,
            history=tuple(lines) if told else last.history,
            series=self._gathered.series,
            decisions=decision_cards(self._gathered.decisions, self._balance)
            if told or balance
            else last.decisions,
            recent=recent,
            estimates=dict(self._estimatess),
            table=table,
            epoch=epoch,
            waiting=tuple(requests.waiting()),
            answers=tuple(requests.answers()),
            notes=(*self.trouble, *notes, *trouble, *self._history.notes, *unread),
        )
        if _fingerprint(found) != _fingerprint(last):
            found = replace(found, version=last.version + 1)
        self._contents = found
        return found

    def settled(self) -> JoinSnapshot:
        """Read until everything that is there has been read, also what comes with later looks."""
        while True:
            before = self._contents
            found = self.refresh()
            if before.read and len(found.history) == len(before.history):
                return found

    # -- reports and history

    def _question(self) -> Question | None:
        """What the driver wrote down, or what the beginning of a log tells."""
        told = self._skipped[QUESTION] = []
        try:
            raw = read_below(self._folder, QUESTION, LARGEST)
            return Question.from_json(raw.decode("utf-8"))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, PlaitError) as error:
            told.append(f"the question {self._folder / QUESTION} is skipped: {reason_of(error)}")
        for name in sorted(self._logs())[:1]:
            with suppress(OSError, ValueError, LookupError, TypeError, RecursionError, PlaitError):
                with open(open_below(self._folder, f"{EVENTS}/{name}"), "rb") as file:
                    given = json.loads(file.readline(LARGEST))
                given.pop("attempt", None)
                begun = started([Event.from_dict(given)])
                return Question(
                    begun.query, str(begun.plan), 0, None, begun.policy, begun.budget, begun.costs
                )
        return None

    def _recent(
        self,
        running: str,
        question: Question | None,
        before: Sequence[tuple[int, Sequence[Report]]],
    ) -> Sequence[tuple[int, Sequence[Report]]]:
        """The last batches that have ended, with their reports."""
        if not running:
            return ()
        reports = self.control.reports(running)
        processors = question.processors if question is not None else 0
        ended = reports.last_ended(processors or len(before[-1][1]) if before else 1)
        there = [n for n in reports.batches() if ended is None or n <= ended][-_RECENT:]
        known = dict(before)
        found: list[tuple[int, Sequence[Report]]] = []
        for number in there:
            place = f"reports {number}"
            if number not in known or place in self._skipped:
                known[number], told = reports.read(number)
                self._skipped |= {place: told} if told else {}
            found.append((number, known[number]))
        for place in [p for p in self._skipped if p.startswith("reports ")]:
            if int(place.removeprefix("reports ")) not in there:
                del self._skipped[place]
        return tuple((n, told) for n, told in found if told)

    def _lines(self, running: str, recent: Sequence[int]) -> list[HistoryEntry]:
        """The history, with what it does not tell yet, and what is left from before it."""
        lines = None
        if not self._contents.read:  # the first time: what is seen first
            lines = self._history.tail(_FIRST)
        if lines is None:
            lines = self._history.read()
        end = lines[-1].last if lines else -1
        self._after = [past for past in self._after if past.last > end]
        told = self._after[-1].last if self._after else end
        new = [n for n in recent if n > told]
        self._after += batch_records(self.control.reports(running), new)
        if not lines and running:
            self._before = [*self._earlier(running), *self._before]
        else:
            self._before = []
        return [*self._before, *lines, *self._after]

    def _earlier(self, running: str) -> list[HistoryEntry]:
        """Some more batches, the newest of those that are not read yet."""
        told = [*self._before, *self._after]
        first = told[0].first if told else None
        reports = self.control.reports(running)
        there = [n for n in reports.batches() if first is None or n < first]
        return batch_records(reports, there[-_BACK:])

    # -- logs

    def _read_estimates(self) -> None:
        """Take in what was compared since the last time."""
        for name in self._logs():
            for line in reversed(self._new_lines(f"{EVENTS}/{name}")):
                if b'"compared"' in line and (estimates := _estimates_of(line)) is not None:
                    self._estimatess[estimates[0]] = estimates[1]
                    break

    def _logs(self) -> list[str]:
        """The names of the event logs."""
        try:
            with folder_below(self._folder, EVENTS) as handle:
                return [name for name in os.listdir(handle) if name.endswith(".jsonl")]
        except FileNotFoundError:
            return []
        except OSError as error:
            told = f"the logs in {self._folder / EVENTS} are skipped: {reason_of(error)}"
            self._skipped[EVENTS] = [told]
            return []

    def _new_lines(self, place: str) -> list[bytes]:
        """The whole lines of a log since the last time; the first time, those at its end."""
        try:
            with open(open_below(self._folder, place), "rb") as log:
                size = os.fstat(log.fileno()).st_size
                end = self._ends.get(place)
                if end is None or size < end:
                    end = max(0, size - _TAIL)
                begin = max(end, size - _NEW)
                log.seek(begin)
                new = log.read(size - begin)
        except FileNotFoundError:
            return []
        except OSError as error:
            told = f"the log {self._folder / place} is skipped: {reason_of(error)}"
            self._skipped[place] = [told]
            return []
        self._skipped.pop(place, None)
        whole = new[: new.rfind(b"\n") + 1]
        self._ends[place] = begin + len(whole)
        return whole.splitlines()

    def _balance_events(self) -> bool:
        """Take in what the distribution manager did; whether there was something."""
        path = self._folder / BALANCE
        with suppress(FileNotFoundError):
            size = os.stat(path, follow_symlinks=False).st_size
            if size != self._ends.get(BALANCE):
                self._ends[BALANCE] = size
                told = self._skipped[BALANCE] = []
                try:
                    self._balance = read_events(path, 4 * _TAIL, self._folder, told)
                except SourceError as error:
                    told.append(error.message)
                return True
        return False

    def _table(self) -> tuple[Table | None, list[str]]:
        try:
            return self.control.tables.newest(), []
        except (PlaitError, OSError) as error:
            return None, [str(error)]


@dataclass(slots=True)
class _Gathered:
    """Columns and decisions of the history so far, which only grows at its end as a rule."""

    series: Series = field(default_factory=Series)
    decisions: list[Mapping[str, Any]] = field(default_factory=list)
    _taken: tuple[int, int, int] = (0, 0, 0)

    def take(self, lines: Sequence[HistoryEntry]) -> bool:
        """Take in lines; whether any were new."""
        if not lines:
            return False
        count, first, last = self._taken
        grown = count and len(lines) >= count and lines[0].first == first
        if not grown or lines[count - 1].last != last:
            self.series, self.decisions, count = Series(), [], 0
        new = lines[count:]
        if not new:
            return False
        self.series = self.series.with_lines(new)
        self.decisions = [*self.decisions, *_all(new)]
        self._taken = (len(lines), lines[0].first, lines[-1].last)
        return True


def _all(lines: Iterable[HistoryEntry]) -> Iterable[Mapping[str, Any]]:
    return (decision for line in lines for decision in line.decisions)


def _estimates_of(line: bytes) -> tuple[int, ProcessorEstimates] | None:
    """A comparison of plans in a log, with the processor that made it."""
    try:
        given = json.loads(line)
        if given["event"] != "compared":
            return None
        head = from_plain(EventHead, given, any_version=True)
        estimates = ProcessorEstimates(
            head.batch, head.time, given["statistics"], given["standing"]
        )
        of_types = isinstance(estimates.statistics, dict) and isinstance(estimates.standing, dict)
        return (head.processor, estimates) if of_types else None
    except (ValueError, KeyError, TypeError, RecursionError, SourceError):
        return None


def _fingerprint(found: JoinSnapshot) -> tuple[object, ...]:
    """What makes two snapshots different; cheap to compare."""
    last = found.last
    return (
        found.running,
        found.question is None,
        len(found.history),
        None if last is None else last.last,
        len(found.decisions),
        max((b.time for b in found.estimates.values()), default=0),
        None if found.table is None else found.table.number,
        None if found.epoch is None else (found.epoch.number, found.epoch.origin),
        tuple(name for name, _ in found.waiting),
        found.answers[:1],
        found.notes,
    )
