"""Cache the routing tables of a remote store in each process that runs tasks.

*Correct output.* `at(batch)` is the table that the batch is routed by, as `RoutingTables.at` says.

*Invariants.* A table holds from a batch on that is more than `AHEAD` batches after the last one
that had begun when the table was added; `QueryReports.next_free` sees to that. So a process that
lists the tables in batch b has seen all that hold up to batch b + AHEAD: one added later holds
later. Tables never change while a query runs, so each is read once.

*Cost.* One listing in AHEAD + 1 batches for each Python worker, and one read for each new table.

*A store that is away.* Rows cannot be routed without the table. So the task waits for the store as
long as Spark's own client would, and then fails. The checkpoint is in the same store: Spark itself
cannot log a batch while it is away, nor commit its state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from plait.errors import CheckpointDamaged, StorageError
from plait.groups.routing.table import Table
from plait.machine.stores import problem
from plait.spark.control.routing_tables import RoutingTables

AHEAD = 8
"""Batches for which a listing is good, beyond the one in which it was made."""
_PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds after which a store that did not answer is asked again."""

Answer = TypeVar("Answer")


@dataclass(slots=True)
class CachedTables:
    """The tables of a store that a process has read."""

    tables: RoutingTables
    # Assumption: tables-come-late
    ahead: int = AHEAD
    pauses: Sequence[float] = _PAUSES
    _seen: dict[int, Table] = field(default_factory=dict)
    _through: int = -1
    """The last batch whose table is known."""

    def at(self, batch: int) -> Table | None:
        """The table that a batch is routed by; None is the one that the checkpoint began with."""
        if batch > self._through:
            numbers = self._retried(self.tables.numbers)
            # Those before the newest that holds are of the past.
            self._seen = {n: t for n, t in self._seen.items() if n in numbers}
            for number in numbers:
                if self.numbered(number).since <= batch:
                    break
            self._through = batch + self.ahead
        holding = [t for t in self._seen.values() if t.since <= batch]
        return max(holding, key=lambda table: table.number, default=None)

    def numbered(self, number: int) -> Table:
        """The table of this number."""
        if number not in self._seen:
            self._seen[number] = self._retried(lambda: self.tables.numbered(number))
        return self._seen[number]

    def _retried(self, request: Callable[[], Answer]) -> Answer:
        for pause in self.pauses:
            try:
                return request()
            except (OSError, CheckpointDamaged) as error:
                if isinstance(error, CheckpointDamaged) and not isinstance(
                    error.__cause__, OSError
                ):
                    raise  # it was read, and is damaged
                time.sleep(pause)
        try:
            return request()
        except OSError as error:
            raise StorageError(
                f"the routing tables in {self.tables.store.root} cannot be read: {problem(error)}",
                remedy="the batch is repeated when the store answers again",
            ) from error
