"""Files that appear complete or not at all.

A draft is written under a temporary name beside its own. When it is complete it is synced, renamed,
and the directory is synced: whoever looks, also after a power failure, finds what was there before
or a complete file. A draft that does not get so far is removed. `abandon_drafts` removes all that
are left, for a process that has to end at once.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from plait.errors import OutputExists, PlaitError

FileId: TypeAlias = tuple[int, int]
"""Device and inode: the same for all names of a file."""

_DRAFTS: set[Path] = set()
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


class Draft:
    """A file in the making: write to `temporary`, then `publish` or `abandon`."""

    def __init__(
        self, path: Path, *, overwrite: bool = False, inputs: Collection[FileId] = ()
    ) -> None:
        self.path = path
        self._overwrite = overwrite
        check_place(path, overwrite=overwrite, inputs=inputs)
        self.temporary = path.with_name(f".plait-{os.getpid()}-{secrets.token_hex(4)}.tmp")
        # Known before it exists, so that no signal comes in between.
        _DRAFTS.add(self.temporary)
        with writing(path):
            try:
                # Nobody else's file or link is opened by mistake.
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                os.close(os.open(self.temporary, flags, 0o666))
            except OSError:
                _DRAFTS.discard(self.temporary)
                raise

    def sync(self) -> None:
        """Bring what is written so far to the disk."""
        with writing(self.path):
            _sync(self.temporary)

    def publish(self) -> None:
        """Give the file its name."""
        with writing(self.path):
            _sync(self.temporary)
            self._appear()
            _DRAFTS.discard(self.temporary)
            with suppress(OSError):  # some file systems sync no directories
                _sync(self.path.parent)

    def _appear(self) -> None:
        if not self._overwrite:
            try:
                # Unlike a rename, a link replaces nothing that came in the meantime.
                os.link(self.temporary, self.path)
            except FileExistsError:
                raise exists(self.path) from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                if os.path.lexists(self.path):
                    raise exists(self.path) from None
            else:
                self.temporary.unlink()
                return
        os.replace(self.temporary, self.path)

    def abandon(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError):
            self.temporary.unlink(missing_ok=True)
        _DRAFTS.discard(self.temporary)


def abandon_drafts() -> None:
    """Remove every file in the making."""
    for temporary in list(_DRAFTS):
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        _DRAFTS.discard(temporary)


def write_whole(path: Path, text: str) -> None:
    """Write a small text to a file, which is replaced if it exists, or to a device or pipe."""
    with writing(path):
        try:
            kind = path.stat().st_mode
        except FileNotFoundError:
            kind = stat.S_IFREG
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            # There is nothing to rename: a rename would replace the device itself.
            path.write_text(text, encoding="utf-8")
            return
    draft = Draft(path.resolve(), overwrite=True)
    try:
        with writing(path):
            draft.temporary.write_text(text, encoding="utf-8")
        draft.publish()
    finally:
        draft.abandon()


def check_place(path: Path, *, overwrite: bool = False, inputs: Collection[FileId] = ()) -> None:
    """Refuse a path that cannot be written, or that would replace something unasked."""
    with writing(path):
        if path.is_dir():
            raise OutputExists(f"the output {path} is a directory", remedy="name a file in it")
        if file_id(path) in inputs:
            raise OutputExists(
                f"the output {path} is one of the inputs", remedy="choose another path"
            )
        if os.path.lexists(path):
            if path.exists() and not path.is_file():
                raise OutputExists(
                    f"the output {path} is a device or pipe", remedy="name a regular file"
                )
            if not overwrite:
                raise exists(path)
        if not path.parent.is_dir():
            raise PlaitError(
                f"the output {path} cannot be written: there is no directory {path.parent}",
                remedy=f"make it with: mkdir -p {path.parent}",
            )


def exists(path: Path) -> OutputExists:
    """The error for an output that would replace another file unasked."""
    return OutputExists(
        f"the output {path} exists", remedy="choose another path, or replace it: --overwrite"
    )


def file_id(path: Path) -> FileId | None:
    """What tells whether two paths are one file, through whatever links; None without a file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns what the system or Arrow raises into an error that names the file."""
    try:
        yield
    except OSError as error:
        raise PlaitError(
            f"the output {path} cannot be written: {error.strerror or error}",
            remedy="check the permissions and the free space of its directory",
        ) from None
    except pa.ArrowException as error:
        raise PlaitError(
            f"the output {path} cannot be written: {error}", remedy="choose another format"
        ) from None
    except ValueError as error:
        # The system or Arrow does not take such a name.
        raise PlaitError(
            f"the output {str(path)!r} cannot be written: {error}", remedy="choose another name"
        ) from None


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
