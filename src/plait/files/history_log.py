"""The log of batches that have ended (`plait.node.history`): one line of JSON for each.

One process writes it, any number may read it meanwhile. A line that a crash cut off is left out,
and the next one begins on a line of its own. When there are too many lines, the log is written
anew under another name and takes the place of the old one; a reader notices that by its identity.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from plait.errors import SourceError
from plait.node.history import Past, thinned


class HistoryWriter:
    """The end of a log at which lines are added; `most` is how many it may have."""

    def __init__(self, path: Path, most: int = 20_000) -> None:
        self._path = path
        self._most = most
        lines = HistoryReader(path).read()
        self._count = len(lines)
        self.last = max((line.last for line in lines), default=-1)
        """The last batch in the log, -1 if there is none."""

    def add(self, lines: Sequence[Past]) -> None:
        """Add lines; all of them or, if that fails, perhaps a part of the last one."""
        if not lines:
            return
        with self._path.open("a+b") as log:
            end = log.seek(0, os.SEEK_END)
            if end:
                log.seek(end - 1)
            whole = not end or log.read(1) == b"\n"
            log.write(b"" if whole else b"\n")
            log.write("".join(map(_text, lines)).encode())
        self._count += len(lines)
        self.last = lines[-1].last
        if self._count > self._most:
            self._thin()

    def _thin(self) -> None:
        kept = thinned(HistoryReader(self._path).read())
        new = self._path.with_name(f"new-history-{os.getpid()}")
        try:
            new.write_text("".join(map(_text, kept)), encoding="utf-8")
            new.replace(self._path)
        finally:
            new.unlink(missing_ok=True)
        self._count = len(kept)


@dataclass(slots=True)
class HistoryReader:
    """Reads a log that grows, each line once."""

    path: Path
    _file: tuple[int, int] = (0, 0)
    _end: int = 0
    _lines: list[Past] = field(default_factory=list)

    def read(self) -> list[Past]:
        """All whole lines so far, in the order of their batches."""
        try:
            with self.path.open("rb") as log:
                found = os.fstat(log.fileno())
                same = (found.st_dev, found.st_ino) == self._file and found.st_size >= self._end
                if not same:
                    self._file, self._end = (found.st_dev, found.st_ino), 0
                    self._lines = []
                log.seek(self._end)
                new = log.read()
        except OSError:
            return self._lines
        whole = new[: new.rfind(b"\n") + 1]
        self._end += len(whole)
        for past in _pasts(whole):
            if not self._lines or past.first > self._lines[-1].last:
                self._lines.append(past)
        return self._lines

    def tail(self, most: int) -> list[Past] | None:
        """The lines that lie wholly in the last so many bytes; None if that is the whole log."""
        try:
            with self.path.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                if end <= most:
                    return None
                log.seek(end - most)
                log.readline()  # the rest of a line
                text = log.read()
        except OSError:
            return None
        return list(_pasts(text[: text.rfind(b"\n") + 1]))


def _text(past: Past) -> str:
    return json.dumps(past.to_dict(), separators=(",", ":")) + "\n"


def _pasts(text: bytes) -> Iterator[Past]:
    """The lines of a log; what is none is left out."""
    lines = text.splitlines()
    try:
        # At once, which is far quicker; if one of them is no JSON, one by one.
        given = json.loads(b"[" + b",".join(lines) + b"]")
        whole = len(given) == len(lines)
    except (ValueError, RecursionError):
        whole = False
    for line in given if whole else map(_plain, lines):
        with suppress(SourceError):
            if isinstance(line, dict):
                yield Past.from_dict(line)


def _plain(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
