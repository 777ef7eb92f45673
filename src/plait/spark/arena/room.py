"""A room: a folder with the arrays of one engine in files, and its manifest.

*Invariants.* Whoever works in a room holds its lock, which ends with its process, and has removed
the manifest first; so an engine that was left half-way is never found.

*Files.* An array that is large enough is a file in shared memory, in a private folder, or on disk
beyond the room's share. Its bytes are reserved before it is mapped, so writing to it cannot fail
for want of room (which would be a SIGBUS). Without room for a file it lives in the process, and is
part of the manifest.

*Seals.* When the engine is published, each file gets a random time of modification, and the
manifest has it. Whatever is done to a file by its name afterwards (cut, written to, exchanged,
copied from elsewhere) changes that time or brings another, so it is noticed before the file is
mapped again, for the price of a system call. What happens to pages in memory is not noticed, no
more than in any other memory: to look at all of them would cost the whole window in every batch.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import mmap
import os
import stat
import tempfile
import time
import uuid
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plait.engine.saved import engine_from_state, engine_to_state
from plait.errors import StorageError
from plait.kernels.jit import Array
from plait.kernels.memory import HEAP, NotSaved
from plait.machine.private import Folder, open_beside
from plait.node.durable.store import Live
from plait.query.query import Query
from plait.spark.arena.manifest import Place, Subject, Unusable, decode, encode

_LONG_AGO = range(500_000_000, 1_500_000_000)
"""Seconds, 1985 to 2017: no file is modified then any more."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of rooms in shared memory and on disk, and the limits of their use.

    If somebody else has one of the folders, another one beside it is used (`open_beside`).
    """

    memory: Path
    disk: Path
    limit: int | None = None
    smallest: int = 1 << 14
    """Bytes below which an array is handed over by value: a file each would cost more."""
    left_free: float = 0.1
    """The share of shared memory that is left to others."""
    unused_seconds: float = 3600.0
    """After how long a run is swept away that nobody has used."""

    @classmethod
    def of_host(cls, limit: int | None = None) -> Places:
        """Linux's shared memory if there is one, and the folder for temporary files."""
        # Assumption: shared-memory-is-a-cache
        shared, temporary = Path("/dev/shm"), Path(tempfile.gettempdir())
        usable = shared.is_dir() and os.access(shared, os.W_OK)
        # Not the name of 0.1, whose workers fail over owners that are written in another way.
        name = f"plait-arenas-{os.geteuid()}"
        return cls((shared if usable else temporary) / name, temporary / f"{name}-spilled", limit)

    def remove(self, run: str, room: str) -> None:
        """Remove a room of a run, as far as it goes."""
        for base in (self.disk, self.memory):
            with (
                contextlib.suppress(OSError, StorageError),
                open_beside(base, create=False) as here,
                here.folder(run, create=False) as home,
            ):
                home.remove(room)


@dataclass(frozen=True, slots=True)
class _Block:
    """An array in a file."""

    name: str
    bytes: int
    on_disk: bool
    file: tuple[int, int]
    """Device and number of the file: its name may come to mean another one."""


class Room:
    """The arrays of one engine, for whoever holds the lock. It is the engine's `Memory`."""

    def __init__(self, places: Places, run: str, folder: Folder, lock: int) -> None:
        self.name = folder.path.name
        self._places = places
        self._run = run
        self._folder: Folder | None = folder
        self._disk: Folder | None = None
        self._lock: int | None = lock
        self._blocks: dict[int, _Block] = {}
        """By address."""
        self._seals: dict[int, int] = {}
        self._held = 0
        self._loading = False

    # -- memory

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type) -> Array:
        """An array that is a file, if it is large enough."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if self._loading or size < max(1, self._places.smallest):
            return HEAP.empty(shape, dtype)
        for on_disk in (False, True):
            with contextlib.suppress(OSError, StorageError):
                if on_disk or self._fits(size):
                    return self._new(shape, np.dtype(dtype), size, on_disk)
        return HEAP.empty(shape, dtype)

    def free(self, array: Array) -> None:
        """Remove the file; the mapping goes with the array."""
        block = self._blocks.pop(_address(array), None)
        if block is not None:
            self._held -= 0 if block.on_disk else block.bytes
            with contextlib.suppress(OSError, StorageError):
                self._where(block.on_disk).unlink(block.name)

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of arrays in shared memory."""
        return self._held

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of arrays in files on disk."""
        return sum(block.bytes for block in self._blocks.values() if block.on_disk)

    def _fits(self, size: int) -> bool:
        limit = self._places.limit
        if limit is not None and self._held + size > limit:
            return False
        room = os.fstatvfs(self._where(False).handle)
        free, total = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
        return free - size > self._places.left_free * total

    def _where(self, on_disk: bool) -> Folder:
        if self._folder is None:
            raise OSError(errno.EBADF, "the room was left")
        if on_disk and self._disk is None:
            with open_beside(self._places.disk) as base, base.folder(self._run) as run:
                self._disk = run.folder(self.name)
        return self._disk if on_disk and self._disk is not None else self._folder

    def _new(self, shape: tuple[int, ...], dtype: np.dtype[Any], size: int, on_disk: bool) -> Array:
        folder, name = self._where(on_disk), uuid.uuid4().hex
        file = folder.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            _reserve(file, size)
            return self._map(file, shape, dtype, name, on_disk)
        except OSError:
            folder.unlink(name)
            raise
        finally:
            os.close(file)

    def _map(
        self, file: int, shape: tuple[int, ...], dtype: np.dtype[Any], name: str, on_disk: bool
    ) -> Array:
        size = math.prod(shape) * dtype.itemsize
        mapped = mmap.mmap(file, size)
        array: Array = np.frombuffer(mapped, dtype).reshape(shape)
        found = os.fstat(file)
        block = _Block(name, size, on_disk, (found.st_dev, found.st_ino))
        self._blocks[_address(array)] = block
        self._held += 0 if on_disk else size
        return array

    # -- handing over

    def publish(self, live: Live, subject: Subject) -> None:
        """Publish the engine; this process must not use it until it has the lock again."""
        state = {
            "segments": list(live.segments),
            "engine": engine_to_state(live.engine),
        }
        self._seals = {}
        parts = encode(subject, state, self._sealed)
        for address in set(self._blocks) - set(self._seals):
            block = self._blocks.pop(address)
            self._held -= 0 if block.on_disk else block.bytes
            with contextlib.suppress(FileNotFoundError):
                self._where(block.on_disk).unlink(block.name)
        self._where(False).write(_manifest(subject.token), *parts)
        self.release()

    def resume(self, entered: Room, token: str) -> None:
        """Go on with the engine that this process published; `entered` is this room, locked."""
        self._folder, self._lock = entered._folder, entered._lock
        entered._folder = entered._lock = None
        self._where(False).unlink(_manifest(token))
        for address, block in self._blocks.items():
            found = self._where(block.on_disk).stat(block.name)
            if _identity(found) != (*block.file, block.bytes, self._seals[address]):
                raise Unusable("an array that somebody has changed")

    def load(self, subject: Subject, query: Query) -> Live:
        """The engine that another process published."""
        folder, name = self._where(False), _manifest(subject.token)
        raw = folder.read(name)
        folder.unlink(name)
        state = decode(raw, subject, self._mapped_again)
        self._loading = True
        try:
            engine = engine_from_state(query, state["engine"], self)
        finally:
            self._loading = False
        segments = deque((int(n), int(stream), int(t)) for n, stream, t in state["segments"])
        return Live(subject.token, engine, segments)

    def holds(self, token: str) -> bool:
        """Whether the engine of this state is here for whoever wants it."""
        return self._where(False).has(_manifest(token))

    def remove(self) -> None:
        """Remove the room, and release the lock."""
        self._places.remove(self._run, self.name)
        self.release()

    def release(self) -> None:
        """Release the lock."""
        for folder in (self._folder, self._disk):
            if folder is not None:
                folder.close()
        self._folder = self._disk = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _sealed(self, array: Array) -> Place | None:
        """Where an array is, with the seal that its file gets now."""
        address = _address(array)
        block = self._blocks.get(address)
        if block is None or array.nbytes != block.bytes or not array.flags.c_contiguous:
            if _is_mapped(array):
                raise NotSaved("a part of an array")
            return None
        file = self._where(block.on_disk).open(block.name, os.O_RDONLY)
        try:
            *found, _ = _identity(os.fstat(file))
            if found != [*block.file, block.bytes]:
                raise OSError(errno.ESTALE, "an array's file was exchanged")
            os.utime(file, ns=(time.time_ns(), _random_time()))
            self._seals[address] = os.fstat(file).st_mtime_ns
        finally:
            os.close(file)
        return {"file": block.name, "disk": block.on_disk, "seal": self._seals[address]}

    def _mapped_again(self, place: Place, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        on_disk = bool(place["disk"])
        file = self._where(on_disk).open(place["file"], os.O_RDWR)
        try:
            found = os.fstat(file)
            size = math.prod(shape) * dtype.itemsize
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
                raise Unusable("an array that is no file of its own")
            if (found.st_size, found.st_mtime_ns) != (size, place["seal"]):
                raise Unusable("an array that somebody has changed")
            return self._map(file, shape, dtype, place["file"], on_disk)
        finally:
            os.close(file)


def is_published(home: Folder, room: str, token: str) -> bool:
    """Whether a room holds the engine of this state."""
    try:
        with home.folder(room, create=False) as folder:
            return folder.has(_manifest(token))
    except (OSError, StorageError):
        return False


def _manifest(token: str) -> str:
    """The name of the manifest for a state; a token is any text."""
    return "engine-" + hashlib.blake2b(token.encode(), digest_size=16).hexdigest()


def _identity(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _random_time() -> int:
    """Nanoseconds since 1970, at random and long ago."""
    word = int.from_bytes(os.urandom(8))
    return _LONG_AGO[word % len(_LONG_AGO)] * 10**9 + (word >> 32) % 10**9


def _reserve(file: int, size: int, chunk: int = 1 << 20) -> None:
    """Reserve the bytes of a file, so that writing to its mapping cannot fail for lack of space."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    nothing = bytes(min(size, chunk))
    left = size
    while left:
        left -= os.write(file, nothing[:left])


def _is_mapped(array: Array) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, mmap.mmap)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
