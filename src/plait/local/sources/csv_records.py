"""Cut CSV files into blocks of whole records.

*Definition.* A record is what Python's csv module reads in strict mode. A quotation mark at the
beginning of a field opens it; within such a field a mark is written twice, delimiters and line
ends are text, and the closing mark is followed by a delimiter or the end of the record. A mark
elsewhere is text. A record ends with a newline, a carriage return, or both. Where quoting breaks
(text after a closing mark, or a mark that is not closed before the file ends), the line on which
the record began is malformed, and reading goes on with the next line.

*Invariants.* Every block ends with a record; a line that is malformed is a block of its own. The
scan keeps its state between pieces of the file, so the blocks do not depend on what a piece looks
like: only on where records end.

*Cost.* Linear. A record whose quoting breaks is scanned up to the next odd run of marks, and the
lines in between, which are scanned again, cannot open a field that goes further.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from plait.kernels.jit import Ints
from plait.local.sources.scan import (
    BROKEN,
    FIELD,
    PLAIN,
    QUOTED,
    RECORD,
    RETURN,
    records_of,
    scan,
)
from plait.local.sources.text import (
    BLOCK_BYTES,
    BYTE_ORDER_MARK,
    MAX_RECORD_BYTES,
    Block,
    pieces,
    too_long,
)

NOT_CLOSED = "a quotation mark is not closed"
NOT_AT_END = "text follows a closing quotation mark"


def read_records(
    path: Path,
    delimiter: str,
    *,
    block_bytes: int = BLOCK_BYTES,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[Block]:
    """The file in blocks that end with a record, and its malformed lines."""
    cutter = _Cutter(path, ord(delimiter), block_bytes, max_record_bytes)
    for data in pieces(path, block_bytes):
        yield from cutter.feed(data)
    yield from cutter.finish()


class _Cutter:
    """What was read but not yet handed out, and the state of the scan at its end."""

    def __init__(self, path: Path, delimiter: int, block_bytes: int, max_record_bytes: int) -> None:
        self._path = path
        self._delimiter = delimiter
        self._block_bytes = block_bytes
        self._max = max_record_bytes
        self._rest = bytearray()
        self._scanned = 0
        self._state = RECORD
        self._line = 1
        self._end = 0
        self._marked = False
        self._ended = False

    def feed(self, data: bytes) -> Iterator[Block]:
        """The blocks that end within this piece."""
        self._rest += data
        if not self._marked and self._end == 0:
            if len(self._rest) < 3 and BYTE_ORDER_MARK.startswith(self._rest):
                return
            self._skip_mark()
        yield from self._blocks()
        if len(self._rest) > self._max:
            why = f", in quotation marks: {NOT_CLOSED}" if self._state == QUOTED else ""
            raise too_long(self._path, self._line, self._max, why)

    def finish(self) -> Iterator[Block]:
        """The blocks up to the end of the file."""
        self._ended = True
        self._skip_mark()
        yield from self._blocks()
        while self._state in {QUOTED, BROKEN}:
            yield self._malformed(self._line_end())
            yield from self._blocks()
        if self._rest:
            yield self._take(len(self._rest))

    def _skip_mark(self) -> None:
        if not self._marked and self._rest.startswith(BYTE_ORDER_MARK):
            del self._rest[:3]
            self._end = 3
        self._marked = True

    def _blocks(self) -> Iterator[Block]:
        while self._state == BROKEN or self._scanned < len(self._rest):
            if self._state == BROKEN:
                if not (end := self._line_end()):
                    return
                yield self._malformed(end)
            elif whole := self._scan():
                yield self._take(whole)

    def _line_end(self) -> int:
        """Where the first line of what is left ends, 0 if it goes on in the next piece."""
        rest = self._rest
        ends = [at for at in (rest.find(b"\n"), rest.find(b"\r")) if at >= 0]
        end = min(ends, default=len(rest)) + 1
        if end >= len(rest) and not self._ended and not rest.endswith(b"\n"):
            return 0
        return end + 1 if rest[end - 1 : end + 1] == b"\r\n" else min(end, len(rest))

    def _scan(self) -> int:
        """Go on with the scan; where the last whole record ends, 0 if none does."""
        rest, before = self._rest, self._scanned
        plain = self._state in {RECORD, FIELD, PLAIN} and rest.find(b'"', before) < 0
        if plain and len(rest) - before <= self._block_bytes:
            # Any line end ends a record, and the last byte tells the state.
            self._scanned = len(rest)
            self._state = {10: RECORD, 13: RETURN, self._delimiter: FIELD}.get(rest[-1], PLAIN)
            # A return at the very end may be followed by its newline.
            return max(rest.rfind(b"\n", before), rest.rfind(b"\r", before, -1)) + 1
        with memoryview(rest) as view:
            marks = np.frombuffer(view, np.uint8)[before:]
            self._state, whole, stop = scan(marks, self._state, self._delimiter, self._block_bytes)
            del marks
        self._scanned += stop
        return before + whole if whole >= 0 else 0

    def _take(self, size: int, fault: str = "") -> Block:
        data = bytes(memoryview(self._rest)[:size])
        del self._rest[:size]
        self._scanned = max(self._scanned - size, 0)
        self._end += size
        block = Block(data, self._line, self._end, fault)
        self._line += line_ends(data)
        return block

    def _malformed(self, line_end: int) -> Block:
        """The first line of what is left; the scan begins again behind it."""
        same_line = self._state == BROKEN and self._scanned < line_end
        block = self._take(line_end, NOT_AT_END if same_line else NOT_CLOSED)
        self._scanned, self._state = 0, RECORD
        return block


def records(data: bytes, delimiter: str = ",") -> tuple[Ints, Ints]:
    """Where each record begins that is not empty, and how many fields it has; whole records only.

    >>> starts, fields = records(b'a,b\\n\\n"b\\nc"\\r\\nd')
    >>> starts.tolist(), fields.tolist()
    ([0, 5, 12], [2, 1, 1])
    """
    return records_of(np.frombuffer(data, np.uint8), ord(delimiter), line_ends(data) + 1)


def line_ends(data: bytes) -> int:
    """The number of line ends: newlines, carriage returns, or both together.

    >>> line_ends(b"a\\nb\\rc\\r\\nd")
    3
    """
    marks = np.frombuffer(data, np.uint8)
    newlines = marks == 10
    ends = np.count_nonzero(newlines)
    if b"\r" in data:
        returns = marks == 13
        ends += np.count_nonzero(returns) - np.count_nonzero(returns[:-1] & newlines[1:])
    return int(ends)
