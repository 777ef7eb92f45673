"""The folder `epochs/` of a control directory: what the driver has decided, one file per epoch.

Files appear whole and never change: one is written under another name, synced, and then linked to
its own, which fails if somebody else was faster. Everything else in the folder is not ours: backups
of editors, checksums of Hadoop, directories and links are not looked at. A file that has the name
of an epoch and cannot be read as one is skipped, and whoever looks is told; the query goes on with
the newest epoch that can be read. That is sound because results do not depend on plans.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plait.errors import PlaitError, StorageError
from plait.node.epochs import Epoch
from plait.node.sealed import unsealed
from plait.plan.jtree import Node
from plait.plan.migration import Strategy
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class Decisions:
    """The epochs in a folder, which need not be there."""

    folder: Path

    def look(self, query: Query) -> tuple[Epoch | None, list[str]]:
        """The newest epoch that can be read, and what is wrong with those that are newer."""
        skipped: list[str] = []
        try:
            numbers = self._numbers(files=True)
        except OSError as error:
            return None, [f"the decisions in {self.folder} cannot be listed: {error.strerror}"]
        for number in numbers:
            path = self._path(number)
            try:
                epoch = Epoch.from_json(path.read_text(encoding="utf-8"), query)
            except (OSError, ValueError, PlaitError) as error:
                skipped.append(f"the decision {path} was skipped: {reason_of(error)}")
                continue
            if epoch.number == number:
                return epoch, skipped
            skipped.append(f"the decision {path} was skipped: it is a copy of {epoch.number}")
        return None, skipped

    def skipped(self, query: Query, epoch: Epoch | None) -> list[str]:
        """What is wrong with those that are newer than the one to follow; usually there are none.

        One look at the names is enough to know that there are none.
        """
        try:
            newest = next(iter(self._numbers(files=True)), 0)
        except OSError:
            return self.look(query)[1]
        return [] if newest <= (0 if epoch is None else epoch.number) else self.look(query)[1]

    def add(self, plan: Node | None, strategy: Strategy | Literal["auto"], after: int = 0) -> Epoch:
        """Add an epoch; whoever comes second with the same number takes the next one.

        Its number is also greater than `after`: what processors have followed elsewhere. They do
        not need that, but people compare numbers.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            while True:
                newest = next(iter(self._numbers(files=False)), 0)
                epoch = Epoch(max(newest, after) + 1, plan, strategy, self._origin())
                if self._create(epoch):
                    return epoch
        except OSError as error:
            raise StorageError(
                f"the decision could not be written to {self.folder}: {error.strerror}",
                remedy="make room, or make the folder writable, and decide again",
            ) from error

    def _create(self, epoch: Epoch) -> bool:
        """Write an epoch; false if there is one of its number."""
        new = self.folder / f"new-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            with new.open("x", encoding="utf-8") as file:
                file.write(epoch.to_json())
                file.flush()
                os.fsync(file.fileno())
            os.link(new, self._path(epoch.number))
        except FileExistsError:
            return False
        finally:
            new.unlink(missing_ok=True)
        return True

    def _numbers(self, *, files: bool) -> list[int]:
        """The numbers in names of epochs, the newest first; with `files`, of real ones only."""
        try:
            with os.scandir(self.folder) as entries:
                found = [
                    number
                    for entry in entries
                    if (number := _number(entry.name))
                    and (not files or entry.is_file(follow_symlinks=False))
                ]
        except FileNotFoundError:
            return []
        return sorted(found, reverse=True)

    def _origin(self) -> str:
        """The name of this folder's numbers, a new one if the newest epoch does not tell."""
        for number in self._numbers(files=True)[:1]:
            try:
                found = unsealed(self._path(number).read_text(encoding="utf-8")).get("origin")
            except (OSError, ValueError, PlaitError):
                break
            if isinstance(found, str) and found:
                return found
        return os.urandom(8).hex()

    def _path(self, number: int) -> Path:
        return self.folder / _name(number)


def _name(number: int) -> str:
    return f"{number:06}.json"


def _number(name: str) -> int:
    """The number that a file's name tells, 0 if it is no name of an epoch."""
    stem = name.removesuffix(".json")
    return int(stem) if re.fullmatch("[0-9]+", stem) and _name(int(stem)) == name else 0


def reason_of(error: Exception) -> str:
    """Why a file could not be read, in a few words."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "it is no text" if isinstance(error, UnicodeDecodeError) else str(error)
