"""Groups on their way: what is missing, cut off, changed or from elsewhere is noticed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.errors import TransferDamaged
from plait.groups.moves.move import Move
from plait.groups.moves.transfer import Transfer, exported
from plait_lab.laws.processors import MemoryTransfers

MOVE = Move(3, "MSLB", (0,), (1,), (0,))
ROWS = {0: pa.record_batch({"k": [1, 2, 3]}), 1: pa.record_batch({"k": pa.array([], pa.int64())})}


def written(*numbers: int) -> MemoryTransfers:
    there = MemoryTransfers()
    for number in numbers:
        there.write(3, 1, number, Transfer(3, 1, number, ROWS).to_bytes())
    return there


def test_as_many_are_read_as_there_were_batches() -> None:
    found = exported(written(0, 1, 2), MOVE, 3)
    assert [t.number for t in found] == [0, 1, 2]
    assert found[0].rows == ROWS


def test_a_batch_that_was_never_committed_does_not_count() -> None:
    assert [t.number for t in exported(written(0, 1, 2), MOVE, 2)] == [0, 1]


@pytest.mark.parametrize("numbers", [(), (0, 2), (0, 1), (1, 2, 3)])
def test_a_missing_transfer_is_noticed(numbers: tuple[int, ...]) -> None:
    with pytest.raises(TransferDamaged, match="what processor 1 exported is missing"):
        exported(written(*numbers), MOVE, 3)


def test_every_cut_and_every_changed_byte_is_noticed() -> None:
    raw = Transfer(3, 1, 5, ROWS).to_bytes()
    for length in range(len(raw)):
        with pytest.raises(TransferDamaged):
            Transfer.from_bytes(raw[:length])
    for at in range(len(raw)):
        flipped = bytearray(raw)
        flipped[at] ^= 1
        with pytest.raises(TransferDamaged):
            Transfer.from_bytes(bytes(flipped))


def test_another_transfer_is_noticed() -> None:
    there = written(0, 1)
    there.written[3, 1, 1] = there.written[3, 1, 0]
    with pytest.raises(TransferDamaged, match="transfer 1 of move 3 is transfer 0 of move 3"):
        exported(there, MOVE, 2)
