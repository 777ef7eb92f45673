"""Remove mail that has been read: what Spark's `cleanSource` does, which refuses mail.

Spark's file source cleans up after itself only where no file sink has written. Here it is sound: a
box of packets has one reader, the application of its site. That application's checkpoint says which
files belong to which batch, and which batches are complete. A batch that is complete is never
repeated. Spark looks at the last one once more when a query starts, so that one is left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from plait.errors import CheckpointDamaged

_KEPT = 2
"""The last complete batches whose mail is left alone."""


def sweep(checkpoint: Path, boxes: Collection[Path]) -> int:
    """Remove the files in these boxes that complete batches have read; how many there were.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as new:
    ...     sweep(Path(new), [])
    0
    """
    removed = 0
    # Assumption: one-reader-per-box
    for path in _read(checkpoint):
        if path.parent in boxes and path.exists():
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            removed += 1
    return removed


def _read(checkpoint: Path) -> Iterator[Path]:
    """The files that complete batches have read."""
    complete = _numbers(checkpoint / "commits")[:-_KEPT]
    if not complete:
        return
    for source, offset in enumerate(_offsets(checkpoint / "offsets" / str(complete[-1]))):
        log = checkpoint / "sources" / str(source)
        for name in os.listdir(log) if offset is not None and log.is_dir() else ():
            if name.removesuffix(".compact").isdigit():
                for entry in _entries(log / name):
                    if entry["batchId"] <= offset:
                        yield Path(unquote(urlparse(entry["path"]).path))


def _numbers(log: Path) -> list[int]:
    """The batches in a log of Spark, in order."""
    return sorted(int(name) for name in os.listdir(log) if name.isdigit()) if log.is_dir() else []


def _offsets(path: Path) -> list[int | None]:
    """How far each file source had come with a batch; None where it is no file source."""
    found: list[int | None] = []
    for line in _lines(path)[1:]:
        offset = None if line == "-" else _json(path, line)
        found.append(offset["logOffset"] if isinstance(offset, dict) else None)
    return found


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    return (_json(path, line) for line in _lines(path))


def _lines(path: Path) -> list[str]:
    """The lines of a log file after its version."""
    version, *lines = path.read_text(encoding="utf-8").splitlines()
    if version != "v1":
        raise CheckpointDamaged(
            f"{path} has the version {version!r}, this version of Plait knows 'v1'",
            remedy="sweep with the version that runs the query",
        )
    return lines


def _json(path: Path, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise CheckpointDamaged(
            f"{path} cannot be read: {error}", remedy="put it back from a copy"
        ) from error
