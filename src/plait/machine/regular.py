"""Regular files below a folder, opened without following links and without waiting.

Whoever may write to a folder can put anything under the names that Plait uses there: a link to
another file, a FIFO that nobody writes to, a device, a folder. So does an accident.

*Correct output.* Only regular files are read and written, and only below the folder: no part of a
path below it is followed if it is a link, and nothing is added to a file that has a second name.
Everything else is an OSError whose `strerror` says what is there instead. No call waits for
another process.

*Invariants.* What leads to the folder itself is trusted: it is the choice of whoever set the
machine up. Each part of a path is opened from the handle of the one before, and the kind of a file
is checked on its own handle, so there is no moment between the check and the use.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFREG: "a file",
}


def plain(name: str) -> str:
    """The name itself, if it is one: no path, so that it cannot lead anywhere else.

    >>> plain("engine-1")
    'engine-1'
    >>> plain("../engine-1")
    Traceback (most recent call last):
    ...
    ValueError: '../engine-1' is no plain file name
    """
    if not name or name in {".", ".."} or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is no plain file name")
    return name


@contextmanager
def folder_below(root: Path, folder: str = "", *, create: bool = False) -> Iterator[int]:
    """Open the folder at a path below `root`; with `create`, what is missing of it is made."""
    if create:
        root.mkdir(parents=True, exist_ok=True)
    handle, here = os.open(root, _FOLDER), str(root)
    try:
        for name in filter(None, folder.split("/")):
            here = f"{here}/{plain(name)}"
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=handle)
            _check(handle, name, here, stat.S_IFDIR)
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def open_in(folder: int, name: str, flags: int, mode: int = 0o666, shown: str = "") -> int:
    """Open the regular file of that name in an open folder; errors show it as `shown`."""
    shown = shown or name
    # A device is looked at before it is opened: opening one may do something already.
    with suppress(FileNotFoundError):
        _check(folder, plain(name), shown, stat.S_IFREG)
    file = os.open(plain(name), flags | _FILE, mode, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is not a regular file", shown)
    return file


def open_below(root: Path, path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open the regular file at a path below a folder."""
    folder, _, name = path.rpartition("/")
    with folder_below(root, folder) as handle:
        return open_in(handle, name, flags, mode, f"{root}/{path}")


def read_below(root: Path, path: str, most: int | None = None) -> bytes:
    """Read the regular file at a path below a folder; one of more than `most` bytes is refused."""
    with open(open_below(root, path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            told = f"it has {size:,} bytes, more than the {most:,} that such a file may have"
            raise OSError(errno.EFBIG, told, f"{root}/{path}")
        return file.read(-1 if most is None else most)


def append_below(root: Path, path: str, lines: bytes) -> None:
    """Add whole lines to the file at a path below a folder: all of them, or none.

    If the last line was cut off by a crash, the new ones begin on a line of their own.
    """
    folder, _, name = path.rpartition("/")
    with folder_below(root, folder, create=True) as handle:
        file = open_in(handle, name, os.O_RDWR | os.O_APPEND | os.O_CREAT, shown=f"{root}/{path}")
    try:
        found = os.fstat(file)
        if found.st_nlink > 1:
            raise OSError(errno.EMLINK, "it has a second name elsewhere", f"{root}/{path}")
        end = found.st_size
        whole = not end or os.pread(file, 1, end - 1) == b"\n"
        try:
            _write(file, lines if whole else b"\n" + lines)
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, end)  # a line that was cut off would spoil the next one
            raise
    finally:
        os.close(file)


def _write(file: int, raw: bytes) -> None:
    left = memoryview(raw)
    while left:
        left = left[os.write(file, left) :]


def _check(folder: int, name: str, shown: str, wanted: int) -> None:
    """Refuse what is there under a name if it is not of the kind that is wanted."""
    found = stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    if found != wanted:
        what = _KINDS.get(found, "something else")
        raise OSError(errno.EINVAL, f"it is {what}, not {_KINDS[wanted]}", shown)
