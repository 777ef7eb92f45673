"""Routing tables and transfers in the control directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import CheckpointDamaged, MoveError, TransferDamaged
from plait.groups.moves.move import Move
from plait.groups.routing.table import initial
from plait.machine.stores import LocalStore
from plait.spark.control.routing_tables import RoutingTables, TransferFiles

FIRST = initial([0, 1]).begin(Move(1, "MSLB", (0,), (0,), (1,)), 5, 2)
SECOND = FIRST.end(1, 9)


def test_a_batch_is_routed_by_the_last_table_that_holds_for_it(tmp_path: Path) -> None:
    tables = RoutingTables(LocalStore(tmp_path / "tables"))
    assert tables.at(7) is None and tables.newest() is None
    tables.add(FIRST)
    tables.add(SECOND)
    assert [tables.at(batch) for batch in (4, 5, 8, 9, 90)] == [None, FIRST, FIRST, SECOND, SECOND]
    assert tables.newest() == SECOND


def test_tables_of_long_ago_are_removed(tmp_path: Path) -> None:
    tables = RoutingTables(LocalStore(tmp_path))
    tables.forget(7)
    tables.add(FIRST)
    tables.add(SECOND)
    for batch, left in ((4, 2), (FIRST.since, 2), (SECOND.since - 1, 2), (SECOND.since, 1)):
        tables.forget(batch)
        assert len(list(tmp_path.iterdir())) == left
    assert tables.at(SECOND.since) == tables.newest() == SECOND
    tables.add(SECOND.changed(20))
    assert tables.at(20) == SECOND.changed(20)


def test_two_managers_cannot_both_add_a_table(tmp_path: Path) -> None:
    tables = RoutingTables(LocalStore(tmp_path))
    tables.add(FIRST)
    with pytest.raises(MoveError, match="there is a routing table 1 already; let one manager"):
        tables.add(FIRST)
    assert [path.name for path in tmp_path.iterdir()] == ["000001.json"], "nothing is left behind"


def test_a_table_must_follow_the_last_one(tmp_path: Path) -> None:
    with pytest.raises(MoveError):
        RoutingTables(LocalStore(tmp_path)).add(SECOND)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"number": 1'])
def test_a_damaged_table_is_named_and_never_skipped(tmp_path: Path, text: str) -> None:
    tables = RoutingTables(LocalStore(tmp_path))
    tables.add(FIRST)
    tables.add(SECOND)
    (tmp_path / "000002.json").write_text(text)
    with pytest.raises(CheckpointDamaged, match=r"000002\.json cannot be read"):
        tables.at(3)


def test_a_copy_of_another_table_is_noticed(tmp_path: Path) -> None:
    tables = RoutingTables(LocalStore(tmp_path))
    tables.add(FIRST)
    (tmp_path / "000002.json").write_text((tmp_path / "000001.json").read_text())
    with pytest.raises(CheckpointDamaged, match="is a copy of table 1"):
        tables.newest()


def test_other_files_are_not_looked_at(tmp_path: Path) -> None:
    for name in ("000001.json.bak", "7.json", ".000001.json.crc"):
        (tmp_path / name).write_text("x")
    assert RoutingTables(LocalStore(tmp_path)).newest() is None


def test_transfers_are_kept_apart_and_replaced(tmp_path: Path) -> None:
    transfers = TransferFiles(LocalStore(tmp_path / "transfer"))
    assert transfers.numbers(1, 0) == []
    for move, sender, number in ((1, 0, 5), (1, 0, 6), (1, 2, 5), (11, 0, 5)):
        transfers.write(move, sender, number, b"before")
        transfers.write(move, sender, number, b"%d %d %d" % (move, sender, number))
    assert sorted(transfers.numbers(1, 0)) == [5, 6] and transfers.numbers(11, 0) == [5]
    assert transfers.read(1, 2, 5) == b"1 2 5"
    transfers.keep_only({11})
    assert transfers.numbers(1, 0) == [] and transfers.numbers(11, 0) == [5]
    with pytest.raises(TransferDamaged, match="1-0-5 cannot be read"):
        transfers.read(1, 0, 5)
