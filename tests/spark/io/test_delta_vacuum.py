"""Files that batches left behind in a Delta table: removed when they are old, and only they."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from plait.errors import StorageError, TableMismatch
from plait.spark.io.delta_parts import PartWriter, TablePart, part_name
from plait.spark.io.delta_table import DeltaCommits, create_delta
from plait.spark.io.delta_vacuum import vacuum

_SCHEMA = pa.schema([("k", pa.int64())])


def _part(place: Path, batch: int) -> TablePart:
    writer = PartWriter(str(place), part_name("q", batch, 0), _SCHEMA)
    writer.write(pa.record_batch({"k": [batch]}))
    found = writer.close()
    assert found is not None
    return found


def test_only_old_files_that_no_version_names(tmp_path: Path) -> None:
    place = tmp_path / "t"
    create_delta(str(place), _SCHEMA)
    commits = DeltaCommits(str(place), _SCHEMA)
    committed = [_part(place, 0), _part(place, 1)]
    for batch, part in enumerate(committed):
        commits.commit("q", batch, [part])
    DeltaTable(place).optimize.compact()  # the parts are still there for whoever travels back
    young, old = _part(place, 2), _part(place, 1)
    (place / "somebody-else.parquet").write_bytes(b"x")
    for path in place.glob("*.parquet"):
        if path.name != young.path:
            os.utime(path, (1, 1))
    assert vacuum(place, dry_run=True) == [old.path]
    before = {p.name for p in place.iterdir()}
    assert vacuum(place) == [old.path]
    assert before - {p.name for p in place.iterdir()} == {old.path}
    assert DeltaTable(place, version=2).to_pyarrow_table()["k"].to_pylist() == [1, 0]
    assert vacuum(place) == []


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="59 minutes old may belong to a batch"):
        vacuum(tmp_path, "59 minutes")
    with pytest.raises(TableMismatch, match="is no Delta table"):
        vacuum(tmp_path)
