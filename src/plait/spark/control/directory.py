"""The control directory: what the driver decides while a query runs, and what processors report.

    epochs/000001.json            a decision, immutable; see `decisions`
    reports/QUERY/17-0.json       what processor 0 did in batch 17; the last hundred or so
    events/0.jsonl                what the adaptive loop of processor 0 decided, and why
    tables/, transfer/            where partition groups are, and groups on their way; see `tables`
    balance.jsonl                 what the distribution manager decided, and why; see `balance`
    question.json, history.jsonl  what was asked, and a line for each batch; see `clerk`
    requests/, answers/           what other processes ask of the driver; see `plan_requests`

Every processor looks for the newest epoch at the beginning of a batch. So the folder has to be one
that driver and executors reach: in the checkpoint if `to_df` was told one, else a temporary folder
of this host, which serves local masters only.

The checkpoint may be in the file system or in an object store (`plait.machine.stores`). There a
processor makes two small requests in a batch: it lists the epochs and writes its report. An epoch
is read once, and old reports are removed many at a time: they are in folders of 64 batches each. No
such request holds up a batch (`soon`). Routing tables are the exception, because rows cannot be
packed without: each Python worker lists them now and then, ahead of time (`known_tables`).

Where the folder is not shared, reports travel beside the results, through Spark's `observe`. That
costs each result about as much as finding it did, so it is the second choice.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from plait.adapt.events import Event
from plait.errors import CheckpointMismatch, SourceError
from plait.groups.routing.table import Table
from plait.machine.drafts import writing
from plait.machine.names import file_name
from plait.machine.private import is_private, make_private, remove_private
from plait.machine.regular import folder_below, plain
from plait.machine.stores import FileStore, RemoteStore, is_remote, store_at
from plait.node.epochs import Epoch
from plait.node.reports.event_log import event_lines, parsed_events, read_events, write_events
from plait.node.reports.report import Report
from plait.plan.jtree import Node
from plait.plan.migration import Strategy
from plait.query.query import Query
from plait.spark.checkpoint.damage import local_path
from plait.spark.control.background_requests import requests
from plait.spark.control.cached_tables import AHEAD, CachedTables
from plait.spark.control.epoch_files import EpochFiles, reason_of
from plait.spark.control.routing_tables import RoutingTables, TransferFiles
from plait.spark.control.spark_log import batch_times

if TYPE_CHECKING:  # whoever only reads needs neither Spark nor an engine
    pass

_FOLDER = "plait"
_LARGE_EVENT = 1 << 16
"""Bytes that hardly any event takes in a log."""
_EPOCHS = "epochs"
EVENTS = "events"
_BALANCE = "balance"
BALANCE = f"{_BALANCE}.jsonl"
_REPORT = re.compile(r"[0-9]+-[0-9]+\.json")


_TIMED = 8
"""The last batches, which tell how long one takes."""
_MOST_AHEAD = 200
_BLOCKS = 3
"""Folders of reports that a remote directory has at a time."""


Answer = TypeVar("Answer")

_PLACED: set[tuple[str, str]] = set()
"""Remote directories and the queries that this process knows to be in their checkpoints."""
_ASKED: dict[str, Future[tuple[Epoch | None, list[str]]]] = {}
"""What a remote directory was asked last about its epochs."""
_KNOWN: dict[str, tuple[Epoch | None, list[str]]] = {}
"""What it answered last."""
_TABLES: dict[str, tuple[str, CachedTables]] = {}
"""The routing tables of remote directories, and the run of the query that they are known for."""


def _reports(query: str) -> str:
    return f"reports/{query}"


@dataclass(frozen=True, slots=True)
class Control:
    """A control directory."""

    folder: str
    shared: bool
    """Whether driver and executors see the same."""
    temporary: bool = False
    kept: int = 128
    """Batches whose reports are kept; Spark remembers the progress of a hundred."""
    run: str = ""
    """Which start of the query this is."""

    @classmethod
    def of(cls, checkpoint: str | None, name: str | None, run: str, master: str) -> Control:
        """The one in a checkpoint, or a temporary one.

        >>> Control.of("file:///data/check%20point", None, "r", "yarn").folder
        '/data/check point/plait/join'
        >>> Control.of("s3://data/checkpoint", None, "r", "yarn").folder
        's3://data/checkpoint/plait/join'
        >>> Control.of("dbfs:/checkpoint", None, "r", "yarn").shared
        False
        """
        called = file_name(name or "join")
        local = None if checkpoint is None else local_path(checkpoint)
        if local is not None:
            return cls(str(Path(local, _FOLDER, called)), True)
        if checkpoint is not None and is_remote(checkpoint):
            return cls(f"{checkpoint.rstrip('/')}/{_FOLDER}/{called}", True, run=run)
        # Executors are told the path, so it may be a new one that nobody else could have made.
        # On several hosts it would not be the same folder: there is none.
        one_host = master == "local" or master.startswith(("local[", "local-cluster["))
        beginning = f"plait-control-{plain(run)}-"
        folder = make_private(beginning) if one_host else Path(tempfile.gettempdir(), beginning)
        return cls(str(folder), one_host, True)

    @property
    def remote(self) -> bool:
        """Whether it is in a store that may be slow or away, and has no locks."""
        return is_remote(self.folder)

    def reach(self) -> None:
        """Refuse a remote one that this process cannot reach."""
        if self.remote:
            RemoteStore(self.checkpoint).check()

    @property
    def checkpoint(self) -> str:
        """The checkpoint that it is in."""
        return self.folder.rsplit("/", 2)[0]

    def check_place(self, query: str) -> None:
        """Refuse a query that was started with another checkpoint than `to_df` was told.

        Spark writes the query's id into its checkpoint before the first batch. What cannot be read
        is not judged: the location may be one that only Spark reaches.
        """
        if self.temporary or (self.folder, query) in _PLACED:
            return
        # Assumption: told-checkpoint
        told = self.checkpoint
        try:
            raw = self._soon(lambda: store_at(told).read("metadata"))
            if raw is None:
                return
            found = json.loads(raw).get("id")
        except FileNotFoundError:
            found = None
        except (OSError, ValueError, AttributeError, RecursionError):
            return
        if found == query and self.remote:
            _PLACED.add((self.folder, query))
        if found != query:
            raise CheckpointMismatch(
                f"to_df was told the checkpoint {told}, but the query was started with another",
                remedy="start it with that checkpointLocation, or tell to_df the other one",
            )

    def remove(self) -> None:
        """Remove a temporary one."""
        if self.temporary:
            remove_private(Path(self.folder))

    def write_later(self, name: str, text: str) -> None:
        """Write a file for who looks at a remote directory, when the store has time."""
        requests().leave(lambda: self._store.write(name, text.encode()))

    def keep(self, name: str, text: str) -> None:
        """Write a file of a local directory, whole and durably, or say what is in the way."""
        with writing(Path(self.folder, name)):
            self._store.write(name, text.encode(), durable=True)

    # -- reports

    def write_report(self, query: str, batch: int, report: Report) -> None:
        """Keep a report, instead of one of long ago."""
        raw, name = report.to_json().encode(), f"{batch}-{report.processor}.json"
        self._later(lambda: self._store.write(f"{self._folder(query, batch)}/{name}", raw))
        if not self.remote:
            with suppress(OSError):  # then it is kept a little longer
                old = f"{batch - self.kept}-{report.processor}.json"
                self._store.delete(f"{_reports(query)}/{old}")
            return
        old_batch = batch - self.kept - self._block
        if old_batch >= 0 and batch % self._block == report.processor % self._block:
            requests().leave(lambda: self._store.clear(self._folder(query, old_batch)))

    @property
    def _block(self) -> int:
        """Batches whose reports are in one folder of a remote directory, and go together."""
        return max(1, self.kept // 2)

    def _folder(self, query: str, batch: int) -> str:
        """The folder with the reports of a batch."""
        here = _reports(query)
        return f"{here}/{batch // self._block:08}" if self.remote else here

    def write_events(self, report: Report, batch: int = 0) -> None:
        """Add what the adaptive loop did in a batch to its log, or nothing."""
        if self.remote:  # where nothing can be added to a file, each batch has one
            if raw := event_lines(report.events).encode():
                name = f"{EVENTS}/{report.processor}-{batch:08}.jsonl"
                self._later(lambda: self._store.write(name, raw))
            return
        path = Path(self.folder, EVENTS, f"{report.processor}.jsonl")
        write_events(report.events, path, os.urandom(4).hex(), Path(self.folder))

    def reports(self, query: str, batch: int) -> list[Report]:
        """The reports of a batch, as far as they can be read."""
        return self.read_reports(query, batch)[0]

    def read_reports(self, query: str, batch: int) -> tuple[list[Report], list[str]]:
        """The reports of a batch that can be read, and what is wrong with the others."""
        found, notes = [], []
        for name in sorted(n for n in self._listed(query) if n.startswith(f"{batch}-")):
            path = f"{self.folder}/{self._folder(query, batch)}/{name}"
            try:
                raw = self._store.read(f"{self._folder(query, batch)}/{name}")
                report = Report.from_json(raw.decode("utf-8"))
            except FileNotFoundError:
                continue  # it is long ago, and was removed just now
            except (OSError, ValueError, SourceError) as error:
                notes.append(f"the report {path} cannot be read: {reason_of(error)}")
                continue
            if name == f"{batch}-{report.processor}.json":
                found.append(report)
            else:
                notes.append(f"the report {path} is a copy of another one")
        return found, notes

    def _names(self, query: str) -> dict[str, float]:
        """The reports of a query, by name, and when they were written."""
        try:
            found = self._store.names(_reports(query), files=False)
            if self.remote:
                blocks = sorted(name for name in found if name.isdecimal())[-_BLOCKS:]
                listed = [self._store.names(f"{_reports(query)}/{block}") for block in blocks]
                found = {name: when for names in listed for name, when in names.items()}
        except OSError:
            return {}
        return {name: when for name, when in found.items() if _REPORT.fullmatch(name)}

    def report_places(self, query: str) -> dict[str, str]:
        """Where the reports of a query are in the directory, by name (`BATCH-PROCESSOR.json`)."""
        folder = {
            name: self._folder(query, int(name.partition("-")[0])) for name in self._names(query)
        }
        return {name: f"{place}/{name}" for name, place in folder.items()}

    def _listed(self, query: str) -> list[str]:
        """The names alone, which a file system tells without looking at each file."""
        if self.remote:
            return list(self._names(query))
        try:
            with folder_below(Path(self.folder), _reports(query)) as handle:
                names = os.listdir(handle)
        except (OSError, ValueError):
            return []
        return [name for name in names if _REPORT.fullmatch(name)]

    def followed(self, query: str) -> int:
        """The greatest number of an epoch that a report of the last batches tells."""
        newest = self.batches(query)[-2:]  # the last one may be under way
        return max((r.epoch for b in newest for r in self.reports(query, b)), default=0)

    def batches(self, query: str) -> list[int]:
        """The batches that there are reports of, in order."""
        return sorted(self._reported(query))

    def _reported(self, query: str) -> Counter[int]:
        """How many reports there are of each batch."""
        return Counter(int(name.partition("-")[0]) for name in self._listed(query))

    # -- how far a query is, by Spark's logs in the checkpoint and by what was reported

    def last_ended(self, query: str, processors: int) -> int | None:
        """The last batch that has ended; None before the first.

        Spark logs a batch in `commits` when it has ended. Without the logs it is the last one that
        all processors have reported.
        """
        if not self.temporary:
            return self._logged("commits")
        return max((b for b, n in self._reported(query).items() if n == processors), default=None)

    def last_begun(self, query: str) -> int:
        """The last batch that may have begun: Spark logs a batch in `offsets` before it runs it."""
        if self.temporary:
            return 1 + max(self._reported(query), default=-1)
        return self._logged("offsets") or 0

    def next_free(self, query: str, seconds: float) -> int:
        """The first batch that will not have begun even after so many seconds.

        A batch takes as long as the shortest of the last ones.
        """
        times: dict[int, float] = {}
        for name, when in self._names(query).items():
            batch = int(name.partition("-")[0])
            times[batch] = max(when, times.get(batch, when))
        batches = sorted(times)[-_TIMED:]
        last = zip(batches, sorted(times[batch] for batch in batches), strict=True)
        # Batches in which no processor ran are not reported.
        apart = min(((t - s) / (b - a) for (a, s), (b, t) in pairwise(last)), default=1.0)
        within = math.ceil(seconds / max(apart, 1e-3))
        listed = AHEAD if self.remote else 0  # tasks have listed the tables so far ahead
        return self.last_begun(query) + 1 + min(within, _MOST_AHEAD) + listed

    def times(self, query: str, batch: int) -> tuple[float, float]:
        """When a batch began, in seconds since 1970, and how long it took; 0 is unknown.

        Without Spark's logs, it is when the last processor reported.
        """
        if not self.temporary:
            return batch_times(store_at(self.checkpoint), batch)
        begin = f"{batch}-"
        written = [when for name, when in self._names(query).items() if name.startswith(begin)]
        return max(written, default=0.0), 0.0

    def _logged(self, log: str) -> int | None:
        """The last batch in one of Spark's logs."""
        try:
            names = store_at(self.checkpoint).names(log, files=False)
        except OSError:
            return None
        return max((int(name) for name in names if name.isdecimal()), default=None)

    def newest_query(self) -> str | None:
        """The id of the query that has reported last, if any has."""
        if self.remote:  # where folders have no time, Spark tells whose checkpoint it is
            with suppress(OSError, ValueError, AttributeError, RecursionError):
                told = json.loads(store_at(self.checkpoint).read("metadata")).get("id")
                return str(told) if told else None
            return None
        try:
            with folder_below(Path(self.folder), "reports") as handle, os.scandir(handle) as found:
                times = {
                    entry.name: entry.stat(follow_symlinks=False).st_mtime
                    for entry in found
                    if entry.is_dir(follow_symlinks=False)
                }
        except OSError:
            return None
        return max(times, key=lambda name: times[name], default=None)

    def knows(self, query: str) -> bool:
        """Whether a query has reported here."""
        return bool(self._names(query)) if self.remote else self._has_reports(query)

    def _has_reports(self, query: str) -> bool:
        try:
            with folder_below(Path(self.folder), _reports(query)):
                return True
        except (OSError, ValueError):
            return False

    # -- the store

    @property
    def _store(self) -> FileStore:
        return store_at(self.folder)

    def _soon(self, request: Callable[[], Answer]) -> Answer | None:
        """The answer of the store; None if it is remote and does not answer soon."""
        if not self.remote:
            return request()
        asked = requests().ask(request)
        return asked.result() if asked.done() else None

    def _later(self, request: Callable[[], None]) -> None:
        """Write something; if the store is remote and slow, after the batch has gone on."""
        if self.remote:
            requests().post(request)
        else:
            request()

    # -- where partition groups are

    @property
    def tables(self) -> RoutingTables:
        """The routing tables."""
        return RoutingTables(store_at(self.folder, "tables"))

    @property
    def transfers(self) -> TransferFiles:
        """Groups on their way."""
        return TransferFiles(store_at(self.folder, "transfer"))

    def write_balance(self, events: Iterable[Event], batch: int) -> None:
        """Add what the distribution manager did after a batch to its log."""
        told = [replace(e, batch=batch, processor=-1) for e in events]
        if not self.remote:
            write_events(told, self._balance, below=Path(self.folder))
        elif told:  # where nothing can be added to a file, there are several
            name = f"{_BALANCE}/{batch:08}-{os.urandom(4).hex()}.jsonl"
            self._store.write(name, event_lines(told).encode())

    def balance(self, most: int) -> tuple[Event, ...]:
        """The last things that the distribution manager did, as far as they can be read."""
        try:
            if not self.remote:
                here = Path(self.folder)
                return tuple(read_events(self._balance, most * _LARGE_EVENT, here, [])[-most:])
            files = sorted(self._store.names(_BALANCE).items(), key=lambda f: (f[0][:8], f[1]))
            raws = [self._store.read(f"{_BALANCE}/{name}") for name, _ in files[-most:]]
            texts = [raw.decode("utf-8", "replace") for raw in raws]
            return tuple(parsed_events("".join(texts), _BALANCE, [])[-most:])
        except (OSError, SourceError):
            return ()

    @property
    def _balance(self) -> Path:
        return Path(self.folder, BALANCE)

    def table(self, batch: int | None) -> Table | None:
        """The table of a batch; None is the one that the checkpoint began with.

        Groups move only where driver and executors share the folder, and nobody else writes to it.
        """
        if batch is None or not self._has_tables():
            return None
        return self._known.at(batch) if self.remote else self.tables.at(batch)

    def table_numbered(self, number: int) -> Table | None:
        """The table that the rows of a batch came by; 0 is the one of the beginning, None."""
        if not number or not self._has_tables():
            return None
        return self._known.numbered(number) if self.remote else self.tables.numbered(number)

    @property
    def _known(self) -> CachedTables:
        """What this process knows of the tables of a remote directory, in this run of the query."""
        run, known = _TABLES.get(self.folder, ("", None))
        if known is None or run != self.run:
            known = CachedTables(self.tables)
            _TABLES[self.folder] = self.run, known
        return known

    def _has_tables(self) -> bool:
        return self.shared and (not self.temporary or is_private(Path(self.folder)))

    # -- decisions

    @property
    def decisions(self) -> EpochFiles:
        """What the driver has decided."""
        return EpochFiles(store_at(self.folder, _EPOCHS))

    def decided(self, query: Query) -> tuple[Epoch | None, list[str]]:
        """The newest epoch that can be read, and what is wrong with those that are newer.

        In a temporary folder it counts only if nobody else could have written it. Of a remote store
        that does not answer soon, it is the one that was known before.
        """
        if self.temporary and not is_private(Path(self.folder)):
            return None, []
        if not self.remote:
            return self.decisions.look(query)
        self._learn()
        if self.folder not in _ASKED:
            _ASKED[self.folder] = requests().ask(lambda: self.decisions.look(query))
            self._learn()
        return _KNOWN.get(self.folder, (None, []))

    def _learn(self) -> None:
        """Take the answer that has come, whenever it was asked for."""
        asked = _ASKED.get(self.folder)
        if asked is not None and asked.done():
            del _ASKED[self.folder]
            if asked.exception() is None:
                _KNOWN[self.folder] = asked.result()

    def epoch(self, query: Query) -> Epoch | None:
        """The newest epoch that can be read."""
        return self.decided(query)[0]

    def decide(
        self, plan: Node | None, strategy: Strategy | Literal["auto"], after: int = 0
    ) -> Epoch:
        """Add an epoch."""
        return self.decisions.add(plan, strategy, after)


def controls_in(checkpoint: Path, having: str = "reports") -> list[Control]:
    """The control directories in a checkpoint: of joins that have reported, or have this file."""
    found = sorted((checkpoint / _FOLDER).glob(f"*/{having}"))
    return [Control(str(path.parent), True) for path in found]
