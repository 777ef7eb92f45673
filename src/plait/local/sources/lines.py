"""Divide a block of JSON lines, and find lines that need not be parsed.

*Cost.* All of it is a few passes over the bytes, vectorised. The depth of a line is at most the
number of brackets that it opens. Where every line begins with one, no line opens more than those of
the block that are not the first of theirs, and one: in files of flat objects that settles it. Only
lines that open more brackets than there may be levels are walked through.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plait.kernels.jit import Ints
from plait.local.sources.scan import depth

MAX_DEPTH = 128
"""Levels of nesting by default: more than data has, far fewer than a stack holds."""

_SPACES = b" \t\r"
_TRIMS = 4
"""Blanks at the ends of lines that are taken off for all lines at once."""


class Lines:
    """The lines that are not blank, without the blanks around them.

    >>> lines = Lines(b'{"x": 1} \\n\\n [2]\\n')
    >>> list(lines), lines.numbers.tolist()
    ([b'{"x": 1}', b'[2]'], [0, 2])
    >>> lines.sound(), lines.fault(0)
    (False, '')
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._bytes = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(self._bytes == ord("\n"))
        self._starts = np.concatenate([[0], ends + 1])
        self._ends = np.concatenate([ends, [len(data)]])
        self._trim()
        full = self._ends > self._starts
        self.numbers = np.flatnonzero(full)
        """The line of the block, from 0, for each line that is not blank."""
        self._starts, self._ends = self._starts[full], self._ends[full]

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, n: int) -> bytes:
        return self.data[self._starts[n] : self._ends[n]]

    def __iter__(self) -> Iterator[bytes]:
        for start, end in zip(self._starts.tolist(), self._ends.tolist(), strict=True):
            yield self.data[start:end]

    def sound(self, max_depth: int = MAX_DEPTH) -> bool:
        """Whether each line is text that begins and ends like an object, and none is too deep."""
        first, last = self._bytes[self._starts], self._bytes[self._ends - 1]
        if not ((first == ord("{")).all() and (last == ord("}")).all()):
            return False
        return _is_text(self.data) and not len(self._too_deep(max_depth))

    def fault(self, n: int, max_depth: int = MAX_DEPTH) -> str:
        """The reason why a line cannot be an object; empty if it may be one."""
        line = self[n]
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            return f"no text in UTF-8: {error.reason} at byte {error.start + 1}"
        opened = line.count(b"{") + line.count(b"[")
        if opened > max_depth and depth(np.frombuffer(line, np.uint8)) > max_depth:
            return f"nested deeper than {max_depth} levels"
        return ""

    def _trim(self) -> None:
        """Move starts and ends inwards over blanks."""
        for sign, at in ((1, self._starts), (-1, self._ends)):
            left = np.flatnonzero(self._ends > self._starts)
            for _ in range(_TRIMS):
                marks = self._bytes[at[left] - (sign < 0)]
                blank = (marks == 32) | (marks == 9) | (marks == 13)
                left = left[blank]
                at[left] += sign
                left = left[self._ends[left] > self._starts[left]]
                if not len(left):
                    break
            for n in left.tolist():
                line = self.data[self._starts[n] : self._ends[n]]
                kept = line.lstrip(_SPACES) if sign > 0 else line.rstrip(_SPACES)
                at[n] += sign * (len(line) - len(kept))

    def _too_deep(self, max_depth: int) -> Ints:
        opening = (self._bytes == ord("{")) | (self._bytes == ord("["))
        if np.count_nonzero(opening) - (len(self) - 1) <= max_depth:
            return np.empty(0, np.int64)
        places = np.flatnonzero(opening)
        opened = np.searchsorted(places, self._ends) - np.searchsorted(places, self._starts)
        deep = [
            n
            for n in np.flatnonzero(opened > max_depth).tolist()
            if depth(self._bytes[self._starts[n] : self._ends[n]]) > max_depth
        ]
        return np.array(deep, np.int64)


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
