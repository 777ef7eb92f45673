"""Whatever is in a control directory, the console reads on, shows pages, and says what it skips."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from tests.dashboard.hostile import mutate, spoil, spoilers, within

from plait.dashboard.metrics import exposition
from plait.dashboard.pages.console_pages import (
    ConsoleSite,
    Form,
    control_page,
    decisions_page,
    overview,
    processors_page,
)
from plait.dashboard.pages.report_page import report_page
from plait.dashboard.pages.sections import ViewOptions
from plait.dashboard.reading.snapshot import JoinSnapshot, refreshed
from plait.dashboard.reading.watcher import DirectoryWatcher, watch_checkpoint
from plait.dashboard.server import SnapshotReader
from plait.node.reports.requests import PlanAnswer, PlanRequest
from plait.spark.control.directory import Control
from plait_lab.workloads.checkpoints import ID

FILES = (
    "history.jsonl", "question.json", "balance.jsonl", "events/0.jsonl", f"reports/{ID}/59-0.json",
    "tables/*", "epochs/*", "requests/*", "answers/*", "../../metadata", "../../offsets/59",
)  # fmt: skip
SITE = ConsoleSite(["join"], "join", control=True)


def pages(snapshot: JoinSnapshot) -> str:
    """All of them, and metrics."""
    made = [
        overview(SITE, snapshot, ViewOptions()),
        decisions_page(SITE, snapshot, ViewOptions()),
        processors_page(SITE, snapshot),
        control_page(SITE, snapshot, Form()),
        report_page([snapshot]),
        exposition([snapshot]).decode(),
    ]
    return "".join(made)


@pytest.fixture
def control(checkpoint: Path) -> Path:
    """A control directory that has a file of each kind."""
    found = checkpoint / "plait" / "join"
    Control(str(found), True).epochs.add(None, "auto")
    request = PlanRequest("release", at=1.0)
    for folder, text in (
        ("requests", request.to_json()),
        ("answers", PlanAnswer(request, 1).to_json()),
    ):
        (found / folder).mkdir()
        (found / folder / f"{'0' * 32}.json").write_text(text)
    return found


def place(control: Path, name: str) -> Path:
    return max(control.glob(name)) if "*" in name else (control / name).resolve()


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_of_ours_is_skipped(control: Path, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("untouched")
    path = place(control, name)
    kept = path.read_bytes()
    for kind, how in spoilers(secret).items():
        spoil(path, how)
        (watcher,) = watch_checkpoint(control.parents[1])
        found = within(20, watcher.refresh)
        found = within(20, watcher.refresh)
        assert not found.stale and "cannot be drawn" not in pages(found), kind
        assert len(found.history) >= 16, kind
        if "join/" in str(path) and kind in ("a link", "a FIFO", "a folder") and found.notes:
            assert any(str(path) in note for note in found.notes), (kind, found.notes)
        if name in ("history.jsonl", "balance.jsonl", "events/0.jsonl", FILES[4]) and kind in (
            "a link", "a FIFO", "a folder", "a socket"
        ):  # fmt: skip
            assert any(str(path) in note for note in found.notes), (kind, found.notes)
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
        path.write_bytes(kept)
    assert secret.read_text() == "untouched" and not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["events", "reports", f"reports/{ID}", "tables", "requests"])
def test_no_folder_is_followed(control: Path, tmp_path: Path, name: str) -> None:
    moved = tmp_path / "elsewhere"
    (control / name).rename(moved)
    (control / name).symlink_to(moved)
    (watcher,) = watch_checkpoint(control.parents[1])
    found = within(20, watcher.refresh)
    assert not found.stale and pages(found)


def mutated(control: Path, seed: int, rounds: int) -> None:
    """Exchange values one after the other, all staying in place, and look at everything."""
    random = Random(seed)
    (watcher,) = watch_checkpoint(control.parents[1])
    for round_ in range(rounds):
        name = random.choice(FILES[:-2])
        mutate(place(control, name), random)
        again = refreshed(watcher)
        (fresh,) = watch_checkpoint(control.parents[1])
        for found in (again, refreshed(fresh)):
            assert not found.stale, (seed, round_, name, found.stale)
            text = pages(found)
            at = text.find("cannot be drawn")
            assert at < 0, (seed, round_, name, text[at : at + 200])


@pytest.mark.parametrize("seed", range(3))
def test_values_of_other_types_end_nothing(control: Path, seed: int) -> None:
    mutated(control, seed, 4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 23))
def test_values_of_other_types_end_nothing_often(control: Path, seed: int) -> None:
    mutated(control, seed, 40)


# -- the thread


class Broken(DirectoryWatcher):
    """Reads until something happens that nobody has foreseen."""

    broken = False

    def refresh(self) -> JoinSnapshot:
        if self.broken:
            raise ZeroDivisionError("of <all> things")
        return super().refresh()


@contextmanager
def running(watcher: DirectoryWatcher) -> Iterator[SnapshotReader]:
    reading = SnapshotReader([watcher])
    reading.start()
    try:
        yield reading
    finally:
        reading.stop()


def until(reading: SnapshotReader, stale: bool) -> JoinSnapshot:
    end = time.monotonic() + 20
    while bool(reading.snapshot(0).stale) is not stale:
        assert time.monotonic() < end
        time.sleep(0.05)
    return reading.snapshot(0)


def test_a_refresh_that_fails_is_seen_on_every_page_and_the_thread_goes_on(control: Path) -> None:
    watcher = Broken(Control(str(control), True))
    with running(watcher) as reading:
        fine, version = reading.snapshot(0), reading.version
        assert not fine.stale and len(fine.history) == 60
        watcher.broken = True
        found = until(reading, True)
        assert reading.version > version, "open pages are told"
        all_batches = ViewOptions()
        for page in (overview(SITE, found, all_batches), decisions_page(SITE, found, all_batches),
                     processors_page(SITE, found), control_page(SITE, found, Form())):  # fmt: skip
            assert "not refreshed since 2" in page
            assert "ZeroDivisionError: of &lt;all&gt; things" in page
        assert len(found.history) == 60, "what was read before is shown"
        assert "plait_stale{" in (text := exposition([found]).decode()) and "} 1.0" in text
        watcher.broken = False
        assert not until(reading, False).stale


def test_a_console_whose_first_look_fails_starts_and_says_so(control: Path) -> None:
    watcher = Broken(Control(str(control), True))
    watcher.broken = True
    with running(watcher) as reading:
        assert "not refreshed yet: ZeroDivisionError" in overview(
            SITE, reading.snapshot(0), ViewOptions()
        )


def test_a_part_that_cannot_be_drawn_leaves_the_others(
    snapshot: JoinSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of all things")

    broken.__name__ = "timeline"
    monkeypatch.setattr("plait.dashboard.pages.sections.timeline", broken)
    page = overview(SITE, snapshot, ViewOptions())
    assert "This part cannot be drawn (ZeroDivisionError: of all things)" in page
    assert 'id="tiles"' in page and 'id="graph"' in page
