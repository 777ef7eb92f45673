"""A stop at each kind of write to a checkpoint, by Python or by Spark's repartition."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.query import StreamingCheckpointManager

_FILES = {"os.rename": 1, "os.link": 1, "os.remove": 0}
"""What makes a file appear, change or vanish, and which of its arguments is the file's name."""
_ARMED: list[Interruption] = []


class Interrupted(BaseException):
    """The process would be dead now."""


class Interruption:
    """Stops the writer of a checkpoint at the first instant that none before has stopped at."""

    def __init__(self, checkpoint: Path, before: Collection[str]) -> None:
        self._checkpoint = str(checkpoint.resolve())
        self._thread = threading.get_ident()
        self._before = before
        self.at = ""
        """Before or after what it stopped; empty if it did not."""

    def reach(self, name: str) -> None:
        """Stop here, if this is the instant."""
        name = re.sub("[0-9]+", "N", name)
        if name not in self._before:
            self.at = name
            raise Interrupted(name)

    def wrote(self, event: str, given: tuple[Any, ...]) -> None:
        """Count a write of Python's, before it happens."""
        path = Path(str(given[_FILES[event]]))
        if threading.get_ident() != self._thread or path.name.startswith("."):
            return
        if str(path).startswith(self._checkpoint):
            self.reach(f"before {event} of {path.name}")

    def divide(self, manager: StreamingCheckpointManager, place: str, partitions: int) -> None:
        """Spark's, with instants before it, before it commits, and after it."""
        self.reach("before the state is divided")
        _repartition(manager, place, partitions)
        commits = Path(place, "commits")
        newest = str(max(int(p.name) for p in commits.iterdir() if p.name.isdecimal()))
        try:
            self.reach(f"before commit {newest}")
        except Interrupted:
            for name in (newest, f".{newest}.crc"):  # the last thing that Spark writes
                (commits / name).unlink(missing_ok=True)
            raise
        self.reach(f"after commit {newest}")


_repartition = StreamingCheckpointManager.repartition


@contextmanager
def interrupted(checkpoint: Path, before: Collection[str]) -> Iterator[Interruption]:
    """Stop whoever writes meanwhile, at an instant that is not one of those before."""
    found = Interruption(checkpoint, before)

    def divide(manager: StreamingCheckpointManager, place: str, partitions: int) -> None:
        found.divide(manager, place, partitions)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamingCheckpointManager, "repartition", divide)
        _ARMED.append(found)
        try:
            yield found
        except Interrupted:
            pass
        finally:
            _ARMED.clear()


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if _ARMED and event in _FILES and not _ARMED[0].at:
        _ARMED[0].wrote(event, given)


sys.addaudithook(_hook)
