"""The control directory of a join: what the driver decides, and what processors report.

    epochs/000001.json            a decision, immutable; see `epoch_files`
    reports/QUERY/17-0.json       what processor 0 did in batch 17; see `report_files`
    events/0.jsonl                what the adaptive loop of processor 0 decided, and why
    tables/, transfer/            where groups are, and groups on their way; see `routing_tables`
    balance.jsonl                 what the balancer decided, and why; see `plait.spark.balance`
    question.json, history.jsonl  what was asked, and a line for each batch; see `driver_service`
    requests/, answers/           what other processes ask of the driver; see `plan_requests`

Every processor looks for the newest epoch at the beginning of a batch. So the folder has to be one
that driver and executors reach: in the checkpoint if `to_df` was told one, else a temporary folder
of this host, which serves local masters only.

The checkpoint may be in the file system or in an object store (`plait.machine.stores`). There a
processor makes two small requests in a batch: it lists the epochs and writes its report. An epoch
is read once. No such request holds up a batch (`background_requests`). Routing tables are the
exception, because rows cannot be packed without: each Python worker lists them now and then, ahead
of time (`cached_tables`).

Where the folder is not shared, reports travel beside the results, through Spark's `observe`. That
costs each result about as much as finding it did, so it is the second choice.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from plait.adapt.events import Event
from plait.codec import from_plain, to_plain
from plait.errors import CheckpointDamaged, CheckpointMismatch, PlaitError, SourceError
from plait.groups.routing.table import Table
from plait.machine.drafts import writing
from plait.machine.names import file_name
from plait.machine.private import is_private, make_private, remove_private
from plait.machine.regular import folder_below, plain, read_below
from plait.machine.sealed import sealed, unsealed
from plait.machine.stores import LARGEST, FileStore, RemoteStore, is_remote, store_at
from plait.node.epochs import Epoch
from plait.node.reports.event_log import event_lines, parsed_events, read_events, write_events
from plait.node.reports.report import Report
from plait.query.query import Query
from plait.spark.checkpoint.damage import local_path
from plait.spark.control.background_requests import requests
from plait.spark.control.cached_tables import CachedTables
from plait.spark.control.epoch_files import EpochFiles
from plait.spark.control.report_files import QueryReports
from plait.spark.control.routing_tables import RoutingTables, TransferFiles

_FOLDER = "plait"
_LARGE_EVENT = 1 << 16
"""Bytes that hardly any event takes in a log."""
_EPOCHS = "epochs"
EVENTS = "events"
_BALANCE = "balance"
BALANCE = f"{_BALANCE}.jsonl"

Answer = TypeVar("Answer")

_PLACED: set[tuple[str, str]] = set()
"""Remote directories and the queries that this process knows to be in their checkpoints."""
_ASKED: dict[str, Future[tuple[Epoch | None, list[str]]]] = {}
"""What a remote directory was asked last about its epochs."""
_KNOWN: dict[str, tuple[Epoch | None, list[str]]] = {}
"""What it answered last."""
_TABLES: dict[str, tuple[str, CachedTables]] = {}
"""The routing tables of remote directories, and the run of the query that they are known for."""


@dataclass(frozen=True, slots=True)
class Control:
    """A control directory, in a checkpoint or temporary."""

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

    def keep(self, name: str, value: object) -> None:
        """Write a dataclass as a file of a local directory, whole and durably."""
        with writing(Path(self.folder, name)):
            self._store.write(name, sealed(to_plain(value)).encode(), durable=True)

    def kept_value(self, name: str, kind: type[Answer], remedy: str) -> Answer | None:
        """Read what `keep` wrote; None if there is no such file."""
        try:
            raw = read_below(Path(self.folder), name, LARGEST)
            return from_plain(kind, unsealed(raw.decode("utf-8")), any_version=True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, PlaitError) as error:
            raise CheckpointDamaged(
                f"{self.folder}/{name} cannot be read: {str(error).partition(';')[0]}",
                remedy=remedy,
            ) from error

    def write_events(self, report: Report, batch: int = 0) -> None:
        """Add what the adaptive loop did in a batch to its log, or nothing."""
        if self.remote:  # where nothing can be added to a file, each batch has one
            if raw := event_lines(report.events).encode():
                name = f"{EVENTS}/{report.processor}-{batch:08}.jsonl"
                requests().post(lambda: self._store.write(name, raw))
            return
        path = Path(self.folder, EVENTS, f"{report.processor}.jsonl")
        write_events(report.events, path, os.urandom(4).hex(), Path(self.folder))

    def reports(self, query: str) -> QueryReports:
        """What the processors of a query report, by the query's id."""
        return QueryReports(self.folder, query, self.kept, self.temporary)

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
    def epochs(self) -> EpochFiles:
        """What the driver has decided."""
        return EpochFiles(store_at(self.folder, _EPOCHS))

    def newest_epoch(self, query: Query) -> tuple[Epoch | None, list[str]]:
        """The newest epoch that can be read, and what is wrong with those that are newer.

        In a temporary folder it counts only if nobody else could have written it. Of a remote store
        that does not answer soon, it is the one that was known before.
        """
        if self.temporary and not is_private(Path(self.folder)):
            return None, []
        if not self.remote:
            return self.epochs.newest(query)
        self._take_answer()
        if self.folder not in _ASKED:
            _ASKED[self.folder] = requests().ask(lambda: self.epochs.newest(query))
            self._take_answer()
        return _KNOWN.get(self.folder, (None, []))

    def _take_answer(self) -> None:
        """Keep the answer of the store, whenever it was asked for."""
        asked = _ASKED.get(self.folder)
        if asked is not None and asked.done():
            del _ASKED[self.folder]
            if asked.exception() is None:
                _KNOWN[self.folder] = asked.result()


def controls_in(checkpoint: Path, having: str = "reports") -> list[Control]:
    """The control directories in a checkpoint: of joins that have reported, or have this file."""
    found = sorted((checkpoint / _FOLDER).glob(f"*/{having}"))
    return [Control(str(path.parent), True) for path in found]
