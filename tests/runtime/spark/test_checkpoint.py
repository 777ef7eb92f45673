from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import CheckpointMismatch
from plait.runtime.spark.checkpoint import is_checkpoint


def test_new_and_empty_locations_are_fine(tmp_path: Path) -> None:
    assert not is_checkpoint(tmp_path / "new")
    assert not is_checkpoint(tmp_path)


def test_a_checkpoint_with_a_committed_batch_is_one(tmp_path: Path) -> None:
    (tmp_path / "metadata").touch()
    (tmp_path / "offsets").mkdir()
    assert not is_checkpoint(tmp_path), "nothing was committed: any query may begin here"
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    assert is_checkpoint(tmp_path)


def test_a_directory_with_other_things_is_refused(tmp_path: Path) -> None:
    for name in ("d.csv", "b.csv", "a.csv", "c.csv"):
        (tmp_path / name).touch()
    with pytest.raises(CheckpointMismatch, match=r"\(a.csv, b.csv, c.csv, ...\), not a checkpoint"):
        is_checkpoint(tmp_path)


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(CheckpointMismatch, match="x is a file; choose a new"):
        is_checkpoint(tmp_path / "x")
