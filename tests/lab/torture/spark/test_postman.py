"""The network between sites: each fault happens, is counted, and harms nothing but its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait_lab.torture.spark.postman import FAULTS, Fault, Postman

_BODY = b"PAR1" + bytes(range(100)) + b"footer of it" + b"PAR1"


def _send(folder: Path, number: int) -> None:
    """A batch of mail as Spark's file sink leaves it: one file for a site, one with results."""
    mail = folder / "box" / "mail" / "all"
    paths = [mail / f"box={box}" / f"part-{number}.parquet" for box in ("to-rome", "results")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_BODY)
    (mail / "_spark_metadata").mkdir(exist_ok=True)
    lines = [json.dumps({"path": path.as_uri(), "action": "add"}) for path in paths]
    (mail / "_spark_metadata" / str(number)).write_text("\n".join(["v1", *lines]))


def _log(folder: Path) -> list[dict[str, object]]:
    place = folder / "relay" / "all" / "_spark_metadata"
    logs = sorted(place.glob("[0-9]*"), key=lambda path: int(path.name))
    assert [path.name for path in logs] == [str(n) for n in range(len(logs))], "no gap"
    return [json.loads(path.read_text().splitlines()[1]) for path in logs]


def _names(folder: Path) -> list[str]:
    return [str(entry["path"]).rpartition("/")[2] for entry in _log(folder)]


def _postman(folder: Path, *faults: Fault) -> Postman:
    _send(folder, 0)
    return Postman(folder, "seed", 1.0, faults)


def test_mail_for_sites_comes_and_nothing_else(tmp_path: Path) -> None:
    postman = _postman(tmp_path)
    postman.look(0.0)
    postman.look(1.0)
    assert _names(tmp_path) == ["part-0.parquet"] and not postman.faults
    target = tmp_path / "relay" / "all" / "box=to-rome" / "part-0.parquet"
    assert target.read_bytes() == _BODY
    assert (tmp_path / "network-rests").exists()


@pytest.mark.parametrize(
    ("fault", "first", "in_the_end"), [("lost", 0, 0), ("delayed", 0, 1), ("repeated", 1, 2)]
)
def test_files_are_lost_delayed_and_repeated(
    tmp_path: Path, fault: Fault, first: int, in_the_end: int
) -> None:
    postman = _postman(tmp_path, fault)
    postman.look(0.0)
    assert len(_names(tmp_path)) == first
    assert (tmp_path / "network-rests").exists() == (fault == "lost")
    postman.look(10.0)
    assert len(set(_names(tmp_path))) == in_the_end
    assert postman.faults == {fault: 1} and (tmp_path / "network-rests").exists()


def test_damage_is_mended_and_clocks_are_wrong(tmp_path: Path) -> None:
    postman = _postman(tmp_path, "damaged")
    postman.look(0.0)
    target = tmp_path / "relay" / "all" / "box=to-rome" / "part-0.parquet"
    assert target.read_bytes() != _BODY
    postman.look(10.0)
    assert target.read_bytes() == _BODY and len(_names(tmp_path)) == 1
    other = tmp_path / "other"
    _postman(other, "wrong clock").look(0.0)
    place = other / "relay" / "all" / "box=to-rome" / "part-0.parquet"
    ahead = place.stat().st_mtime - target.stat().st_mtime
    assert abs(ahead) > 29 * 86_400
    (entry,) = _log(other)
    assert entry["modificationTime"] == round(1000 * place.stat().st_mtime)


def test_with_all_faults_something_of_each_happens(tmp_path: Path) -> None:
    postman = _postman(tmp_path, *FAULTS)
    for number in range(1, 60):
        _send(tmp_path, number)
    postman.look(0.0)
    assert set(postman.faults) == set(FAULTS)
    postman.look(10.0)
    assert len(_names(tmp_path)) == 60 - postman.faults["lost"] + postman.faults["repeated"]
