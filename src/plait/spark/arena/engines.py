"""The arena: a cache of engines that the Python workers of a host share.

Spark hands a task to any idle worker of its executor. An engine that lived in one worker's memory
would have to be rebuilt from the state store whenever another worker gets the next batch. So the
arrays of an engine are memory-mapped files, and between two batches a small *manifest* beside them
says how they make up the engine: whoever gets the next batch maps the same files and goes on.

*Correct output.* None: the arena is a cache. An engine is found only under the token of the very
state that the state store has; everything else is rebuilt from there. So nothing that happens to
its folders and files may end a query: whatever is missing, damaged, full or somebody else's, there
is no cached engine. `refused` counts why.

*Invariants.* The engine of a processor lives in a *room* (`plait.spark.arena.room`), a folder with
a lock. A room whose lock is free and whose manifest has another token is swept away by whoever
looks for the processor's engine next. Folders are private, and opened anew for every use, relative
to a checked handle (`plait.machine.private`): they may have been deleted and made again meanwhile.

*Cost.* Handing over costs the manifest, some kilobytes; the arrays stay where they are. Arrays live
in shared memory until the room's share of it is used up or it is nearly full, then in files on
disk, which the operating system keeps in memory as far as it can. If neither has room, they live in
the worker's own memory and are handed over by value.

*Cleaning up.* Each run of a query has its own folder with the process ids of its owners. It goes
when the driver that made it ends, or else when another run on the host finds all owners gone or
the folder unused for an hour. Owners in another container cannot be asked: theirs stay that long.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from plait.errors import StorageError
from plait.kernels.memory import Memory, NotSaved
from plait.machine.private import Folder, open_beside
from plait.machine.regular import plain
from plait.node.durable.store import Live, OwnEngines
from plait.query.query import Query
from plait.spark.arena.manifest import Subject, query_digest
from plait.spark.arena.room import Places, Room, is_published

__all__ = ["Arena", "Places", "remove", "sweep"]

_OWNER = "owner"
_LOCK = "lock"
_FAILURES = (OSError, StorageError, NotSaved)


@dataclass(slots=True)
class Arena:
    """The engines of one run of a query on this host (`plait.node.durable.store.Engines`)."""

    run: str
    places: Places
    refused: Counter[str] = field(default_factory=Counter)
    """Why engines were not kept, or not used, and how often."""
    _mine: dict[int, tuple[Live, Room]] = field(default_factory=dict)
    _open: dict[int, Room] = field(default_factory=dict)
    _own: OwnEngines = field(default_factory=OwnEngines)
    """Engines for which there was no room."""
    _digest: tuple[Query, str] | None = None

    def __post_init__(self) -> None:
        plain(self.run)
        sweep(self.places, self.run)
        with self._attempt(), self._home():
            pass

    def take(self, number: int, token: str, query: Query) -> Live | None:
        """The engine of this very state, if it is somewhere; it is the caller's until `put`."""
        self._leave(number)
        mine = self._mine.pop(number, None)
        found = None
        with self._attempt(), self._home() as home:
            self._mine = {
                n: (own, at)
                for n, (own, at) in self._mine.items()
                if is_published(home, at.name, own.token)
            }
            for name in home.names():
                here = self._enter(home, name) if name.startswith(f"{number}-") else None
                if here is None:
                    continue
                if found is not None or not here.holds(token):
                    here.remove()
                else:
                    found = self._found(here, mine, Subject(self._of(query), number, token), query)
        return found or self._own.take(number, token, query)

    def memory(self, number: int) -> Memory:
        """Where a new engine's arrays live."""
        self._leave(number)
        with self._attempt(), self._home() as home:
            making = f"making-{uuid.uuid4().hex}"
            home.folder(making).close()
            folder = f"{number}-{making}"
            lock = _try_lock(home, making)
            home.rename(making, folder)
            if lock is not None:
                room = Room(self.places, self.run, home.folder(folder, create=False), lock)
                self._open[number] = room
                return room
        return self._own.memory(number)

    def put(self, number: int, live: Live) -> None:
        """Let whoever gets the next batch go on from here."""
        room = self._open.pop(number, None)
        if room is None:
            self._own.put(number, live)
            return
        subject = Subject(self._of(live.engine.query), number, live.token)
        try:
            room.publish(live, subject)
        except _FAILURES as error:
            self._refuse(error)
            room.remove()
        else:
            self._mine[number] = (live, room)

    def drop(self, number: int, live: Live) -> None:
        """Forget an engine that was left half-way."""
        if self._open.get(number) is live.engine.windows.memory:
            self._leave(number)

    def _found(
        self, here: Room, mine: tuple[Live, Room] | None, subject: Subject, query: Query
    ) -> Live | None:
        """The engine in a room, if it can be used; else the room goes."""
        room = here
        try:
            if mine is not None and mine[1].name == here.name and mine[0].token == subject.token:
                live, room = mine
                room.resume(here, subject.token)
            else:
                live = room.load(subject, query)
        # Whatever a manifest may hold, the engine can be rebuilt from the store.
        except Exception as error:
            self._refuse(error)
            room.remove()
            here.release()
            return None
        self._open[subject.number] = room
        return live

    def _leave(self, number: int) -> None:
        room = self._open.pop(number, None)
        if room is not None:
            room.remove()

    def _of(self, query: Query) -> str:
        """The digest of the query; a run has one query."""
        if self._digest is None or self._digest[0] is not query:
            self._digest = query, query_digest(query)
        return self._digest[1]

    @contextlib.contextmanager
    def _home(self) -> Iterator[Folder]:
        """The folder of the run, which says who its owners are."""
        with open_beside(self.places.memory) as base, base.folder(self.run) as home:
            owner = f"{_OWNER}-{os.getppid()}-{_process_namespace()}"
            if not home.has(owner):
                home.write(owner)
            yield home

    def _enter(self, home: Folder, name: str) -> Room | None:
        """The room of that name, if its lock is free."""
        try:
            folder = home.folder(name, create=False)
        except (OSError, StorageError):
            return None
        lock = _try_lock(home, name)
        if lock is None:
            folder.close()
            return None
        return Room(self.places, self.run, folder, lock)

    @contextlib.contextmanager
    def _attempt(self) -> Iterator[None]:
        """Treat a failure as a missing engine, and count its reason."""
        try:
            yield
        except _FAILURES as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self.refused[f"{type(error).__name__}: {reason}"] += 1


def sweep(places: Places, run: str) -> None:
    """Remove the folders of other runs that have no living owner or were not used for long."""
    kept = {run}
    with _ignoring_failures(), open_beside(places.memory, create=False) as base:
        for name in set(base.names()) - {run}:
            with _ignoring_failures():
                with base.folder(name, create=False) as home:
                    gone = _abandoned(home) or _age(home) > places.unused_seconds
                if gone:
                    remove(places, name)
                else:
                    kept.add(name)
    with _ignoring_failures(), open_beside(places.disk, create=False) as base:
        for name in set(base.names()) - kept:  # of runs whose shared memory was emptied
            with _ignoring_failures():
                with base.folder(name, create=False) as home:
                    gone = _age(home) > places.unused_seconds
                if gone:
                    base.remove(name)


def remove(places: Places, run: str) -> None:
    """Remove everything of a run, or of all runs whose names begin so."""
    plain(run)
    for where in (places.disk, places.memory):
        with _ignoring_failures(), open_beside(where, create=False) as base:
            for name in base.names():
                if name.startswith(run):
                    base.remove(name)


def _ignoring_failures() -> contextlib.suppress:
    return contextlib.suppress(OSError, StorageError)


def _abandoned(home: Folder) -> bool:
    """Whether a run has owners, none of which is alive."""
    owners = [name.split("-") for name in home.names() if name.startswith(f"{_OWNER}-")]
    here = str(_process_namespace())
    return bool(owners) and all(
        pid.isdecimal() and namespace in ([], [here]) and not _alive(int(pid))
        for _, pid, *namespace in owners
    )


def _age(home: Folder) -> float:
    """Seconds since something was made or removed in a folder or in one directly below it."""
    newest = os.fstat(home.handle).st_mtime
    for name in home.names():
        with contextlib.suppress(OSError):
            newest = max(newest, home.stat(name).st_mtime)
    return time.time() - newest


def _process_namespace() -> int:
    """The namespace of process ids: each container has its own."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _try_lock(home: Folder, room: str) -> int | None:
    """The lock of a room, or None if somebody has it or it is gone."""
    try:
        with home.folder(room, create=False) as folder:
            lock = folder.open(_LOCK, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if folder.stat(_LOCK).st_ino == os.fstat(lock).st_ino:
                    return lock
            except OSError:
                pass
            os.close(lock)
    except (OSError, StorageError):
        pass
    return None
