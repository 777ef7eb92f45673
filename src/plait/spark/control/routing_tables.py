"""Store routing tables, and partition groups on their way, in the control directory.

    tables/000001.json        a routing table, immutable, with the batch from which it holds
    transfer/3-0-2            what processor 0 exported for move 3 in the third batch of the move

A plan that cannot be read is skipped, because results do not depend on plans. A table may not be
skipped: then tasks would disagree about where rows go. So one that cannot be read ends the batch,
by name. Whoever adds a table adds the next number, for a batch that has not begun; files appear
whole and never change.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import dropwhile, islice

from plait.errors import CheckpointDamaged, PlaitError, StorageError, TableTaken, TransferDamaged
from plait.groups.routing.table import Table
from plait.machine.sealed import sealed, unsealed
from plait.machine.stores import FileStore, problem

_NAME = re.compile(r"([0-9]{6})\.json")
_TRANSFER = re.compile(r"([0-9]+)-([0-9]+)-([0-9]+)")
_PUT_BACK = "put the folder plait/ of the checkpoint back as it was"


@dataclass(frozen=True, slots=True)
class RoutingTables:
    """The tables in a store."""

    store: FileStore

    def at(self, batch: int) -> Table | None:
        """The table that a batch is routed by; None is the one that the checkpoint began with."""
        for number in self.numbers():
            table = self.numbered(number)
            if table.since <= batch:
                return table
        return None

    def newest(self) -> Table | None:
        """The table that was added last."""
        return next((self.numbered(number) for number in self.numbers()), None)

    def numbers(self) -> list[int]:
        """The numbers of all tables, the newest first."""
        found = map(_NAME.fullmatch, self.store.names(files=False))
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def numbered(self, number: int) -> Table:
        """The table of this number."""
        place = f"{self.store.root}/{_file(number)}"
        try:
            table = Table.from_dict(unsealed(self.store.read(_file(number)).decode("utf-8")))
        except (OSError, ValueError, PlaitError) as error:
            raise CheckpointDamaged(
                f"the routing table {place} cannot be read: {str(error).partition(';')[0]}",
                remedy=_PUT_BACK,
            ) from error
        if table.number != number:
            raise CheckpointDamaged(
                f"the routing table {place} is a copy of table {table.number}", remedy=_PUT_BACK
            )
        return table

    def forget(self, batch: int) -> None:
        """Remove the tables that no batch from this one on goes by."""
        numbers = dropwhile(lambda number: self.numbered(number).since > batch, self.numbers())
        for number in islice(numbers, 1, None):
            self.store.delete(_file(number))

    def add(self, table: Table) -> None:
        """Add the next table, or TableTaken if somebody else has."""
        try:
            follows = table.number == next(iter(self.numbers()), 0) + 1
            added = follows and self.store.create(_file(table.number), _raw(table))
        except OSError as error:
            raise StorageError(
                f"the routing table could not be written to {self.store.root}: {problem(error)}",
                remedy="make room, or make the folder writable, and decide again",
            ) from error
        if not added:
            raise TableTaken(
                f"there is a routing table {table.number} already",
                remedy="let one manager alone move the groups of a query",
            )


def _file(number: int) -> str:
    return f"{number:06}.json"


def _raw(table: Table) -> bytes:
    return sealed(table.to_dict()).encode()


@dataclass(frozen=True, slots=True)
class TransferFiles:
    """Partition groups on their way, in a store that sender and receiver reach."""

    store: FileStore

    def write(self, move: int, sender: int, number: int, raw: bytes) -> None:
        """Write one, whole or not at all."""
        self.store.write(f"{move}-{sender}-{number}", raw, durable=True)

    def numbers(self, move: int, sender: int) -> list[int]:
        """The numbers of the files of a move that a sender has written."""
        found = (tuple(map(int, match.groups())) for match in self._matches())
        return [number for of, by, number in found if (of, by) == (move, sender)]

    def read(self, move: int, sender: int, number: int) -> bytes:
        """Read one; TransferDamaged if that fails."""
        name = f"{move}-{sender}-{number}"
        try:
            return self.store.read(name, None)
        except OSError as error:
            raise TransferDamaged(
                f"{self.store.root}/{name} cannot be read: {problem(error)}", remedy=_PUT_BACK
            ) from error

    def keep_only(self, moves: Collection[int]) -> None:
        """Remove what was exported for all other moves."""
        for match in self._matches():
            if int(match[1]) not in moves:
                self.store.delete(match[0])

    def _matches(self) -> list[re.Match[str]]:
        found = map(_TRANSFER.fullmatch, self.store.names(files=False))
        return [match for match in found if match]
