"""Read text files in blocks of whole lines, and find the lines that break a block.

A block is read at once by Arrow, which is fast and gives up at the first malformed row. Then the
same block is read again with care: `culprits` finds the rows that do not fit by halving, with the
same reader, so that both readings agree on what fits.

`csv_records` cuts CSV files, in which a line end within quotation marks does not end a record.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from plait.errors import SourceError

BLOCK_BYTES = 4 << 20
"""Bytes per block: tens of thousands of rows, and little to read again when one is malformed."""

MAX_RECORD_BYTES = 256 << 20
"""Bytes of the longest line or record: it has to be in memory as a whole."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file. `line` numbers the first one from 1, `end` is the offset after.

    A block with a `fault` is one line that is malformed for this reason.
    """

    data: bytes
    line: int
    end: int
    fault: str = ""


def read_lines(
    path: Path, *, block_bytes: int = BLOCK_BYTES, max_record_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Block]:
    """The file in blocks that end with a line, which ends with a newline."""
    rest = bytearray()
    line, end = 1, 0
    for data in pieces(path, block_bytes):
        cut = data.rfind(b"\n") + 1
        if cut:
            whole = bytes(rest) + data[:cut]
            if end == 0 and whole.startswith(BYTE_ORDER_MARK):
                whole, end = whole[3:], 3
            end += len(whole)
            yield Block(whole, line, end)
            line += whole.count(b"\n")
            rest = bytearray(data[cut:])
        else:
            rest += data
            if len(rest) > max_record_bytes:
                raise too_long(path, line, max_record_bytes)
    last = bytes(rest)
    if end == 0 and last.startswith(BYTE_ORDER_MARK):
        last, end = last[3:], 3
    if last:
        yield Block(last, line, end + len(last))


def pieces(path: Path, block_bytes: int) -> Iterator[bytes]:
    """Read a file in pieces of `block_bytes` bytes."""
    with reading(path), open_text(path) as file:
        while data := file.read(block_bytes):
            yield data


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of the system or a decoder into one that names the file."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from None


def open_text(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The file's bytes, decompressed if its name ends in .gz."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def name_of(paths: Sequence[Path]) -> str:
    """The name of a source of these files."""
    more = len(paths) - 1
    return f"{paths[0]} and {more} more" if more else str(paths[0])


def total_size(paths: Sequence[Path]) -> int | None:
    """Bytes of all files together, None if some are compressed."""
    if any(path.suffix == ".gz" for path in paths):
        return None
    return sum(path.stat().st_size for path in paths)


def unreadable(path: Path, error: Exception) -> SourceError:
    """The error for a file that the system or a decoder refuses."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return SourceError(
        f"{path} cannot be read: {reason}", remedy="check the file and its permissions"
    )


def too_long(path: Path, line: int, max_record_bytes: int, why: str = "") -> SourceError:
    """The error for a row that does not fit into memory."""
    return SourceError(
        f"{path}:{line} begins a row of more than {max_record_bytes:,} bytes{why}",
        remedy="mend the file",
    )


def culprits(rows: int, fits: Callable[[int, int], bool], most: int) -> list[int]:
    """The rows that do not fit, ascending, found by halving; stops after `most` of them.

    `fits(a, b)` says whether the rows from a to b, all taken together, do.

    >>> culprits(100, lambda a, b: not any(a <= bad < b for bad in (3, 50)), most=10)
    [3, 50]
    """
    found: list[int] = []
    spans = [(0, rows)] if rows else []
    while spans and len(found) < most:
        a, b = spans.pop()
        if fits(a, b):
            continue
        if b - a == 1:
            found.append(a)
            continue
        middle = (a + b) // 2
        spans += [(middle, b), (a, middle)]
    return found
