"""Files in the making: complete or not at all, synced, and nobody else's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from plait.errors import OutputExists, PlaitError
from plait.machine.drafts import Draft, abandon_drafts, check_place, file_id, write_whole


def test_a_draft_appears_when_it_is_published(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "out.csv")
    draft.temporary.write_text("all")
    assert not draft.path.exists()
    draft.publish()
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
    assert draft.path.read_text() == "all"
    assert draft.path.stat().st_nlink == 1


def test_the_file_is_synced_before_its_name_and_the_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[tuple[str, str]] = []
    sync = os.fsync

    def fsync(handle: int) -> None:
        log.append(("sync", Path(os.readlink(f"/proc/self/fd/{handle}")).name))
        sync(handle)

    for name in ("link", "replace"):
        act = getattr(os, name)

        def renamed(old: Path, new: Path, name: str = name, act: Any = act) -> None:
            log.append((name, new.name))
            act(old, new)

        monkeypatch.setattr(os, name, renamed)
    monkeypatch.setattr(os, "fsync", fsync)
    for overwrite, how in ((False, "link"), (True, "replace")):
        log.clear()
        draft = Draft(tmp_path / "out.csv", overwrite=overwrite)
        draft.publish()
        expected = [("sync", draft.temporary.name), (how, "out.csv"), ("sync", tmp_path.name)]
        assert log == expected


def test_what_came_in_the_meantime_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for links in (True, False):
        if not links:
            monkeypatch.setattr(os, "link", _no_links)
        draft = Draft(tmp_path / f"{links}.csv")
        draft.path.write_text("theirs")
        with pytest.raises(OutputExists, match="exists"):
            draft.publish()
        draft.abandon()
        assert draft.path.read_text() == "theirs"
    draft = Draft(tmp_path / "new.csv")
    draft.publish()
    assert draft.path.exists(), "also on a system without links"
    assert not list(tmp_path.glob(".*"))


def _no_links(old: object, new: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_all_drafts_can_be_abandoned(tmp_path: Path) -> None:
    made = [Draft(tmp_path / name) for name in ("a.csv", "b.csv")]
    made[0].temporary.unlink()
    abandon_drafts()
    assert not list(tmp_path.iterdir())
    made[1].temporary.touch()
    abandon_drafts()
    assert made[1].temporary.exists(), "what was abandoned is nobody's"
    for draft in made:
        draft.abandon()


def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr("secrets.token_hex", lambda n: "known")
    (tmp_path / f".plait-{os.getpid()}-known.tmp").symlink_to(victim)
    with pytest.raises(PlaitError, match="File exists"):
        Draft(tmp_path / "out.csv")
    assert victim.read_text() == "mine"


def test_inputs_are_never_replaced(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("rows")
    (tmp_path / "folder").mkdir()
    (tmp_path / "soft.csv").symlink_to("rows.csv")
    (tmp_path / "hard.csv").hardlink_to(rows)
    found = file_id(rows)
    assert found is not None
    names = ("rows.csv", "soft.csv", "hard.csv", "folder/../rows.csv", "./rows.csv")
    for name in names:
        with pytest.raises(OutputExists, match=r"\.csv is one of the inputs; choose another"):
            check_place(tmp_path / name, overwrite=True, inputs={found})
    copy = tmp_path / "copy.csv"
    copy.write_text("rows")
    check_place(copy, overwrite=True, inputs={found})


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "dangling.csv").symlink_to("nowhere")
    (tmp_path / "file").touch()
    cases = {
        "pipe.csv": "is a device or pipe; name a regular file",
        "dangling.csv": "exists",
        "file/out.csv": "there is no directory",
        "x" * 300 + ".csv": "File name too long|cannot be written",
    }
    for name, message in cases.items():
        with pytest.raises(PlaitError, match=message):
            check_place(tmp_path / name)
    assert file_id(tmp_path / "nowhere") is file_id(Path("a\0b")) is None
    longest = tmp_path / ("x" * 250 + ".csv")
    Draft(longest).publish()
    assert longest.exists(), "the temporary name is no longer than that"


def test_small_texts(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    write_whole(path, "one")
    write_whole(path, "two")
    (tmp_path / "link.json").symlink_to(path)
    write_whole(tmp_path / "link.json", "three")
    assert (tmp_path / "link.json").is_symlink()
    assert path.read_text() == "three"
    for name, message in (("no/x.json", "there is no directory"), ("", "is a directory")):
        with pytest.raises(PlaitError, match=message):
            write_whole(tmp_path / name, "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["figures.json", "link.json"]


def test_a_full_device_stays_a_device() -> None:
    full = Path("/dev/full")
    with pytest.raises(PlaitError, match="/dev/full cannot be written: No space left on device"):
        write_whole(full, "x" * 100_000)
    write_whole(Path("/dev/null"), "x")
    assert full.is_char_device()
    assert Path("/dev/null").is_char_device()
