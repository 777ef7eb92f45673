"""Mail is removed when the batches that have read it are complete, and not before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.errors import CheckpointDamaged
from plait.sites.spark.mail_sweep import sweep


def _checkpoint(folder: Path, mail: list[Path], commits: int) -> Path:
    """A checkpoint of a query that has read one file in each batch."""
    for name in ("commits", "offsets", "sources/0"):
        (folder / name).mkdir(parents=True)
    for number, path in enumerate(mail):
        entry = {"path": path.as_uri(), "timestamp": 1, "batchId": number}
        (folder / "sources" / "0" / str(number)).write_text("v1\n" + json.dumps(entry))
        offsets = ["v1", "{}", json.dumps({"logOffset": number}), "-"]
        (folder / "offsets" / str(number)).write_text("\n".join(offsets))
    for number in range(commits):
        (folder / "commits" / str(number)).touch()
    return folder


def _mail(box: Path, count: int) -> list[Path]:
    box.mkdir(parents=True)
    found = [box / f"part {number}.parquet" for number in range(count)]
    for path in found:
        path.touch()
        path.with_name(f".{path.name}.crc").touch()
    return found


def test_only_what_complete_batches_have_read_goes(tmp_path: Path) -> None:
    mail = _mail(tmp_path / "box=to-rome", 6)
    checkpoint = _checkpoint(tmp_path / "checkpoint", mail, commits=5)
    assert sweep(checkpoint, [tmp_path / "box=to-bonn"]) == 0, "the box of another site"
    assert sweep(checkpoint, [tmp_path / "box=to-rome"]) == 3
    assert [path.exists() for path in mail] == [False] * 3 + [True] * 3
    assert len(list((tmp_path / "box=to-rome").iterdir())) == 6, "checksums go too"
    assert sweep(checkpoint, [tmp_path / "box=to-rome"]) == 0


def test_a_log_that_is_not_known_is_named(tmp_path: Path) -> None:
    mail = _mail(tmp_path / "box=to-rome", 4)
    checkpoint = _checkpoint(tmp_path / "checkpoint", mail, commits=4)
    (checkpoint / "sources" / "0" / "0").write_text("v7\n{}")
    with pytest.raises(CheckpointDamaged, match="has the version 'v7'"):
        sweep(checkpoint, [tmp_path / "box=to-rome"])
    (checkpoint / "sources" / "0" / "0").write_text("v1\n{")
    with pytest.raises(CheckpointDamaged, match="cannot be read"):
        sweep(checkpoint, [tmp_path / "box=to-rome"])
    assert all(path.exists() for path in mail[1:])
