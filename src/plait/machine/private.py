"""Private folders in places that others can write to: shared memory, folders for temporary files.

Whoever may create files there can create ours first: a link, or a folder of their own under the
name that we would have used. So a folder is never used by its path alone.

*Correct output.* `open_private` returns a handle of a directory that belongs to this user, that
nobody else may write to or read, and that was not reached through a link in its last part. Every
operation of a `Folder` is relative to the handle and takes one plain name that is not followed if
it is a link. So there is no moment between the check and the use at which the path could be made
to mean something else.

*Invariants.* Only its owner (and root) can create, rename or delete below a folder of mode 0700. A
folder of ours with a mode that let others read is tightened; one that others could write to is
refused, because what is in it may be theirs.

*When a name is taken.* `open_private` refuses, with the owner and the remedy. `open_beside` takes
another name instead, for what may be anywhere: the first private folder `NAME.*` beside it, or a
new one. Only this user can make a folder of this user, so the processes of one user find the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from plait.errors import StorageError
from plait.machine.regular import open_in, plain

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_NO_DIRECTORY = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
"""What systems say when a link, or something else that is no directory, is opened as one."""


@dataclass(frozen=True, slots=True)
class Folder:
    """An open directory that is this user's alone; `path` is for messages."""

    path: Path
    handle: int

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the handle."""
        os.close(self.handle)

    def folder(self, name: str, *, create: bool = True) -> Folder:
        """The private folder of that name, made if it is missing."""
        return _open(self.path / plain(name), name, self.handle, create)

    def names(self) -> list[str]:
        """Everything in the folder."""
        return os.listdir(self.handle)

    def open(self, name: str, flags: int) -> int:
        """A regular file as a descriptor, private if it is new."""
        return open_in(self.handle, name, flags, _PRIVATE_FILE, str(self.path / name))

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with open(self.open(name, os.O_RDONLY), "rb") as file:
            return file.read()

    def write(self, name: str, *parts: bytes | memoryview) -> None:
        """A new file, replacing one that was there; without room, none is left."""
        new = f"{plain(name)}.new"
        with contextlib.suppress(FileNotFoundError):
            self.unlink(new)
        try:
            with open(self.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                for part in parts:
                    file.write(part)
            self.rename(new, name)
        except OSError:
            with contextlib.suppress(OSError):
                self.unlink(new)
            raise

    def stat(self, name: str) -> os.stat_result:
        """What is there; of a link, the link itself."""
        return os.stat(plain(name), dir_fd=self.handle, follow_symlinks=False)

    def has(self, name: str) -> bool:
        """Whether a file of that name is there."""
        try:
            return stat.S_ISREG(self.stat(name).st_mode)
        except OSError:
            return False

    def rename(self, old: str, new: str) -> None:
        """Give something in the folder another name."""
        os.rename(plain(old), plain(new), src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def unlink(self, name: str) -> None:
        """Remove a file, or a link and not what it points to."""
        os.unlink(plain(name), dir_fd=self.handle)

    def remove(self, name: str) -> None:
        """Remove a folder and everything below it, as far as it goes; links are not followed."""
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(self.stat(name).st_mode):  # opening a FIFO would wait
                shutil.rmtree(plain(name), ignore_errors=True, dir_fd=self.handle)

    def clear(self) -> None:
        """Remove everything in the folder, as far as it goes; links are not followed."""
        for name in self.names():
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(self.stat(name).st_mode):
                    self.remove(name)
                else:
                    self.unlink(name)


def open_private(path: Path, *, create: bool = True) -> Folder:
    """The folder at a path, made if it is missing; refused if it is not this user's alone.

    What leads to the folder is trusted: it is the choice of whoever set the machine up.
    """
    return _open(path, str(path), None, create)


def open_beside(path: Path, *, create: bool = True) -> Folder:
    """The folder at a path, or another private one if somebody else has taken the name."""
    try:
        return open_private(path, create=create)
    except StorageError:
        for name in sorted(os.listdir(path.parent)):
            if name.startswith(f"{path.name}."):
                with contextlib.suppress(StorageError, OSError):
                    return open_private(path.parent / name, create=False)
        if not create:
            raise
    return open_private(Path(tempfile.mkdtemp(prefix=f"{path.name}.", dir=path.parent)))


def make_private(prefix: str) -> Path:
    """A new private folder among the temporary files, with a name that nobody could foresee."""
    return Path(tempfile.mkdtemp(prefix=prefix))


def is_private(path: Path) -> bool:
    """Whether there is a folder that is this user's alone."""
    try:
        open_private(path, create=False).close()
    except (OSError, StorageError):
        return False
    return True


def remove_private(path: Path) -> None:
    """Remove a folder of this user's and all below it; anything else is left alone."""
    with contextlib.suppress(OSError, StorageError):
        with open_private(path, create=False) as folder:
            folder.clear()
        path.rmdir()


def _open(path: Path, name: str, parent: int | None, create: bool) -> Folder:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, _PRIVATE_FOLDER, dir_fd=parent)
        handle = os.open(name, flags, dir_fd=parent)
    except OSError as error:
        if error.errno in _NO_DIRECTORY or isinstance(error, PermissionError):
            raise _refusal(path, _found(name, parent)) from None
        raise
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid() or found.st_mode & _OTHERS_WRITE:
            raise _refusal(path, found)
        if found.st_mode & _OTHERS:
            os.fchmod(handle, _PRIVATE_FOLDER)
    except BaseException:
        os.close(handle)
        raise
    return Folder(path, handle)


def _found(name: str, parent: int | None) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None


def _refusal(path: Path, found: os.stat_result | None) -> StorageError:
    """What is wrong with what was found in place of a private folder, and what to do."""
    elsewhere = "or choose another place with TMPDIR"
    if found is None:
        return StorageError(
            f"this user may neither create nor open {path}",
            remedy=f"let the user write to {path.parent}, {elsewhere}",
        )
    owner = _name(found.st_uid)
    if stat.S_ISLNK(found.st_mode):
        what = f"{path} is a link of {owner}, where a private folder should be"
    elif not stat.S_ISDIR(found.st_mode):
        what = f"{path} is no folder (it belongs to {owner}), where a private folder should be"
    elif found.st_uid != os.geteuid():
        what = f"the folder {path} belongs to {owner}, not to {_name(os.geteuid())}"
    else:
        mode = stat.S_IMODE(found.st_mode)
        what = f"others may write to the folder {path} (its mode is {mode:o})"
    return StorageError(what, remedy=f"remove it if nothing in it is needed, {elsewhere}")


def _name(user: int) -> str:
    """A user by name, if the number has one."""
    try:
        return f"{pwd.getpwuid(user).pw_name} (uid {user})"
    except KeyError:
        return f"uid {user}"
