"""Somebody else at a Delta table: a history first, then one row after the other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait_lab.torture.spark import other_writer
from plait_lab.torture.spark.campaign import table_files, without_neighbours
from plait_lab.torture.spark.other_writer import Neighbour, add_row, age

pytestmark = pytest.mark.slow
SCHEMA = pa.schema([("a_id", pa.int64()), ("late", pa.struct([("reason", pa.string())]))])


def test_a_table_gets_a_history_and_more_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_writer, "_PAUSE", 0.01)
    monkeypatch.setattr(other_writer, "_HISTORY", 3)
    monkeypatch.setattr(other_writer, "_MOST", 5)
    table = tmp_path / "table"
    age(table, SCHEMA)
    assert list((table / "_delta_log").glob("*.checkpoint.parquet"))
    neighbour = Neighbour(table)
    neighbour.start()
    while len(table_files(table)) < 5:
        pass
    neighbour.stop()
    age(table, SCHEMA)  # the query is started again: it has a history already
    assert len(table_files(table)) == 5
    assert add_row(table) == 6
    kept, found = without_neighbours([pq.read_table(path) for path in table_files(table)])
    assert not found and not any(part.num_rows for part in kept)
