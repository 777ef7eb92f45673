"""Rows that come, stay and leave: which are ours, which leave with a move, which we take in."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from plait.errors import CheckpointDamaged
from plait.groups.moves.carrier import Carrier, StoredRows, looked_through
from plait.groups.moves.lanes import FLAGGED, lane_of
from plait.groups.moves.move import Move
from plait.groups.moves.moving import MoveActions, Moving
from plait.groups.routing.routing import route
from plait.groups.routing.rows import encode_rows
from plait.groups.routing.split import cells_of
from plait_lab.laws.processors import MemoryTransfers
from plait_lab.workloads.keyed import keyed_query

QUERY = keyed_query([["k"]] * 2, 10_000_000)
ROUTING = route(QUERY.graph, 2, groups=4)
HERE, THERE = (Carrier(QUERY, ROUTING, number) for number in (0, 1))
KEYS = range(40)


def rows(stream: int, keys: object = KEYS) -> pa.RecordBatch:
    given = list(keys)  # type: ignore[call-overload]  # any numbers will do
    columns = {"k": given, "ts": given, "v": given}
    schema = QUERY.streams[stream].schema
    return pa.record_batch([pa.array(columns[f.name]).cast(f.type) for f in schema], schema=schema)


def groups(stream: int, found: pa.RecordBatch) -> set[int]:
    return set(cells_of(ROUTING, QUERY, stream, found).tolist())


def test_rows_of_groups_that_have_left_are_not_ours() -> None:
    segment = (7, lane_of(0), 39, encode_rows(rows(0)))
    (everything,) = HERE.stored([segment], Moving(1, {2: 7}))
    assert everything == StoredRows(0, 0, rows(0)), (
        "what came since the group left is another group's"
    )
    (left,) = HERE.stored([segment], Moving(1, {2: 8}))
    assert groups(0, left.rows) == {0, 1, 3} and left.rows.num_rows < 40


def test_flags_are_in_the_lane() -> None:
    (found,) = HERE.stored([(1, lane_of(1, FLAGGED + 5), 39, encode_rows(rows(1)))], Moving())
    assert (found.stream, found.flag) == (1, 5)


def test_a_segment_that_cannot_be_read_is_named() -> None:
    broken = (3, lane_of(1), 39, encode_rows(rows(1))[:40])
    with pytest.raises(CheckpointDamaged, match="segment 3 of stream 's1' in the state of proc"):
        list(HERE.stored([broken], Moving()))


def test_only_the_groups_of_a_move_leave_and_each_row_arrives_once() -> None:
    move = Move(1, "MSLB", (0, 1), (0,), (0, 1), spread=0)
    table = ROUTING.table.begin(move, 1, 2)
    parts = [
        StoredRows(0, 0, rows(0)),
        StoredRows(1, 0, rows(1)),
        StoredRows(1, 0, rows(1, range(40, 60))),
    ]
    transfer = HERE.transfer(move, table, 0, parts)
    assert groups(0, transfer.rows[0]) == groups(1, transfer.rows[1]) == {0, 1}
    transfers = MemoryTransfers()
    transfers.write(1, 0, 0, transfer.to_bytes())
    arrived = [{p.stream: p.rows for p in c.arrived(move, transfers, 1)} for c in (HERE, THERE)]
    divided = [set(found[0]["k"].to_pylist()) for found in arrived]
    assert not divided[0] & divided[1] and all(divided)
    assert divided[0] | divided[1] == set(transfer.rows[0]["k"].to_pylist())
    for found in arrived:
        assert found[1]["k"].to_pylist() == transfer.rows[1]["k"].to_pylist()


@dataclass
class Unreadable(MemoryTransfers):
    """Whatever was written is damaged."""

    written: dict[tuple[int, int, int], bytes] = field(default_factory=dict)

    def read(self, move: int, sender: int, number: int) -> bytes:
        return self.written[move, sender, number][:-1]


@pytest.mark.parametrize("kind", [MemoryTransfers, Unreadable])
def test_receivers_say_whether_they_can_read_what_they_get(kind: type[MemoryTransfers]) -> None:
    move = Move(4, "MSLB", (0,), (0,), (1,))
    table = ROUTING.table.begin(move, 1, 2)
    transfers = kind()
    raw = HERE.transfer(move, table, 0, [StoredRows(0, 0, rows(0))]).to_bytes()
    transfers.write(4, 0, 0, raw)
    entered = MoveActions(Moving(1, begun={4: 5}, checked=frozenset({2})), check=(move,))
    checked, answers = looked_through(entered, transfers)
    said = {(answer["move"], answer["what"]) for answer in answers}
    if kind is MemoryTransfers:
        assert checked == {2, 4} and said == {(2, "received"), (4, "received")}
    else:
        assert checked == {2} and said == {(2, "received"), (4, "damaged")}
