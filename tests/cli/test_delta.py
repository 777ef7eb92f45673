"""`plait delta`; what vacuum removes is in tests/spark/io/test_delta_vacuum.py."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from plait.cli import main
from plait.spark.io.delta_parts import PartWriter, part_name
from plait.spark.io.delta_table import create_delta


def test_files_are_named_then_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, table = pa.schema([("k", pa.int64())]), tmp_path / "t"
    create_delta(str(table), schema)
    writer = PartWriter(str(table), part_name("q", 0, 0), schema)
    writer.write(pa.record_batch({"k": [1]}))
    left = writer.close()
    assert left is not None
    assert main(["delta", "vacuum", str(table)]) == 0
    assert "0 files removed" in capsys.readouterr().out
    os.utime(table / left.path, (1, 1))
    assert main(["delta", "vacuum", str(table), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "1 file would be removed" in said and left.path in said.replace("\n", "")
    assert main(["delta", "vacuum", str(table), "--older-than", "2 hours"]) == 0
    assert "1 file removed" in capsys.readouterr().out
    assert not (table / left.path).exists()


def test_what_makes_no_sense_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delta", "vacuum", str(tmp_path)]) == 2
    assert "is no Delta table" in " ".join(capsys.readouterr().err.split())
    assert main(["delta", "vacuum", str(tmp_path), "--older-than", "soon"]) == 2
    assert "soon" in capsys.readouterr().err
