"""Store the driver's decisions in the control directory, one file per epoch.

Files appear whole and never change (`plait.machine.stores`). Other files are ignored: backups of
editors, checksums of Hadoop, directories and links. A file with the name of an epoch that cannot
be read as one is skipped and reported; the query goes on with the newest epoch that can be read.
That is sound because results do not depend on plans.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from plait.errors import PlaitError, StorageError
from plait.machine.sealed import unsealed
from plait.machine.stores import FileStore, RemoteStore, problem
from plait.node.epochs import Epoch
from plait.plan.jtree import Node
from plait.plan.migration import Strategy
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class EpochFiles:
    """The epochs in a folder, which need not exist."""

    store: FileStore

    def newest(self, query: Query) -> tuple[Epoch | None, list[str]]:
        """The newest epoch that can be read, and what is wrong with those that are newer."""
        skipped: list[str] = []
        try:
            found = self._numbers()
        except OSError as error:
            return None, [f"the decisions in {self.store.root} cannot be listed: {problem(error)}"]
        for number, when in found.items():
            path = f"{self.store.root}/{_name(number)}"
            try:
                epoch = Epoch.from_json(self._read(number, when), query)
            except (OSError, ValueError, PlaitError) as error:
                skipped.append(f"the decision {path} was skipped: {reason_of(error)}")
                continue
            if epoch.number == number:
                return epoch, skipped
            skipped.append(f"the decision {path} was skipped: it is a copy of {epoch.number}")
        return None, skipped

    def add(self, plan: Node | None, strategy: Strategy | Literal["auto"], after: int = 0) -> Epoch:
        """Add an epoch; of two writers with the same number, the second takes the next one.

        Its number is also greater than `after`, the greatest that processors have followed. They
        do not need that, but people compare numbers.
        """
        try:
            while True:
                newest = next(iter(self._numbers(files=False)), 0)
                epoch = Epoch(max(newest, after) + 1, plan, strategy, self._origin())
                if self.store.create(_name(epoch.number), epoch.to_json().encode()):
                    return epoch
        except OSError as error:
            raise StorageError(
                f"the decision could not be written to {self.store.root}: {problem(error)}",
                remedy="make room, or make the folder writable, and decide again",
            ) from error

    def _numbers(self, *, files: bool = True) -> dict[int, float]:
        """The numbers in names of epochs, the newest first, and when they were written.

        With `files`, of real ones only.
        """
        names = self.store.names(files=files)
        found = {number: when for name, when in names.items() if (number := _number(name))}
        return dict(sorted(found.items(), reverse=True))

    def _origin(self) -> str:
        """The name of this folder's numbers, a new one if the newest epoch does not tell."""
        for number, when in islice(self._numbers().items(), 1):
            try:
                found = unsealed(self._read(number, when)).get("origin")
            except (OSError, ValueError, PlaitError):
                break
            if isinstance(found, str) and found:
                return found
        return os.urandom(8).hex()

    def _read(self, number: int, when: float) -> str:
        """An epoch; from a remote store once, because it never changes."""
        if isinstance(self.store, RemoteStore):
            return _unchanging(self.store, _name(number), when)
        return self.store.read(_name(number)).decode("utf-8")


@lru_cache(maxsize=64)
def _unchanging(store: RemoteStore, path: str, when: float) -> str:
    """A file that was written then; another one of that name, in a new checkpoint, is newer."""
    del when
    return store.read(path).decode("utf-8")


def _name(number: int) -> str:
    return f"{number:06}.json"


def _number(name: str) -> int:
    """The number in a file's name; 0 if it is not the name of an epoch."""
    stem = name.removesuffix(".json")
    return int(stem) if re.fullmatch("[0-9]+", stem) and _name(int(stem)) == name else 0


def reason_of(error: Exception) -> str:
    """Why a file could not be read, in a few words."""
    if isinstance(error, OSError):
        return problem(error)
    return "it is no text" if isinstance(error, UnicodeDecodeError) else str(error)
