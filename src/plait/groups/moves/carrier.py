"""The rows of partition groups that come to a processor, stay or leave; see `moving`.

*Correct output.* Of what is stored, the rows that are ours are handed on, each once. Of a group
that arrives, a processor takes the rows that the routing of the move sends it.

*Cost.* One pass over the rows; their keys are hashed only if groups have left or are leaving.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.engine.intake.codes import stored_type
from plait.engine.intake.times import event_times
from plait.errors import CheckpointDamaged, TransferDamaged
from plait.groups.moves.lanes import FLAGGED, kind_of, stream_of
from plait.groups.moves.move import Move
from plait.groups.moves.moving import MoveActions, Moving, exported_groups
from plait.groups.moves.transfer import Transfer, Transfers, exported
from plait.groups.routing.routing import Routing
from plait.groups.routing.rows import decode_rows
from plait.groups.routing.split import cells_of
from plait.groups.routing.table import Table
from plait.query.query import Query

RESTORE = (
    "put the files of the state back from a copy of the checkpoint, or begin with a new "
    "checkpoint location"
)


class StoredRows(NamedTuple):
    """Rows that were stored, with the move by which they are flagged."""

    stream: int
    flag: int
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Carrier:
    """What one processor does with rows that are stored here or on their way."""

    query: Query
    routing: Routing
    number: int

    def stored(
        self, segments: Iterable[tuple[int, int, int, bytes]], moving: Moving
    ) -> Iterator[StoredRows]:
        """The rows of segments that are ours."""
        for segment, lane, _, body in segments:
            stream, kind = stream_of(lane), kind_of(lane)
            try:
                found = decode_rows(body)
            except (pa.ArrowException, OSError) as error:
                name = self.query.names[stream]
                raise CheckpointDamaged(
                    f"segment {segment} of stream {name!r} in the state of processor "
                    f"{self.number} cannot be read: {error}",
                    remedy=RESTORE,
                ) from error
            dead = moving.dead(segment)
            for rows in found:
                ours = ~self._in_groups(stream, rows, dead) if dead else None
                kept = rows if ours is None else rows.filter(pa.array(ours))
                yield StoredRows(stream, max(0, kind - FLAGGED), self._conformed(stream, kept))

    def arrived(self, move: Move, transfers: Transfers, count: int) -> list[StoredRows]:
        """The rows that were exported to us, in so many transfers of each sender."""
        return [
            StoredRows(stream, 0, self._conformed(stream, self._mine(move, stream, rows)))
            for transfer in exported(transfers, move, count)
            for stream, rows in transfer.rows.items()
        ]

    def transfer(
        self, move: Move, table: Table, number: int, parts: Iterable[StoredRows]
    ) -> Transfer:
        """The rows of these that leave with a move."""
        given: dict[int, list[pa.RecordBatch]] = {}
        for part in parts:
            given.setdefault(part.stream, []).append(part.rows)
        chosen = {}
        for stream, several in given.items():
            rows = pa.concat_batches(several)
            groups = exported_groups(table, move, self.number, stream)
            chosen[stream] = rows.filter(pa.array(self._in_groups(stream, rows, groups)))
        return Transfer(move.number, self.number, number, chosen)

    def _conformed(self, stream: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows with the columns that are kept now: those that were not kept before are null."""
        fields = self.query.streams[stream].fields
        if rows.schema.names == [field.name for field in fields]:
            return rows
        there = set(rows.schema.names)
        arrays = [
            rows.column(field.name)
            if field.name in there
            else pa.nulls(rows.num_rows, stored_type(field.type))
            for field in fields
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])

    def _in_groups(
        self, stream: int, rows: pa.RecordBatch, groups: Collection[int]
    ) -> npt.NDArray[np.bool_]:
        """Whether each row is in one of the groups."""
        return np.isin(cells_of(self.routing, self.query, stream, rows), list(groups))

    def _mine(self, move: Move, stream: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that belong here, if the rows of their stream are divided."""
        if move.spread != stream:
            return rows
        times = event_times(rows.column(self.query.streams[stream].time))
        owners = self.routing.divided(times, move.receivers)
        return rows.filter(pa.array(owners == self.number))


def looked_through(
    entered: MoveActions, transfers: Transfers
) -> tuple[frozenset[int], list[dict[str, Any]]]:
    """The moves whose rows can all be read here, and the answers about them."""
    checked, answers = set(entered.moving.checked), []
    for move in entered.check:
        try:
            exported(transfers, move, 1)
        except TransferDamaged as error:
            answers.append({"move": move.number, "what": "damaged", "why": str(error)})
        else:
            checked.add(move.number)
    answers += [{"move": number, "what": "received"} for number in sorted(checked)]
    return frozenset(checked), answers
