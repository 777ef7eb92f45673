"""The control directory: decisions in their order, reports of the last batches."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.dashboard.hostile import spoilers, within

from plait.adapt.events import Event
from plait.errors import CheckpointMismatch, StorageError
from plait.groups.routing.routing import route
from plait.node.reports.event_log import read_events
from plait.node.reports.report import Report
from plait.plan.jtree import mjoin
from plait.spark.control.directory import Control
from plait.spark.control.joins import RegisteredJoin, find_join, register
from plait.testing.examples import clique

QUERY = clique(3)


def control(folder: Path) -> Control:
    return Control.of(str(folder), None, "run", "yarn")


@pytest.mark.slow
def test_decisions_are_numbered_whoever_makes_them(tmp_path: Path) -> None:
    here = control(tmp_path)
    assert here.newest_epoch(QUERY)[0] is None
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(here.epochs.add, mjoin(QUERY), "moving-state") for _ in range(24)]
        numbers = sorted(future.result().number for future in asked)
    assert numbers == list(range(1, 25))
    newest = control(tmp_path).newest_epoch(QUERY)[0]
    assert newest is not None and newest.number == 24 and newest.plan == mjoin(QUERY)


def test_numbers_go_on_from_what_processors_have_followed_elsewhere(tmp_path: Path) -> None:
    here = control(tmp_path)
    assert here.reports("q").newest_epoch() == 0
    for batch, epoch in ((8, 9), (9, 5), (10, 6)):
        here.reports("q").write(batch, Report(0, batch + 1, epoch=epoch))
    assert here.reports("q").newest_epoch() == 6, "what was long ago does not count"
    assert here.epochs.add(None, "auto", here.reports("q").newest_epoch()).number == 7


@pytest.mark.slow
def test_reports_of_the_last_batches_are_kept(tmp_path: Path) -> None:
    here = control(tmp_path)
    assert not here.reports("q").exist() and here.reports("q").of(0) == []
    for batch in range(200):
        for processor in (1, 0):
            here.reports("q").write(batch, Report(processor, batch + 1, results=batch))
    assert [r.processor for r in here.reports("q").of(199)] == [0, 1]
    assert [r.results for r in here.reports("q").of(100)] == [100, 100]
    assert here.reports("q").of(20) == [], "long ago"
    assert here.reports("q").of(19) == here.reports("other").of(199) == []


def test_damaged_reports_are_told_and_left_out(tmp_path: Path) -> None:
    here = control(tmp_path)
    for processor in range(5):
        here.reports("q").write(3, Report(processor, 4, results=7))
    folder = Path(here.folder, "reports", "q")
    (folder / "3-1.json").write_text(here_text := (folder / "3-1.json").read_text()[:40])
    (folder / "3-2.json").write_bytes(b"\xff\0")
    (folder / "3-3.json").write_bytes((folder / "3-0.json").read_bytes())
    (folder / "3-4.json").write_text('{"processor": 4, "batch": "four"}')
    (folder / "3-0.json~").write_text(here_text)
    (folder / "3-x.json").write_text("a stray one")
    found, notes = here.reports("q").read(3)
    assert [r.processor for r in found] == [0]
    said = ["no JSON", "no text", "is a copy of another one", "batch cannot be 'four'"]
    for note, part in zip(notes, said, strict=True):
        assert part in note
    assert here.reports("q").of(3) == found


def test_a_report_of_another_version_is_read(tmp_path: Path) -> None:
    here = control(tmp_path)
    here.reports("q").write(0, Report(0, 1, results=7))
    path = Path(here.folder, "reports", "q", "0-0.json")
    older = '{"processor": 0, "batch": 1, "results": 7}'
    for text in (older, '{"processor": 0, "batch": 1, "results": 7, "heat": [1]}'):
        path.write_text(text)
        (found,) = here.reports("q").of(0)
        assert (found.batch, found.results, found.notes) == (1, 7, [])


def test_so_many_reports_are_kept(tmp_path: Path) -> None:
    here = replace(control(tmp_path), kept=1)
    for batch in range(3):
        here.reports("q").write(batch, Report(0, batch + 1))
    assert [len(here.reports("q").of(batch)) for batch in range(3)] == [0, 0, 1]


def test_an_event_log_has_whole_lines_after_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = control(tmp_path)
    here.write_events(Report(0, 1, events=[Event("judged", 1, 0)]))
    log = Path(here.folder, "events", "0.jsonl")

    usual, rest = os.write, [b'{"event": "jud']

    def half(file: int, raw: bytes) -> int:
        if not rest:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return usual(file, rest.pop())

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(OSError, match="No space left"):
            here.write_events(Report(0, 2, events=[Event("judged", 2, 0)]))
    here.write_events(Report(0, 3, events=[Event("judged", 3, 0)]))
    assert [event.batch for event in read_events(log)] == [1, 3]


def test_a_report_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = control(tmp_path)
    here.reports("q").write(0, Report(0, 1))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        with pytest.raises(OSError, match="No space left"):
            here.reports("q").write(1, Report(0, 2))
    assert os.listdir(Path(here.folder, "reports", "q")) == ["0-0.json"]


def test_a_join_is_found_by_the_query_that_reported(tmp_path: Path) -> None:
    here = control(tmp_path)
    register(RegisteredJoin(QUERY, "this one", here, route(QUERY.graph, 2)))
    assert find_join("some query", "this one") is None
    here.reports("some query").write(0, Report(0, 1))
    join = find_join("some query", "this one")
    assert join is not None and join.control == here
    assert find_join("some query", None) is None


def test_a_temporary_one_goes(tmp_path: Path) -> None:
    here = Control.of(None, None, tmp_path.name + "-control-test", "local[2]")
    assert here.shared and here.temporary
    here.reports("q").write(0, Report(0, 1))
    here.remove()
    assert not here.reports("q").exist()
    kept = control(tmp_path)
    kept.reports("q").write(0, Report(0, 1))
    kept.remove()
    assert kept.reports("q").exist(), "a checkpoint is the user's"


def test_a_temporary_one_is_private_and_cannot_be_made_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    planted = tmp_path / f"plait-{os.getuid()}-control"
    other = Control(str(planted / "run"), shared=True)
    other.epochs.add(mjoin(QUERY), "moving-state")
    for path in (planted, planted / "run"):
        path.chmod(0o777)
    here = Control.of(None, None, "run", "local[2]")
    assert here.newest_epoch(QUERY)[0] is None, "an epoch that somebody planted"
    assert stat.S_IMODE(Path(here.folder).stat().st_mode) == 0o700
    here.epochs.add(mjoin(QUERY), "moving-state")
    assert here.newest_epoch(QUERY)[0] is not None
    again = Control.of(None, None, "run", "local[2]")
    assert again.folder != here.folder and again.newest_epoch(QUERY)[0] is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_nobody_elses_decisions_are_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here = Control.of(None, None, "run", "local[2]")
    here.epochs.add(mjoin(QUERY), "moving-state")
    assert here.newest_epoch(QUERY)[0] is not None
    os.chown(here.folder, 65_534, 65_534)
    assert here.newest_epoch(QUERY)[0] is None
    here.remove()
    assert (Path(here.folder) / "epochs").is_dir(), "what is not ours stays"


def test_without_a_shared_folder_there_is_nothing_to_obey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here = Control.of("dbfs:/checkpoint", None, "run", "yarn")
    assert not here.shared and not list(tmp_path.iterdir())
    Control(here.folder, shared=True).epochs.add(mjoin(QUERY), "moving-state")
    Path(here.folder).chmod(0o777)
    assert here.newest_epoch(QUERY)[0] is None


def test_how_far_a_query_is_by_the_logs_of_spark(tmp_path: Path) -> None:
    here = control(tmp_path)
    assert here.reports("q").last_ended(2) is None and here.reports("q").last_begun() == 0
    for log, names in (("offsets", ["0", "9", "10", ".10.crc"]), ("commits", ["8", "9", "x"])):
        (tmp_path / log).mkdir()
        for name in names:
            (tmp_path / log / name).touch()
    assert here.reports("q").last_ended(2) == 9 and here.reports("q").last_begun() == 10
    assert here.reports("q").next_free(2.0) == 13, (
        "a batch takes a second, as long as nothing is known"
    )


def test_how_far_a_query_is_by_reports_alone(tmp_path: Path) -> None:
    here = Control(str(tmp_path), True, True)
    assert here.reports("q").last_ended(2) is None and here.reports("q").last_begun() == 0
    for batch, processors in ((3, (0, 1)), (4, (0, 1)), (5, (1,))):
        for processor in processors:
            here.reports("q").write(batch, Report(processor, batch + 1))
    assert here.reports("q").last_ended(2) == 4, "of batch 5, one has not reported"
    assert here.reports("q").last_begun() == 6


@pytest.mark.parametrize(("apart", "ahead"), [(5.0, 1), (0.25, 8), (0.0, 200)])
def test_a_table_holds_from_a_batch_that_cannot_have_begun(
    tmp_path: Path, apart: float, ahead: int
) -> None:
    """The shorter batches are, the more of them are left out while a table is written."""
    here = Control(str(tmp_path), True, True)
    times = [0.0, 10.0, 10.0 + apart]
    for batch, at in enumerate(times):
        here.reports("q").write(batch, Report(0, batch + 1))
        os.utime(tmp_path / "reports" / "q" / f"{batch}-0.json", (1e9 + at,) * 2)
    assert here.reports("q").next_free(2.0) == here.reports("q").last_begun() + 1 + ahead


def test_the_query_that_reported_last(tmp_path: Path) -> None:
    here = control(tmp_path)
    assert here.newest_query() is None
    for query, at in (("old", 10), ("new", 30), ("other", 20)):
        here.reports(query).write(0, Report(0, 1))
        os.utime(Path(here.folder, "reports", query), (at, at))
    assert here.newest_query() == "new"


def test_what_the_manager_did_is_kept(tmp_path: Path) -> None:
    here = control(tmp_path)
    assert here.balance(5) == ()
    for batch in (3, 3, 4):
        here.write_balance([Event("weighed", 0, 7, {"decision": {"reasons": [str(batch)]}})], batch)
    assert [event.batch for event in here.balance(2)] == [3, 4]
    assert len(here.balance(9)) == 3
    with Path(here.folder, "balance.jsonl").open("a") as log:
        log.write("cut of")
    assert len(here.balance(9)) == 3, "a line that a crash has cut off is left out"


KINDS = ["a link", "a link to nothing", "a FIFO", "a folder", "a socket", "huge", "deep", "a list"]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_outside_and_no_reader_waits(tmp_path: Path, kind: str) -> None:
    here = control(tmp_path / "checkpoint")
    secret = tmp_path / "secret"
    secret.write_text("untouched")
    how = spoilers(secret)[kind]
    here.reports("q").write(0, Report(1, 1))
    how(Path(here.folder, "reports", "q", "0-0.json"))
    found, notes = within(20, lambda: here.reports("q").read(0))
    assert [r.processor for r in found] == [1]
    assert len(notes) == 1 and "0-0.json cannot be read: " in notes[0]
    assert within(20, lambda: here.reports("q").newest_epoch()) == 0

    log = Path(here.folder, "events", "0.jsonl")
    log.parent.mkdir()
    how(log)
    judged = [Event("judged", 1, 0)]
    if kind not in ("huge", "deep", "a list"):
        with pytest.raises(OSError, match="it is a ") as error:
            within(20, lambda: here.write_events(Report(0, 1, events=judged)))
        assert str(log) in str(error.value)

    balance = Path(here.folder, "balance.jsonl")
    how(balance)
    assert within(20, lambda: here.balance(5)) == ()
    if kind in ("deep", "a list"):
        here.write_balance(judged, 1)
        assert [e.kind for e in here.balance(5)] == ["judged"], "what is no event is skipped"
    assert secret.read_text() == "untouched" and not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["events", "reports", "reports/q", "epochs", "tables"])
def test_no_folder_of_the_directory_is_followed(tmp_path: Path, name: str) -> None:
    here = control(tmp_path / "checkpoint")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Path(here.folder, name).parent.mkdir(parents=True)
    Path(here.folder, name).symlink_to(elsewhere)
    written: dict[str, Callable[[], object]] = {
        "events": lambda: here.write_events(Report(0, 1, events=[Event("judged", 1, 0)])),
        "epochs": lambda: here.epochs.add(None, "auto"),
        "tables": lambda: here.tables.add(replace(route(QUERY.graph, 2).table, number=1)),
    }
    with pytest.raises((OSError, StorageError), match="it is a link"):
        written.get(name, lambda: here.reports("q").write(0, Report(0, 1)))()
    assert os.listdir(elsewhere) == []
    assert here.reports("q").of(0) == [] and not here.reports("q").exist()


def test_what_is_no_folder_of_reports_is_no_query(tmp_path: Path) -> None:
    here = control(tmp_path)
    here.reports("q").write(0, Report(0, 1))
    Path(here.folder, "reports", "stray").touch()
    Path(here.folder, "reports", "dangling").symlink_to("nowhere")
    Path(here.folder, "reports", "link").symlink_to(tmp_path)
    assert here.newest_query() == "q"


@pytest.mark.parametrize("text", ["3", "[]", '"x"', "[" * 100_000, "\xff", '{"id": 3}'])
def test_metadata_of_another_type_end_no_batch(tmp_path: Path, text: str) -> None:
    here = control(tmp_path)
    (tmp_path / "metadata").write_text(text)
    if text.startswith("{"):
        with pytest.raises(CheckpointMismatch):
            here.check_place("q")
    else:
        here.check_place("q")
