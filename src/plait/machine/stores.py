"""A folder of small files that several hosts reach: in the file system, or in an object store.

*Correct output.* A file is there whole or not at all, whoever reads it meanwhile.

*Invariants.* In the file system a file is written under another name and renamed, or linked where
it must be new. Only regular files are read, and no link below the store's folder is followed
(`plait.machine.regular`). Object stores show an object when its upload has
ended, and replace it as a whole. They have no way to create one only if it is new that all of them
share, so there the process that creates must be the only one that does: only a query's driver
decides.

*Credentials* of object stores come from the environment, profiles or roles of the process, as the
library of each (`pyarrow.fs`) looks for them. They are never passed on, and never written.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from urllib.parse import unquote, urlparse

from plait.errors import StorageError
from plait.machine.regular import folder_below, open_in, read_below

_SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "hdfs": "hdfs", "viewfs": "hdfs", "gs": "gs"}
_SCHEMES |= {"abfs": "abfs", "abfss": "abfs"}
"""What can be reached, and by which file system of `pyarrow.fs`."""

_CREATING = Lock()
"""Of the threads of a process one creates a file of a remote store at a time."""

LARGEST = 64 << 20
"""Bytes that a small file may have; only what holds rows is larger."""

_CONNECT_SECONDS, _REQUEST_SECONDS, _ATTEMPTS = 5.0, 10.0, 3


class FileStore(Protocol):
    """A folder; paths in it have parts divided by slashes."""

    @property
    def root(self) -> str:
        """Where it is, for messages."""

    def names(self, folder: str = "", *, files: bool = True) -> dict[str, float]:
        """The files in a folder and when they were written, in seconds; none if it is not there.

        Without `files`, everything that has a name.
        """

    def read(self, path: str, most: int | None = LARGEST) -> bytes:
        """The content of a file; OSError if it cannot be read, or has more than `most` bytes."""

    def write(self, path: str, raw: bytes, *, durable: bool = False) -> None:
        """Write a file as a whole, replacing one that is there; OSError if it cannot be.

        A `durable` one is still there when the machine has lost its power.
        """

    def create(self, path: str, raw: bytes) -> bool:
        """Write a new file, durably; false if there is one of that name."""

    def delete(self, path: str) -> None:
        """Remove a file, if it is there."""

    def clear(self, folder: str) -> None:
        """Remove a folder of files, if it is there, in few requests."""


def is_remote(place: str) -> bool:
    """Whether a place is in a store that is no file system of this host, and can be reached.

    >>> is_remote("s3a://bucket/x"), is_remote("/data/x"), is_remote("dbfs:/x")
    (True, False, False)
    """
    return urlparse(place).scheme in _SCHEMES


def store_at(place: str, below: str = "") -> FileStore:
    """The store of a folder, by its path or URL, or of a folder `below` it, reached by no link."""
    if is_remote(place):
        return RemoteStore(f"{place.rstrip('/')}/{below}".rstrip("/"))
    return LocalStore(Path(place), below)


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A folder of the file system, which need not be there."""

    folder: Path
    below: str = ""
    """The folder in it that is meant, which is not reached through links."""

    @property
    def root(self) -> str:
        """Its path."""
        return str(self.folder / self.below)

    def names(self, folder: str = "", *, files: bool = True) -> dict[str, float]:
        """Links are no files."""
        found = {}
        try:
            with self._opened(folder) as handle, os.scandir(handle) as entries:
                for entry in entries:
                    if not files or entry.is_file(follow_symlinks=False):
                        with suppress(FileNotFoundError):  # removed just now
                            found[entry.name] = entry.stat(follow_symlinks=False).st_mtime
        except FileNotFoundError:
            return {}
        return found

    def read(self, path: str, most: int | None = LARGEST) -> bytes:
        """Read it."""
        return read_below(self.folder, f"{self.below}/{path}", most)

    def write(self, path: str, raw: bytes, *, durable: bool = False) -> None:
        """Under another name, which is renamed."""
        folder, _, name = path.rpartition("/")
        with self._named(path), self._opened(folder, create=True) as handle:
            new = _new()
            try:
                _write_new(handle, new, raw, durable)
                # Assumption: files-appear-whole
                os.rename(new, name, src_dir_fd=handle, dst_dir_fd=handle)
            except OSError:
                with suppress(OSError):
                    os.unlink(new, dir_fd=handle)
                raise

    def create(self, path: str, raw: bytes) -> bool:
        """Under another name, synced, which is linked: that fails if there is one."""
        folder, _, name = path.rpartition("/")
        with self._named(path), self._opened(folder, create=True) as handle:
            new = _new()
            try:
                _write_new(handle, new, raw, durable=True)
                # Assumption: create-is-alone
                os.link(new, name, src_dir_fd=handle, dst_dir_fd=handle, follow_symlinks=False)
            except FileExistsError:
                return False
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(new, dir_fd=handle)
        return True

    def delete(self, path: str) -> None:
        """Remove it."""
        folder, _, name = path.rpartition("/")
        with suppress(FileNotFoundError), self._named(path), self._opened(folder) as handle:
            os.unlink(name, dir_fd=handle)

    def clear(self, folder: str) -> None:
        """File by file."""
        for name in self.names(folder):
            self.delete(f"{folder}/{name}")
        with suppress(OSError):  # somebody else keeps something there
            Path(self.root, folder).rmdir()

    @contextmanager
    def _named(self, path: str) -> Iterator[None]:
        """Let errors tell the whole path, not the name in the folder that is open."""
        try:
            yield
        except OSError as error:
            if error.errno is None:
                raise
            raise OSError(error.errno, error.strerror, f"{self.root}/{path}") from error

    def _opened(self, folder: str, *, create: bool = False) -> AbstractContextManager[int]:
        return folder_below(self.folder, f"{self.below}/{folder}", create=create)


def _new() -> str:
    return f"new-{os.getpid()}-{os.urandom(4).hex()}"


def _write_new(folder: int, name: str, raw: bytes, durable: bool) -> None:
    with open(open_in(folder, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(raw)
        if durable:
            file.flush()
            os.fsync(file.fileno())


@dataclass(frozen=True, slots=True)
class RemoteStore:
    """A folder of an object store, or of HDFS; a value that travels to where it is used."""

    url: str

    @property
    def root(self) -> str:
        """Its URL."""
        return self.url

    def names(self, folder: str = "", *, files: bool = True) -> dict[str, float]:
        """One listing."""
        from pyarrow.fs import FileSelector, FileType

        system, base = _opened(self.url)
        place = f"{base}/{folder}".rstrip("/")
        found = system.get_file_info(FileSelector(place, allow_not_found=True))
        kept = (info for info in found if not files or info.type == FileType.File)
        return {info.base_name: info.mtime_ns / 1e9 if info.mtime_ns else 0.0 for info in kept}

    def read(self, path: str, most: int | None = LARGEST) -> bytes:
        """One request."""
        system, base = _opened(self.url)
        with system.open_input_stream(f"{base}/{path}") as file:
            raw = bytes(file.read() if most is None else file.read(most + 1))
        if most is not None and len(raw) > most:
            raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", f"{self.url}/{path}")
        return raw

    def write(self, path: str, raw: bytes, *, durable: bool = False) -> None:
        """One upload, always durable; HDFS makes the folders that are missing."""
        del durable
        system, base = _opened(self.url)
        with system.open_output_stream(f"{base}/{path}") as file:
            file.write(raw)

    def create(self, path: str, raw: bytes) -> bool:
        """Looked up, then written: the process that creates must be the only one."""
        folder, _, name = path.rpartition("/")
        with _CREATING:
            # Assumption: create-is-alone
            if name in self.names(folder, files=False):
                return False
            self.write(path, raw)
        return True

    def delete(self, path: str) -> None:
        """With S3 three requests: Arrow looks it up, removes it, and keeps the folder there."""
        system, base = _opened(self.url)
        with suppress(FileNotFoundError):
            system.delete_file(f"{base}/{path}")

    def clear(self, folder: str) -> None:
        """With S3 one listing, and one request for up to a thousand files."""
        system, base = _opened(self.url)
        with suppress(FileNotFoundError):
            system.delete_dir(f"{base}/{folder}")

    def check(self) -> None:
        """Refuse a store that cannot be reached, by name."""
        try:
            _check_bucket(self.url)
            self.names()
        except Exception as error:  # of Arrow, of its libraries, or of the system
            raise StorageError(
                f"Plait cannot reach {self.url}: {problem(error)}",
                remedy="give driver and executors its end point and credentials in their "
                "environment (for S3 AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, a profile or a role), or "
                "do not tell to_df the checkpoint: then nothing is asked or reported there",
            ) from error


def problem(error: BaseException) -> str:
    """What an error of a store says, in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _check_bucket(url: str) -> None:
    """Refuse a bucket that is not there: listing it finds nothing, and is no error."""
    from pyarrow.fs import FileType

    system, base = _opened(url)
    bucket = base.partition("/")[0]
    if bucket and system.get_file_info(bucket).type == FileType.NotFound:
        raise FileNotFoundError(f"there is no bucket {bucket!r}")


@cache
def _opened(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it; opened once in a process."""
    from pyarrow import fs

    parsed = urlparse(url)
    kind = _SCHEMES[parsed.scheme]
    if kind == "s3":
        return _s3(fs), f"{parsed.netloc}{unquote(parsed.path)}".rstrip("/")
    system, base = fs.FileSystem.from_uri(url)
    return system, base.rstrip("/")


def _s3(fs: Any) -> Any:
    """S3 by the environment, with times after which a request counts as failed."""
    given = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    options: dict[str, Any] = {}
    if given:
        end_point = urlparse(given)
        options = {"endpoint_override": end_point.netloc, "scheme": end_point.scheme}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region:
        options["region"] = region
    return fs.S3FileSystem(
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        allow_delayed_open=True,  # a small file is then one request instead of three
        **options,
    )
