"""Routing tables and groups on their way, in the control directory.

    tables/000001.json        a routing table, immutable, with the batch from which it holds
    transfer/3-0-17           what processor 0 exported in batch 17 for move 3

A plan that cannot be read is skipped, because results do not depend on plans. A table may not be
skipped: then tasks would disagree about where rows go. So one that cannot be read ends the batch,
by name. Whoever adds a table adds the next number, for a batch that has not begun; files appear
whole and never change.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import dropwhile, islice, takewhile
from pathlib import Path

from plait.errors import CheckpointDamaged, PlaitError, StorageError, TableTaken, TransferDamaged
from plait.node.sealed import sealed, unsealed
from plait.route.table import Table

_NAME = re.compile(r"([0-9]{6})\.json")
_TRANSFER = re.compile(r"([0-9]+)-([0-9]+)-([0-9]+)")
_PUT_BACK = "put the folder plait/ of the checkpoint back as it was"


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables in a folder, which need not be there."""

    folder: Path

    def at(self, batch: int) -> Table | None:
        """The table that a batch is routed by; None is the one that the checkpoint began with."""
        for number in self._numbers():
            table = self._read(number)
            if table.since <= batch:
                return table
        return None

    def numbered(self, number: int) -> Table:
        """The table of this number."""
        return self._read(number)

    def newest(self) -> Table | None:
        """The last one that was added."""
        return next((self._read(number) for number in self._numbers()), None)

    def forget(self, batch: int) -> None:
        """Remove the tables that no batch from this one on goes by."""
        numbers = dropwhile(lambda number: self._read(number).since > batch, self._numbers())
        for number in islice(numbers, 1, None):
            self._path(number).unlink(missing_ok=True)

    def delay(self, batch: int) -> None:
        """Let the tables of this batch and of later ones hold from one batch later on.

        No batch may have begun that goes by them. The last one is written first, so that their
        batches ascend whenever this ends.
        """
        tables = (self._read(number) for number in self._numbers())
        for table in takewhile(lambda table: table.since >= batch, tables):
            new = self._new(replace(table, since=table.since + 1))
            new.replace(self._path(table.number))

    def add(self, table: Table) -> None:
        """Add the next table, or TableTaken if somebody else has."""
        new = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if table.number != next(iter(self._numbers()), 0) + 1:
                raise FileExistsError
            new = self._new(table)
            os.link(new, self._path(table.number))
        except FileExistsError:
            raise TableTaken(
                f"there is a routing table {table.number} already",
                remedy="let one manager alone move the groups of a query",
            ) from None
        except OSError as error:
            raise StorageError(
                f"the routing table could not be written to {self.folder}: {error.strerror}",
                remedy="make room, or make the folder writable, and decide again",
            ) from error
        finally:
            if new is not None:
                new.unlink(missing_ok=True)

    def _new(self, table: Table) -> Path:
        """A file with a table, under a name that nobody reads."""
        new = self.folder / f"new-{os.getpid()}-{os.urandom(4).hex()}"
        with new.open("x", encoding="utf-8") as file:
            file.write(sealed(table.to_dict()))
            file.flush()
            os.fsync(file.fileno())
        return new

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.json"

    def _numbers(self) -> list[int]:
        """The newest first."""
        try:
            found = [_NAME.fullmatch(name) for name in os.listdir(self.folder)]
        except FileNotFoundError:
            return []
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def _read(self, number: int) -> Table:
        path = self._path(number)
        try:
            table = Table.from_dict(unsealed(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, PlaitError) as error:
            raise CheckpointDamaged(
                f"the routing table {path} cannot be read: {str(error).partition(';')[0]}",
                remedy=_PUT_BACK,
            ) from error
        if table.number != number:
            raise CheckpointDamaged(
                f"the routing table {path} is a copy of table {table.number}", remedy=_PUT_BACK
            )
        return table


@dataclass(frozen=True, slots=True)
class FolderTransfers:
    """Partition groups on their way, in a folder that sender and receiver reach."""

    folder: Path

    def write(self, move: int, sender: int, batch: int, raw: bytes) -> None:
        """Write one, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / f"new-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            with new.open("xb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path(move, sender, batch))
        finally:
            new.unlink(missing_ok=True)

    def batches(self, move: int, sender: int) -> list[int]:
        """The batches of which there is one."""
        try:
            found = [_TRANSFER.fullmatch(name) for name in os.listdir(self.folder)]
        except FileNotFoundError:
            return []
        return [
            int(match[3])
            for match in found
            if match and (int(match[1]), int(match[2])) == (move, sender)
        ]

    def read(self, move: int, sender: int, batch: int) -> bytes:
        """One of them, or TransferDamaged."""
        path = self._path(move, sender, batch)
        try:
            return path.read_bytes()
        except OSError as error:
            raise TransferDamaged(
                f"{path} cannot be read: {error.strerror}", remedy=_PUT_BACK
            ) from error

    def keep_only(self, moves: Collection[int]) -> None:
        """Remove what was exported for all other moves."""
        if self.folder.is_dir():
            for name in os.listdir(self.folder):
                if (match := _TRANSFER.fullmatch(name)) and int(match[1]) not in moves:
                    (self.folder / name).unlink(missing_ok=True)

    def _path(self, move: int, sender: int, batch: int) -> Path:
        return self.folder / f"{move}-{sender}-{batch}"
