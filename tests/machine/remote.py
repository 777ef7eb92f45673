"""An object store in memory, for tests: it counts requests, is slow, or is away."""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyarrow.fs import FileType

from plait.machine import stores


@dataclass
class Info:
    """What a listing says of an object."""

    path: str
    type: Any = FileType.File
    mtime_ns: int = 0

    @property
    def base_name(self) -> str:
        return self.path.rpartition("/")[2]


class _Upload(io.BytesIO):
    """An object that is there when it is closed, unless something went wrong."""

    def __init__(self, system: MemoryStore, path: str) -> None:
        super().__init__()
        self._system, self._path = system, path

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is None:
            self._system.objects[self._path] = (self.getvalue(), time.time_ns())
        super().__exit__(kind, *rest)


@dataclass
class MemoryStore:
    """The part of `pyarrow.fs.FileSystem` that stores use."""

    objects: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    away: BaseException | None = None
    """What every request fails with, if it does."""
    open: threading.Event = field(default_factory=threading.Event)
    """Requests wait until this is set."""

    def __post_init__(self) -> None:
        self.open.set()

    def _asked(self, what: str) -> None:
        self.requests[what] += 1
        self.open.wait()
        if self.away is not None:
            raise self.away

    def get_file_info(self, selector: Any) -> Any:
        if isinstance(selector, str):
            self._asked("head")
            return Info(selector, FileType.NotFound if selector == "nowhere" else None)
        self._asked("list")
        below = f"{selector.base_dir}/"
        found: dict[str, Info] = {}
        for path, (_, when) in self.objects.items():
            if path.startswith(below):
                name, slash, _ = path.removeprefix(below).partition("/")
                kind = FileType.Directory if slash else FileType.File
                found[name] = Info(below + name, kind, when)
        return list(found.values())

    def open_input_stream(self, path: str) -> io.BytesIO:
        self._asked("get")
        if path not in self.objects:
            raise FileNotFoundError(f"no such object: {path}")
        return io.BytesIO(self.objects[path][0])

    def open_output_stream(self, path: str) -> _Upload:
        self._asked("put")
        return _Upload(self, path)

    def delete_file(self, path: str) -> None:
        self._asked("delete")
        if self.objects.pop(path, None) is None:
            raise FileNotFoundError(path)

    def delete_dir(self, path: str) -> None:
        self._asked("clear")
        below = [other for other in self.objects if other.startswith(f"{path}/")]
        if not below:
            raise FileNotFoundError(path)
        for other in below:
            del self.objects[other]


def in_memory(patch: pytest.MonkeyPatch) -> MemoryStore:
    """Let all remote stores of this process be one in memory."""
    system = MemoryStore()
    patch.setattr(stores, "_opened", lambda url: (system, url.partition("://")[2]))
    return system
