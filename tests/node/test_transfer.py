"""Groups on their way: what is missing, cut off, changed or from elsewhere is noticed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.errors import TransferDamaged
from plait.node.transfer import Transfer, exported
from plait.protocol.messages import Move
from plait.workshop.laws.processors import MemoryTransfers

MOVE = Move(3, "MSLB", (0,), (1,), (0,))
ROWS = {0: pa.record_batch({"k": [1, 2, 3]}), 1: pa.record_batch({"k": pa.array([], pa.int64())})}


def written(*batches: int) -> MemoryTransfers:
    there = MemoryTransfers()
    for batch in batches:
        first = batch == batches[0]
        there.write(3, 1, batch, Transfer(3, 1, batch, first, ROWS).to_bytes())
    return there


def test_all_batches_before_the_change_are_read() -> None:
    found = exported(written(5, 6, 7), MOVE, 8)
    assert [(t.batch, t.first) for t in found] == [(5, True), (6, False), (7, False)]
    assert found[0].rows == ROWS


def test_a_batch_that_was_never_committed_does_not_count() -> None:
    assert [t.batch for t in exported(written(5, 6, 7), MOVE, 7)] == [5, 6]


def test_without_a_change_the_first_one_is_looked_at() -> None:
    assert [t.batch for t in exported(written(5, 6), MOVE)] == [5]


@pytest.mark.parametrize("batches", [(), (5, 7), (5, 6)])
def test_a_missing_batch_is_noticed(batches: tuple[int, ...]) -> None:
    with pytest.raises(TransferDamaged, match="what processor 1 exported is missing"):
        exported(written(*batches), MOVE, 8)


def test_every_cut_and_every_changed_byte_is_noticed() -> None:
    raw = Transfer(3, 1, 5, True, ROWS).to_bytes()
    for length in range(len(raw)):
        with pytest.raises(TransferDamaged):
            Transfer.from_bytes(raw[:length])
    for at in range(len(raw)):
        flipped = bytearray(raw)
        flipped[at] ^= 1
        with pytest.raises(TransferDamaged):
            Transfer.from_bytes(bytes(flipped))


def test_the_transfer_of_another_batch_is_noticed() -> None:
    there = written(5, 6)
    there.written[3, 1, 6] = there.written[3, 1, 5]
    with pytest.raises(TransferDamaged, match="batch 6 of move 3 is that of batch 5 of move 3"):
        exported(there, MOVE, 7)
