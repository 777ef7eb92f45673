"""`plait rebalance` on the command line; what it does is in tests/spark/test_rebalance.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.cli import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["rebalance", *arguments]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_what_is_missing_or_wrong_is_said_before_spark_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = str(tmp_path)
    assert "--processors" in refused(capsys, place, "--output", "none")
    assert "--output" in refused(capsys, place, "--processors", "2")
    assert "greater than or equal to 1" in refused(capsys, place, "-p", "0", "--output", "none")
    said = refused(capsys, place, "-p", "2", "--output", "none")
    assert "is not the checkpoint of a query that has run" in said
    (tmp_path / "notes.txt").touch()
    assert "not a checkpoint" in refused(capsys, place, "-p", "2", "--output", "none")
    far = refused(capsys, "s3://bucket/checkpoint", "-p", "2", "--output", "none")
    assert "not in the file system of this machine" in far
