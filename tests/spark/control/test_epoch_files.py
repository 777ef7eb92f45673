"""The folder of decisions: numbered whoever makes them, and nothing in it stops a query."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plait.errors import StorageError
from plait.machine.stores import LocalStore
from plait.node.epochs import Followed
from plait.plan.jtree import mjoin
from plait.spark.control.epoch_files import EpochFiles
from plait.testing.examples import clique

QUERY = clique(3)
PLAN = mjoin(QUERY)


def test_decisions_are_numbered_whoever_makes_them(tmp_path: Path) -> None:
    here = EpochFiles(LocalStore(tmp_path / "epochs"))
    assert here.newest(QUERY) == (None, [])
    with ThreadPoolExecutor(8) as pool:
        made = [pool.submit(here.add, PLAN, "moving-state") for _ in range(24)]
        epochs = [future.result() for future in made]
    assert sorted(e.number for e in epochs) == list(range(1, 25))
    assert len({e.origin for e in epochs}) == 1
    newest, skipped = here.newest(QUERY)
    assert newest is not None and newest.number == 24 and not skipped
    assert len(list((tmp_path / "epochs").iterdir())) == 24, "nothing is left behind"


def test_two_directories_have_two_origins(tmp_path: Path) -> None:
    first = [EpochFiles(LocalStore(tmp_path / "a")).add(PLAN, "auto") for _ in range(2)]
    other = EpochFiles(LocalStore(tmp_path / "b")).add(PLAN, "auto")
    assert first[0].origin == first[1].origin != other.origin
    assert Followed().after(first[1]).is_new(other)


def test_a_number_is_beyond_what_was_followed_elsewhere(tmp_path: Path) -> None:
    here = EpochFiles(LocalStore(tmp_path))
    assert here.add(PLAN, "auto", after=41).number == 42
    assert here.add(PLAN, "auto", after=3).number == 43


def test_a_directory_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    (tmp_path / "000005.json").write_text('{"number": 5, "strategy": "auto", "plan": null}')
    here = EpochFiles(LocalStore(tmp_path))
    old, _ = here.newest(QUERY)
    assert old is not None and (old.number, old.origin) == (5, "")
    new = here.add(PLAN, "auto")
    assert new.number == 6 and new.origin and Followed.of({"epoch": 5}).is_new(new)


STRAY: dict[str, Callable[[Path], object]] = {
    "a backup of an editor": lambda p: (p / "000001.json~").write_text("{"),
    "a swap file": lambda p: (p / ".000001.json.swp").write_bytes(b"\0\xff"),
    "a checksum of Hadoop": lambda p: (p / ".000009.json.crc").write_bytes(b"crc\0"),
    "a name without a number": lambda p: (p / "notes.json").write_text("{}"),
    "a number written otherwise": lambda p: (p / "9.json").write_text("{}"),
    "digits of another script": lambda p: (p / "٠٠٠٠٠٩.json").write_text("{}"),
    "number zero": lambda p: (p / "000000.json").write_text("{}"),
    "a negative number": lambda p: (p / "-00009.json").write_text("{}"),
    "a directory": lambda p: (p / "000009.json").mkdir(),
    "a link": lambda p: (p / "000009.json").symlink_to(p / "000001.json"),
    "a file that was left half-written": lambda p: (p / "new-77-abcd").write_text('{"num'),
}


@pytest.mark.parametrize("what", STRAY)
def test_stray_files_are_ignored(tmp_path: Path, what: str) -> None:
    here = EpochFiles(LocalStore(tmp_path))
    epoch = here.add(PLAN, "auto")
    STRAY[what](tmp_path)
    assert here.newest(QUERY) == (epoch, [])
    after = here.add(PLAN, "auto")
    assert after.number > 1 and after.origin == epoch.origin
    assert here.newest(QUERY) == (after, [])


UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda f: f.write_bytes(b""), "it is empty"),
    "half-written": (lambda f: f.write_bytes(f.read_bytes()[:30]), "it is no JSON"),
    "binary": (lambda f: f.write_bytes(b"\xff\xfe\0"), "it is no text"),
    "changed": (
        lambda f: f.write_text(f.read_text().replace("auto", "moving-state")),
        "its checksum is wrong",
    ),
    "of another epoch": (
        lambda f: f.write_bytes((f.parent / "000001.json").read_bytes()),
        "it is a copy of 1",
    ),
    "of another query": (
        lambda f: f.write_text(
            f.read_text().replace('"stream": "a"', '"stream": "z"').partition(', "checksum"')[0]
            + "}"
        ),
        "'z'",
    ),
    "of another version": (
        lambda f: f.write_text('{"number": 2, "strategy": "auto", "plan": null, "groups": 1}'),
        "'groups', which this version does not know",
    ),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_an_unreadable_decision_is_told_and_skipped(tmp_path: Path, what: str) -> None:
    here = EpochFiles(LocalStore(tmp_path))
    first, second = here.add(None, "auto"), here.add(PLAN, "auto")
    damage, said = UNREADABLE[what]
    damage(tmp_path / "000002.json")
    found, (note,) = here.newest(QUERY)
    assert found == first
    assert "000002.json was skipped" in note and said in note
    third = here.add(PLAN, "auto")
    assert third.number == second.number + 1 and here.newest(QUERY) == (third, [])
    assert Followed().after(first).after(second).is_new(third), "whatever its folder has seen"


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path) -> None:
    (tmp_path / "epochs").write_text("a file")
    here = EpochFiles(LocalStore(tmp_path / "epochs"))
    note = f"the decisions in {here.store.root} cannot be listed: Not a directory"
    assert here.newest(QUERY) == (None, [note])
    with pytest.raises(StorageError, match=r"could not be written to .*epochs: .*; make room"):
        here.add(PLAN, "auto")


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    here = EpochFiles(LocalStore(tmp_path))
    first = here.add(PLAN, "auto")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left on device"):
            here.add(PLAN, "auto")
    assert here.newest(QUERY) == (first, []) and len(list(tmp_path.iterdir())) == 1
