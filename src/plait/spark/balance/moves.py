"""Carry out moves of partition groups in a running query, from the driver.

*Correct output.* A move that was begun ends when the protocol allows it, by what processors report:
by PTLB when the sender has nothing old left, by MSLB when every receiver can read what it gets.
If a transfer is damaged before that, the move is given up, and its groups stay where they were.

*Invariants.* A table holds from a batch on that has not begun when the table is there. Spark logs a
batch before it runs it, so the driver knows the last that may have begun; the table holds from the
next but one, or from a later one where batches are short: all those that could run while the table
is written are left out. Should that take longer still, the rows of that batch come by the table
before it, and processors go by the table that the rows came by. Only if the table becomes visible
between two pack tasks of the batch do processors refuse it; it is repeated by one table when the
query is started again.

*Batches in which no processor runs*, because no input has a partition, end without a report. What
processors still need is kept until they have run by the newest table.

*Recovery.* Everything is in the control directory: tables say which moves are under way, and
reports how far they are. So a driver that was started again goes on where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from plait.errors import MoveError, TableTaken
from plait.groups.moves.move import Move, Protocol
from plait.groups.routing.routing import Routing
from plait.groups.routing.table import Table
from plait.node.reports.cluster_monitor import is_durable
from plait.node.reports.report import Report
from plait.spark.control.directory import Control
from plait.spark.control.joins import running

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


class Moves:
    """The moves of one join; `query` is the id of the running query.

    Writing a table is supposed to take less than `writing` seconds.
    """

    def __init__(
        self, routing: Routing, control: Control, query: str, writing: float = 2.0
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
                remedy="tell to_df(checkpoint=...) a folder or an object store that both reach",
            )
        self._routing = routing
        self._control = control
        self._reports = control.reports(query)
        self._writing = writing

    @property
    def ended(self) -> int | None:
        """The last batch that has ended; None before the first."""
        return self._reports.last_ended(self._routing.processors)

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
        """Begin to move groups from where they are; MoveError if that is impossible."""
        chosen, to = tuple(groups), tuple(receivers)
        while True:
            table = self.table
            known = [g for g in chosen if 0 <= g < len(table.places)]
            senders = table.places[known[0]] if known else (0,)
            move = Move(table.last + 1, protocol, chosen, senders, to, spread)
            try:
                self.change(begin=[move])
            except TableTaken:
                continue  # the balancer has written one meanwhile
            return move

    def change(
        self,
        *,
        begin: Iterable[Move] = (),
        end: Collection[int] = (),
        give_up: Collection[int] = (),
    ) -> Table:
        """Write the next table, in which moves begin, end or are given up."""
        table = self.table
        since = max(self._reports.next_free(self._writing), table.since + 1)
        processors = self._routing.processors
        changed = table.changed(since, processors, begin=begin, end=end, give_up=give_up)
        self._control.tables.add(changed)
        return changed

    def advance(self, reports: Sequence[Report] | None = None) -> Table:
        """End the moves that may end, give up those that cannot; the newest table.

        `reports` are those of the last batch that has ended in which processors ran.
        """
        table, last = self.table, self.ended
        if last is None or last < table.since:
            return table  # its moves have not begun yet
        if reports is None:
            reports = self._last_reports(last)
        said = {(a["move"], r.processor, a["what"]) for r in reports for a in r.moves}
        give_up = [
            move.number
            for move in table.under_way
            if any((move.number, p, "damaged") in said for p in move.receivers)
        ]
        end = [
            move.number
            for move in table.under_way
            if move.number not in give_up and _may_end(move, said)
        ]
        if end or give_up:
            return self.change(end=end, give_up=give_up)
        if is_durable(table, self._routing.processors, reports):
            self._control.transfers.keep_only({move.number for move in table.under_way})
            self._control.tables.forget(last - self._control.kept)
        return table

    def _last_reports(self, last: int) -> list[Report]:
        """The reports of the last batch up to this one in which processors ran."""
        ran = [batch for batch in self._reports.batches() if batch <= last]
        return self._reports.of(ran[-1]) if ran else []

    def give_up(self, number: int) -> Table:
        """Give a move up: its groups stay where they were."""
        return self.change(give_up=[number])


def _may_end(move: Move, said: Collection[tuple[int, int, str]]) -> bool:
    if move.protocol == "PTLB":
        return (move.number, move.senders[0], "all old purged") in said
    return all((move.number, p, "received") in said for p in move.receivers)


def moves_of(query: StreamingQuery, name: str | None = None) -> Moves:
    """The moves of a join in a running query, by the name that was given to `to_df`."""
    join = running(query, name, "its groups cannot move")
    return Moves(join.routing, join.control, str(query.id))


def move(
    query: StreamingQuery,
    groups: Iterable[int],
    to: int | Iterable[int],
    protocol: Protocol = "MSLB",
    *,
    spread: str | None = None,
    name: str | None = None,
) -> int:
    """Move partition groups to other processors (`Running.move`); return the move's number."""
    join = running(query, name, "its groups cannot move")
    stream = None if spread is None else join.query.index(spread)
    moves = Moves(join.routing, join.control, str(query.id))
    return moves.begin(groups, [to] if isinstance(to, int) else to, protocol, stream).number
