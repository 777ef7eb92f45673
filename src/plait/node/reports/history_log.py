"""The log of batches that have ended (`plait.node.reports.history`): one line of JSON for each.

One process writes it, any number may read it meanwhile. A line that a crash cut off is left out,
and the next one begins on a line of its own. When there are too many lines, the log is written
anew under another name and takes the place of the old one; a reader notices that by its identity.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from plait.errors import SourceError
from plait.machine.regular import append_below, open_below
from plait.machine.stores import LocalStore
from plait.node.reports.history import HistoryEntry, thinned

_MOST = 64 << 20
"""Bytes of a log that are read, from its end; one that is thinned has fewer."""


class HistoryWriter:
    """The end of a log at which lines are added; `most` is how many it may have."""

    def __init__(self, path: Path, most: int = 20_000) -> None:
        self._path = path
        self._most = most
        lines = HistoryReader(path).read()
        self._count = len(lines)
        self.last = max((line.last for line in lines), default=-1)
        """The last batch in the log, -1 if there is none."""

    def add(self, lines: Sequence[HistoryEntry]) -> None:
        """Add lines; all of them or, if that fails, none."""
        if not lines:
            return
        append_below(self._path.parent, self._path.name, "".join(map(_text, lines)).encode())
        self._count += len(lines)
        self.last = lines[-1].last
        if self._count > self._most:
            self._thin()

    def _thin(self) -> None:
        kept = thinned(HistoryReader(self._path).read())
        raw = "".join(map(_text, kept)).encode()
        LocalStore(self._path.parent).write(self._path.name, raw)
        self._count = len(kept)


@dataclass(slots=True)
class HistoryReader:
    """Reads a log that grows, each line once."""

    path: Path
    _file: tuple[int, int] = (0, 0)
    _end: int = 0
    _lines: list[HistoryEntry] = field(default_factory=list)
    trouble: str = ""
    """Why the log could not be read the last time, if it could not."""
    skipped: int = 0
    """Lines that are none of a history."""
    _why: str = ""
    """What is wrong with the last of them."""

    def read(self) -> list[HistoryEntry]:
        """All whole lines so far, in the order of their batches."""
        try:
            with self._opened() as log:
                found = os.fstat(log.fileno())
                same = (found.st_dev, found.st_ino) == self._file and found.st_size >= self._end
                if not same:
                    self._file, self._end = (found.st_dev, found.st_ino), 0
                    self._lines, self.skipped = [], 0
                begin = max(self._end, found.st_size - _MOST)
                log.seek(begin)
                new = log.read(_MOST)
        except FileNotFoundError:
            return self._lines
        except OSError as error:
            self.trouble = error.strerror or str(error)
            return self._lines
        self.trouble = ""
        self._end = begin + new.rfind(b"\n") + 1
        for past in self._pasts(new[: self._end - begin]):
            if not self._lines or past.first > self._lines[-1].last:
                self._lines.append(past)
        return self._lines

    def tail(self, most: int) -> list[HistoryEntry] | None:
        """The lines that lie wholly in the last so many bytes; None if that is the whole log."""
        try:
            with self._opened() as log:
                end = log.seek(0, os.SEEK_END)
                if end <= most:
                    return None
                log.seek(end - most)
                log.readline()  # the rest of a line
                text = log.read(most)
        except OSError:
            return None
        return list(self._pasts(text[: text.rfind(b"\n") + 1]))

    @property
    def notes(self) -> list[str]:
        """What could not be read."""
        lines = "line is" if self.skipped == 1 else "lines are"
        return [
            *([f"the history {self.path} cannot be read: {self.trouble}"] if self.trouble else ()),
            *(
                [f"{self.skipped:,} {lines} skipped in {self.path}: {self._why}"]
                * bool(self.skipped)
            ),
        ]

    def _opened(self) -> IO[bytes]:
        return open(open_below(self.path.parent, self.path.name), "rb")

    def _pasts(self, text: bytes) -> Iterator[HistoryEntry]:
        """The lines of a log; what is none is left out and counted."""
        lines = text.splitlines()
        try:
            # At once, which is far quicker; if one of them is no JSON, one by one.
            given = json.loads(b"[" + b",".join(lines) + b"]")
            whole = len(given) == len(lines)
        except (ValueError, RecursionError):
            whole = False
        for line in given if whole else map(_plain, lines):
            try:
                yield HistoryEntry.from_dict(line)
            except SourceError as error:
                self.skipped, self._why = self.skipped + 1, error.message


def _text(past: HistoryEntry) -> str:
    return json.dumps(past.to_dict(), separators=(",", ":")) + "\n"


def _plain(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
