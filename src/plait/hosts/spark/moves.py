"""Moves of partition groups in a running query, seen from the driver.

*Correct output.* A move that was begun ends when the protocol allows it, by what processors report:
by PTLB when the sender has nothing old left, by MSLB when every receiver can read what it gets.
If a transfer is damaged before that, the move is given up, and its groups stay where they were.

*Invariants.* A table holds from a batch on that has not begun when the table is there: the batch
after the next one, counted from the last that has ended. Only if the next one ends while the table
is being written can tasks of that batch start without seeing it. Then processors refuse the batch,
and it is repeated by one table when the query is started again.

*Recovery.* Everything is in the control directory: tables say which moves are under way, and
reports how far they are. So a driver that was started again goes on where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from plait.errors import MoveError
from plait.hosts.spark.control import Control, running
from plait.protocol.messages import Move, Protocol
from plait.route.routing import Routing
from plait.route.table import Table

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_RAN = "addBatch"
"""Among Spark's times, the one that only a batch has that was run."""
_AHEAD = 2
"""The next batch may have begun; the one after it has not, before the next one has ended."""


class Moves:
    """The moves of one join; `last_batch` says which batch has ended last, None before the first.

    `query` is the id of the running query.
    """

    def __init__(
        self,
        routing: Routing,
        control: Control,
        query: str,
        last_batch: Callable[[], int | None],
    ) -> None:
        if routing.by is None:
            raise MoveError(
                "the streams of this query share no key, so its groups are cells of a hypercube, "
                "which do not move",
                remedy="join all streams by one key, or start with another number of processors",
            )
        if not control.shared:
            raise MoveError(
                "driver and executors share no control directory, so groups cannot move",
                remedy="tell to_df(checkpoint=...) a folder that both reach",
            )
        self._routing = routing
        self._control = control
        self._query = query
        self._last_batch = last_batch

    @property
    def table(self) -> Table:
        """The newest table."""
        return self._control.tables.newest() or self._routing.table

    def begin(
        self,
        groups: Iterable[int],
        receivers: Iterable[int],
        protocol: Protocol = "MSLB",
        spread: int | None = None,
    ) -> Move:
        """Begin to move groups from where they are; what makes no sense is a MoveError."""
        chosen, table = tuple(groups), self.table
        known = [g for g in chosen if 0 <= g < len(table.places)]
        senders = table.places[known[0]] if known else (0,)
        # The number of the table that begins it: no other move has it.
        move = Move(table.number + 1, protocol, chosen, senders, tuple(receivers), spread)
        processors = self._routing.processors
        self._add(lambda since: table.begin(move, since, processors))
        return move

    def advance(self) -> Table:
        """End the moves that may end, give up those that cannot; the newest table."""
        table, last = self.table, self._last_batch()
        if last is None or last < table.since:
            return table  # its moves have not begun yet
        reports = self._control.reports(self._query, last)
        said = {(a["move"], r.processor, a["what"]) for r in reports for a in r.moves}
        for move in table.under_way:
            if any((move.number, p, "damaged") in said for p in move.receivers):
                return self._add(partial(table.give_up, move.number))
            if self._may_end(move, said):
                return self._add(partial(table.end, move.number))
        if last > table.since:  # the batches that took in what was exported are committed
            self._control.transfers.keep_only({move.number for move in table.under_way})
        return table

    def give_up(self, number: int) -> Table:
        """Give a move up: its groups stay where they were."""
        table = self.table
        return self._add(partial(table.give_up, number))

    def _may_end(self, move: Move, said: set[tuple[int, int, str]]) -> bool:
        if move.protocol == "PTLB":
            return (move.number, move.senders[0], "all old purged") in said
        return all((move.number, p, "received") in said for p in move.receivers)

    def _add(self, changed: Callable[[int], Table]) -> Table:
        """Write the next table."""
        last = self._last_batch()
        table = changed(max((-1 if last is None else last) + _AHEAD, self.table.since + 1))
        self._control.tables.add(table)
        return table


def moves_of(query: StreamingQuery, name: str | None = None) -> Moves:
    """The moves of a join in a running query, by the name that was given to `to_df`."""
    join = running(query, name, "its groups cannot move")

    def last_batch() -> int | None:
        ended = [p["batchId"] for p in query.recentProgress if _RAN in p["durationMs"]]
        return max(map(int, ended), default=None)

    return Moves(join.routing, join.control, str(query.id), last_batch)
