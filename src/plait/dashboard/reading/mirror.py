"""Copy what the console reads of a checkpoint in an object store to a private local folder.

*Correct output.* The copy has the files that a checkpoint in a folder would have: reports in one
folder for each query, one log of the distribution manager. Objects never change, so each is copied
once; what is read of the copy is what was in the store a few seconds ago.

*Cost.* Some listings every few seconds, and one request for each new report, of which there is one
for each processor and batch. The first time, only the newest batches are copied; those of long ago
are removed from the copy.
"""

from __future__ import annotations

import atexit
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from plait.dashboard.reading.snapshot import JoinSnapshot, Watcher
from plait.dashboard.reading.watcher import DirectoryWatcher
from plait.errors import SourceError
from plait.machine.private import make_private, remove_private
from plait.machine.regular import append_below, plain
from plait.machine.stores import LocalStore, RemoteStore, problem
from plait.spark.control.directory import EVENTS, Control
from plait.spark.control.driver_files import QUESTION

_EVERY = 5.0
"""Seconds between two looks at the store."""
_FIRST = 32
"""Batches that are copied the first time."""
_KEPT = 256
"""Batches that the copy keeps."""
_AT_ONCE = 8
"""Objects that are copied at the same time."""
_NUMBER = re.compile(r"[0-9]+")


class Mirror:
    """The copy of one checkpoint; a place without a join is a SourceError."""

    def __init__(
        self, place: str, folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._clock = RemoteStore(place.rstrip("/")), clock
        self.folder = folder
        self._looked: float | None = None
        self._trouble: tuple[str, ...] = ()
        self._added: dict[str, set[str]] = {}
        """By folder, the objects with lines of logs that are in the copy."""
        self._store.check()
        self.joins = sorted(filter(_is_plain, self._store.names("plait", files=False)))
        if not self.joins:
            raise SourceError(
                f"{place} has no reports of a join",
                remedy="give the checkpoint of a query that was made with to_df(checkpoint=...) "
                "and has ended its first batch",
            )

    def control(self, join: str) -> Control:
        """The control directory of a join, in the copy."""
        return Control(str(self.folder / "plait" / join), True)

    def refresh(self) -> tuple[str, ...]:
        """Copy what is new, if it is time to look; what went wrong the last time, if it did."""
        now = self._clock()
        if self._looked is None or now - self._looked >= _EVERY:
            self._looked, self._trouble = now, self._copied()
        return self._trouble

    def _copied(self) -> tuple[str, ...]:
        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for here in (f"plait/{join}" for join in self.joins):
                    for done in [pool.submit(copy) for copy in self._wanted(here)]:
                        done.result()
                    self._add_lines(pool, f"{here}/balance", lambda _: "balance.jsonl")
                    self._add_lines(pool, f"{here}/{EVENTS}", _log_of_events)
            # Last: a batch has ended once everything about it is there.
            self._end_batches()
        except (OSError, ValueError) as error:  # Arrow's errors are both
            return (f"{self._store.url} cannot be read: {problem(error)}",)
        return ()

    def _wanted(self, here: str) -> Iterable[Callable[[], None]]:
        """What is to be copied of a join."""
        control = Control(f"{self._store.url}/{here}", True)
        if not (self.folder / here / QUESTION).exists() and QUESTION in self._store.names(here):
            yield partial(self._copy, f"{here}/{QUESTION}")
        for query in filter(_is_plain, self._store.names(f"{here}/reports", files=False)):
            yield from self._reports(here, control.reports(query).places(), f"reports/{query}")
        for folder in ("tables", "epochs"):
            for name in filter(_is_plain, self._store.names(f"{here}/{folder}")):
                yield partial(self._copy, f"{here}/{folder}/{name}")

    def _reports(
        self, here: str, there: Mapping[str, str], into: str
    ) -> Iterable[Callable[[], None]]:
        """The newest of them; in the store they are in folders of some batches each."""
        folder = self.folder / here / into
        newest = max(map(_batch, there), default=0)
        known = _names(folder)
        for name in known:
            if _batch(name) < newest - _KEPT:
                (folder / name).unlink(missing_ok=True)
        least = max(map(_batch, known), default=newest - _FIRST)
        for name, place in there.items():
            if _batch(name) >= least:
                yield partial(self._copy, f"{here}/{place}", f"{here}/{into}/{name}")

    def _end_batches(self) -> None:
        """Spark's logs of the batches; only their names and times tell something."""
        known = set(_names(self.folder / "commits"))
        for name, when in self._store.names("commits").items():
            if name not in known and _NUMBER.fullmatch(name):
                with suppress(FileNotFoundError):  # Spark removes the oldest
                    self._copy(f"offsets/{name}")
                path = self.folder / "commits" / name
                path.parent.mkdir(exist_ok=True)
                path.touch()
                os.utime(path, (when, when))

    def _add_lines(self, pool: Executor, folder: str, log: Callable[[str], str]) -> None:
        """Add what is new to the logs: in a folder each is one file, in the store there are many.

        `log` says which one, by the name of the object. Those of long ago are left out, but for
        the first, which tells the question.
        """
        names = {n: when for n, when in self._store.names(folder).items() if _is_plain(n)}
        known = self._added.setdefault(folder, set())
        new = sorted(names.keys() - known, key=lambda n: (_order(n), names[n]))
        wanted = new if known else new[:1] + new[1:][-_KEPT:]
        read = pool.map(self._store.read, [f"{folder}/{name}" for name in wanted])
        for name, raw in zip(wanted, read, strict=True):
            append_below(self.folder, f"{Path(folder).parent}/{log(name)}", raw)
            known.add(name)
        known.update(new)

    def _copy(self, place: str, to: str | None = None) -> None:
        """Copy an object, whole or not at all, unless it is there."""
        if not (self.folder / (to or place)).exists():
            LocalStore(self.folder).write(to or place, self._store.read(place))


class MirrorWatcher(DirectoryWatcher):
    """Reads one control directory of a copy."""

    def __init__(self, mirror: Mirror, join: str) -> None:
        super().__init__(mirror.control(join))
        self._mirror = mirror

    def refresh(self) -> JoinSnapshot:
        """Copy what is new, and read it."""
        self.trouble = self._mirror.refresh()
        return super().refresh()


def watch_remote(place: str, *, control: bool = False) -> list[Watcher]:
    """A watcher for each join of a checkpoint in an object store, which is only read."""
    if control:
        raise SourceError(
            f"{place} is in an object store, through which plans cannot be asked for",
            remedy="leave control out, and call plait.attach(query).migrate(plan) in its driver",
        )
    folder = make_private("plait-console-")
    atexit.register(remove_private, folder)
    mirror = Mirror(place, folder)
    return [MirrorWatcher(mirror, join) for join in mirror.joins]


def _is_plain(name: str) -> bool:
    """Whether an object's name can be one of a file: it may be two dots."""
    try:
        return bool(plain(name))
    except ValueError:
        return False


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("[0-9]*")] if folder.is_dir() else []


def _batch(name: str) -> int:
    found = _NUMBER.match(name)
    return int(found[0]) if found else -1


def _order(name: str) -> int:
    """The batch in `BATCH-XY.jsonl` or `PROCESSOR-BATCH.jsonl`: the one of eight digits."""
    found = re.search(r"[0-9]{8,}", name)
    return int(found[0]) if found else -1


def _log_of_events(name: str) -> str:
    return f"{EVENTS}/{name.partition('-')[0]}.jsonl"
