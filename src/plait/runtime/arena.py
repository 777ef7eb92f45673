"""The arena: engines in memory that the Python workers of a host share.

Spark hands a task to any idle worker of its executor. An engine that lived in one worker's memory
would have to be rebuilt from the state store whenever another worker gets the next batch. So the
arrays of an engine are memory-mapped files, and between two batches a small *manifest* beside them
says how they make up the engine: whoever gets the next batch maps the same files and goes on.

*Correct output.* None: the arena is a cache. An engine is found only under the token of the very
state that the state store has; everything else is rebuilt from there.

*Invariants.* The engine of a processor lives in a *room*, a folder with a lock. Whoever works on it
holds the lock and has removed the manifest first, so that an engine that was left half-way is never
found. A room whose lock is free and whose manifest has another token is swept away by whoever looks
for the processor's engine next. Locks end with their process.

*Cost.* Handing over costs the manifest, some kilobytes; the arrays stay where they are. Arrays live
in shared memory until the room's share of it is used up or it is nearly full, then in files on
disk, which the operating system keeps in memory as far as it can. If neither has room, they live in
the worker's own memory and are handed over by value.

*Cleaning up.* Each run of a query has its own folder with the process ids of its owners. It goes
when the driver that made it ends, or else when another run on the host finds all owners gone or
the folder unused for an hour.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import mmap
import os
import pickle
import shutil
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plait.cluster.processor import Live
from plait.kernels.jit import Array
from plait.kernels.memory import HEAP, Memory
from plait.query.query import Query

_LEFT_FREE = 0.1
"""The share of shared memory that is left to others."""

_UNUSED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Places:
    """Where rooms are: shared memory, disk, and how much of the first each engine may use."""

    memory: Path
    disk: Path
    limit: int | None = None
    smallest: int = 1 << 14
    """Bytes below which an array is handed over by value: a file each would cost more."""

    @classmethod
    def of_host(cls, limit: int | None = None) -> Places:
        """Linux's shared memory if there is one, and the folder for temporary files."""
        shared, name = Path("/dev/shm"), f"plait-{os.getuid()}"
        disk = Path(tempfile.gettempdir()) / name
        usable = shared.is_dir() and os.access(shared, os.W_OK)
        return cls(shared / name if usable else disk, disk / "spilled", limit)


class Room:
    """The arrays of one engine, for whoever holds the lock. It is the engine's `Memory`."""

    def __init__(self, places: Places, folder: Path, lock: int) -> None:
        self.folder = folder
        self.spilled = places.disk / folder.parent.name / folder.name
        self._places = places
        self._lock: int | None = lock
        self._blocks: dict[int, tuple[Path, int]] = {}
        """By address: the file of an array and its bytes."""
        self._held = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type) -> Array:
        """An array that is a file, if it is large enough."""
        bytes_ = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if bytes_ < max(1, self._places.smallest):
            return HEAP.empty(shape, dtype)
        name = uuid.uuid4().hex
        path = self.folder / name
        if not (self._fits(bytes_) and _make_file(path, bytes_)):
            with contextlib.suppress(OSError):
                self.spilled.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self.spilled / name
            if not _make_file(path, bytes_):
                return HEAP.empty(shape, dtype)
        return self._mapped(path, shape, np.dtype(dtype))

    def free(self, array: Array) -> None:
        """Remove the file; the mapping goes with the array."""
        path, bytes_ = self._blocks.pop(_address(array), (None, 0))
        if path is not None:
            path.unlink(missing_ok=True)
            self._held -= bytes_ if path.parent == self.folder else 0

    def _fits(self, bytes_: int) -> bool:
        limit = self._places.limit
        if limit is not None and self._held + bytes_ > limit:
            return False
        room = os.statvfs(self.folder)
        free, total = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
        return free - bytes_ > _LEFT_FREE * total

    def _mapped(self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        with path.open("r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
        array: Array = np.frombuffer(mapped, dtype)[: np.prod(shape)].reshape(shape)
        self._blocks[_address(array)] = (path, array.nbytes)
        self._held += array.nbytes if path.parent == self.folder else 0
        return array

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of arrays in shared memory."""
        return self._held

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of arrays in files on disk."""
        return sum(n for path, n in self._blocks.values() if path.parent != self.folder)

    # -- handing over

    def publish(self, live: Live) -> None:
        """Let others have the engine; this process must not touch it before it is its turn."""
        sink = io.BytesIO()
        saver = _Saver(sink, self, live.engine.query)
        saver.dump(live)
        for address in set(self._blocks) - saver.seen:
            path, bytes_ = self._blocks.pop(address)
            path.unlink(missing_ok=True)
            self._held -= bytes_ if path.parent == self.folder else 0
        new = self.folder / "new"
        new.write_bytes(sink.getvalue())
        new.rename(self._manifest(live.token))
        self.release()

    def resume(self, lock: int, token: str) -> None:
        """It is this process's turn again, and nobody has had one since."""
        self._lock = lock
        self._manifest(token).unlink()

    def load(self, token: str, query: Query) -> Live:
        """The engine that another process published."""
        manifest = self._manifest(token)
        raw = manifest.read_bytes()
        manifest.unlink()
        live = _Loader(io.BytesIO(raw), self, query).load()
        assert isinstance(live, Live), "a manifest holds an engine"
        return live

    def holds(self, token: str) -> bool:
        """Whether the engine of this state is here for whoever wants it."""
        return self._manifest(token).exists()

    def remove(self) -> None:
        """Away with everything, and with the lock."""
        shutil.rmtree(self.spilled, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Let go of the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _manifest(self, token: str) -> Path:
        return self.folder / f"engine-{token}"

    def block(self, array: Array) -> Path | None:
        """The file that an array is, the whole of it."""
        path, bytes_ = self._blocks.get(_address(array), (None, 0))
        return path if array.nbytes == bytes_ and array.flags.c_contiguous else None

    def map_again(self, path: str, shape: tuple[int, ...], dtype: str) -> Array:
        """The array that is in a file."""
        return self._mapped(Path(path), shape, np.dtype(dtype))


class _Saver(pickle.Pickler):
    """Writes a manifest: arrays in files by name, all else by value."""

    def __init__(self, sink: io.BytesIO, room: Room, query: Query) -> None:
        super().__init__(sink, protocol=5)
        self._room = room
        self._query = query
        self.seen: set[int] = set()

    def persistent_id(self, obj: Any) -> Any:
        if obj is self._room:
            return ("room",)
        if obj is self._query:
            return ("query",)
        if isinstance(obj, np.ndarray):
            path = self._room.block(obj)
            if path is not None:
                self.seen.add(_address(obj))
                return ("array", str(path), obj.shape, obj.dtype.str)
            assert not _is_mapped(obj), "an engine keeps whole arrays, no views of them"
        return None


class _Loader(pickle.Unpickler):
    """Reads a manifest, with the folder's own files only; the folder is private to its user."""

    def __init__(self, source: io.BytesIO, room: Room, query: Query) -> None:
        super().__init__(source)
        self._room = room
        self._query = query

    def persistent_load(self, pid: Any) -> Any:
        kind, *rest = pid
        if kind == "array":
            return self._room.map_again(*rest)
        return {"room": self._room, "query": self._query}[kind]


@dataclass(slots=True)
class Arena:
    """The engines of one run of a query on this host; see `plait.cluster.processor.Engines`."""

    run: str
    places: Places
    _mine: dict[int, tuple[Live, Room]] = field(default_factory=dict)
    _open: dict[int, Room] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for base in (self.places.memory, self.places.disk):
            base.mkdir(mode=0o700, parents=True, exist_ok=True)
            if base.stat().st_uid != os.getuid():
                raise PermissionError(f"{base} belongs to somebody else")
        sweep(self.places, self.run)
        self._home.mkdir(mode=0o700, exist_ok=True)
        (self._home / f"owner-{os.getppid()}").touch()

    @property
    def _home(self) -> Path:
        return self.places.memory / self.run

    def take(self, number: int, token: str, query: Query) -> Live | None:
        """The engine of this very state, if it is somewhere; it is the caller's until `put`."""
        self._leave(number)
        live, room = self._mine.pop(number, (None, None))
        self._mine = {n: (own, at) for n, (own, at) in self._mine.items() if at.holds(own.token)}
        found = None
        for folder in self._home.glob(f"{number}-*"):
            lock = _try_lock(folder / "lock")
            if lock is None:
                continue
            here = Room(self.places, folder, lock)
            if found is not None or not here.holds(token):
                here.remove()
            elif room is not None and live is not None and live.token == token:
                room.resume(lock, token)
                self._open[number], found = room, live
            else:
                self._open[number], found = here, here.load(token, query)
        return found

    def memory(self, number: int) -> Memory:
        """Where a new engine's arrays live."""
        self._leave(number)
        making = self._home / f"making-{uuid.uuid4().hex}"
        making.mkdir(mode=0o700)
        lock = _try_lock(making / "lock")
        assert lock is not None, "nobody else knows this folder"
        folder = self._home / f"{number}-{making.name}"
        making.rename(folder)
        room = Room(self.places, folder, lock)
        self._open[number] = room
        return room

    def put(self, number: int, live: Live) -> None:
        """Let whoever gets the next batch go on from here."""
        room = self._open.pop(number)
        try:
            room.publish(live)
        except OSError:  # no room for the manifest: the next batch rebuilds the engine
            room.remove()
            return
        self._mine[number] = (live, room)

    def drop(self, number: int, live: Live) -> None:
        """Forget an engine that was left half-way."""
        if self._open.get(number) is live.engine.windows.memory:
            self._leave(number)

    def _leave(self, number: int) -> None:
        room = self._open.pop(number, None)
        if room is not None:
            room.remove()


def sweep(places: Places, run: str) -> None:
    """Remove what other runs left behind that have no owner, or no use since long."""
    for home in places.memory.iterdir():
        if home.name == run or home == places.disk or not home.is_dir():
            continue
        owners = [int(p.name.partition("-")[2]) for p in home.glob("owner-*")]
        ages = [time.time() - p.stat().st_mtime for p in (home, *_existing(home.iterdir()))]
        if (owners and not any(map(_alive, owners))) or min(ages) > _UNUSED_SECONDS:
            remove(places, home.name)


def remove(places: Places, run: str) -> None:
    """Remove everything of a run, or of all runs whose names begin so."""
    for base in (places.disk, places.memory):
        for home in base.glob(f"{run}*"):
            shutil.rmtree(home, ignore_errors=True)


def _existing(paths: Any) -> list[Path]:
    return [p for p in paths if p.exists()]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _try_lock(path: Path) -> int | None:
    """The lock, or None if somebody has it or it is gone."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _make_file(path: Path, bytes_: int) -> bool:
    """Reserve a file, so that writing to its mapping cannot fail for want of room."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return False
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, bytes_)
        else:
            os.ftruncate(file, bytes_)
    except OSError:
        path.unlink()
        return False
    finally:
        os.close(file)
    return True


def _is_mapped(array: Array) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, mmap.mmap)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
