"""Text files in blocks of whole lines, and the search for the lines that break a block.

A block is read at once by Arrow, which is fast and gives up at the first malformed row. Then the
same block is read again with care: `culprits` finds the rows that do not fit by halving, with the
same reader, so that both readings agree on what fits.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from plait.errors import SourceError

BLOCK_BYTES = 4 << 20
"""Bytes per block: tens of thousands of rows, and little to read again when one is malformed."""

_NEWLINE, _QUOTE = 10, 34


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file. `line` numbers the first one from 1, `end` is the offset after."""

    data: bytes
    line: int
    end: int


def read_blocks(path: Path, *, quoted: bool, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """The file in blocks that end with a line; with `quoted`, not inside quotation marks."""
    rest, line, end = b"", 1, 0
    try:
        with open_text(path) as file:
            while data := file.read(block_bytes):
                data = rest + data
                if end == 0 and data.startswith(b"\xef\xbb\xbf"):
                    data, end = data[3:], 3
                cut = _last_line_end(data, quoted)
                rest = data[cut:]
                if cut:
                    end += cut
                    yield Block(data[:cut], line, end)
                    line += data.count(b"\n", 0, cut)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from None
    if rest:
        yield Block(rest, line, end + len(rest))


def open_text(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The file's bytes, decompressed if its name ends in .gz."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def name_of(paths: Sequence[Path]) -> str:
    """What a source of these files is called."""
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


def _last_line_end(data: bytes, quoted: bool) -> int:
    """Where the last whole line ends, 0 if none does."""
    last = data.rfind(b"\n") + 1
    if not quoted or b'"' not in data:
        return last
    marks = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(marks == _NEWLINE)
    outside = ends[np.searchsorted(np.flatnonzero(marks == _QUOTE), ends) % 2 == 0]
    # A quotation mark that is never closed would swallow the file: then any line end will do.
    return int(outside[-1]) + 1 if len(outside) else last


def line_starts(data: bytes, *, quoted: bool = False) -> npt.NDArray[np.int64]:
    """Where each line begins that is not empty; with `quoted`, newlines within quotes are none.

    >>> line_starts(b'a\\n\\n"b\\nc"\\nd').tolist(), line_starts(b'"b\\nc"', quoted=True).tolist()
    ([0, 3, 6, 9], [0])
    """
    marks = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(marks == _NEWLINE)
    if quoted:
        ends = ends[np.searchsorted(np.flatnonzero(marks == _QUOTE), ends) % 2 == 0]
    starts = np.concatenate([[0], ends + 1]).astype(np.int64)
    stops = np.concatenate([ends, [len(data)]]).astype(np.int64)
    empty = stops <= starts
    returns = np.flatnonzero(stops == starts + 1)
    empty[returns] = [data[s : s + 1] == b"\r" for s in starts[returns]]
    return starts[~empty]


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
