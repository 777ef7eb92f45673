"""Locks on a control directory, so that only one process writes it."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

from plait.errors import MoveError
from plait.machine.regular import open_below
from plait.machine.stores import FileStore, store_at
from plait.spark.control.directory import Control

_FRESH = 60.0
"""Seconds for which a remote lock counts that was not renewed."""
_RENEWED = 20.0
"""Seconds after which its holder renews it."""


class Lock(Protocol):
    """A lock that one process can hold."""

    def take(self) -> None:
        """Take it, or keep it; MoveError if another process has it."""

    def release(self) -> None:
        """Let another process have it."""


def lock_on(
    control: Control, name: str = "manager.lock", does: str = "moves the partition groups of"
) -> Lock:
    """The lock of that name on a control directory; `does` says what for."""
    if control.remote:
        return RemoteLock(store_at(f"{control.folder}/{name}"), control.folder, does)
    return FileLock(Path(control.folder, name), does)


class FileLock:
    """A lock on a file; the system releases it when the process ends, however that happens."""

    def __init__(self, path: Path, does: str) -> None:
        self._path = path
        self._does = does
        self._handle = -1

    def take(self) -> None:
        """At once."""
        if self._handle >= 0:
            return
        # Open for reading only: it must not keep a disk from being made read-only.
        flags = os.O_RDONLY | os.O_CREAT
        handle = open_below(self._path.parent, self._path.name, flags, 0o600)
        try:
            # Assumption: one-query-per-checkpoint
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise _taken(self._does, str(self._path.parent)) from None
        self._handle = handle

    def release(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class RemoteLock:
    """A lock in a store without locks: each process that wants it has an object there.

    Who has written its object and sees none of another process that is fresh has the lock, and
    renews the object while it keeps it. Two that come at the same time both see the other one, and
    neither has it. Times are those of the store, so clocks of hosts need not agree. A process that
    died has the lock for as long as its object is fresh.

    Spark refuses to run two queries on one checkpoint; this keeps order between drivers that follow
    each other while Spark has not noticed yet.
    """

    def __init__(self, store: FileStore, place: str, does: str) -> None:
        self._store = store
        self._place = place
        self._does = does
        self._renewed: float | None = None

    def take(self) -> None:
        """By one upload and one listing, every twenty seconds."""
        now = time.monotonic()
        if self._renewed is not None and now - self._renewed < _RENEWED:
            return
        self._store.write(_me(), b"")
        written = self._store.names()
        mine = written.get(_me(), 0.0)
        # Assumption: one-query-per-checkpoint
        if any(name != _me() and when > mine - _FRESH for name, when in written.items()):
            self.release()
            raise _taken(self._does, self._place)
        for name in written:
            if name != _me():
                self._store.delete(name)  # of a process that died
        self._renewed = now

    def release(self) -> None:
        """Remove the object; if that fails, it gets old."""
        self._renewed = None
        with suppress(OSError):
            self._store.delete(_me())


def _taken(does: str, place: str) -> MoveError:
    return MoveError(f"another process {does} {place}", remedy="let one driver alone run a query")


@cache
def _me() -> str:
    """A name for this process."""
    return os.urandom(8).hex()
