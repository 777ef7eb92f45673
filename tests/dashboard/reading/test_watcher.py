"""Control directories are read piece by piece, and only read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.conftest import RUN

from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.dashboard.reading.watcher import watch_checkpoint
from plait.errors import SourceError
from plait.node.reports.history_log import HistoryWriter
from plait.spark.control.driver_files import HISTORY, QUESTION
from plait_lab.workloads.checkpoints import ID


def batches(snapshot: JoinSnapshot) -> list[int]:
    return [past.last for past in snapshot.history]


def listing(where: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(where.rglob("*"))
    }


def test_everything_is_read_and_nothing_is_written(checkpoint: Path) -> None:
    before = listing(checkpoint)
    (watcher,) = watch_checkpoint(checkpoint)
    found = watcher.refresh()
    assert batches(found) == list(range(60)) and found.question is not None
    assert set(found.estimates) == set(found.latest) == {0, 1, 2}
    assert {d.sort for d in found.decisions} == {"change", "verdict", "groups"}
    assert found.table is not None and found.table.under_way
    assert not found.notes
    assert watcher.refresh().version == found.version, "nothing is new"
    assert listing(checkpoint) == before


def test_only_what_is_new_is_read(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (watcher,) = watch_checkpoint(checkpoint)
    before = watcher.refresh()
    control = checkpoint / "plait" / "join"
    for processor in range(3):
        (control / "reports" / ID / f"60-{processor}.json").write_text(
            RUN.report(60, processor).to_json()
        )
    assert batches(watcher.refresh()) == list(range(60)), "the batch has not ended"
    (checkpoint / "commits" / "60").write_text("v1\n{}")
    opened: list[str] = []
    usual = os.open

    def spied(path: str, *how: Any, **where: Any) -> int:
        opened.append(Path(path).name)
        return usual(path, *how, **where)

    monkeypatch.setattr(os, "open", spied)
    found = watcher.refresh()
    assert batches(found) == list(range(61)) and found.version > before.version
    assert {n for n in opened if "-" in n and n.endswith(".json")} == {
        f"60-{p}.json" for p in range(3)
    }
    HistoryWriter(control / HISTORY).add([found.history[-1]])
    assert batches(watcher.refresh()) == list(range(61)), "told twice, shown once"


def test_without_a_history_one_is_made_of_reports_little_by_little(checkpoint: Path) -> None:
    (checkpoint / "plait" / "join" / HISTORY).unlink()
    (watcher,) = watch_checkpoint(checkpoint)
    first = watcher.refresh()
    assert 0 < len(first.history) < 40 and batches(first)[-1] == 59
    assert batches(watcher.settled()) == list(range(20, 60)), "all that there are reports of"


def test_without_a_question_the_log_tells_it(checkpoint: Path) -> None:
    control = checkpoint / "plait" / "join"
    (control / QUESTION).unlink()
    (watcher,) = watch_checkpoint(checkpoint)
    assert watcher.refresh().query == RUN.query
    for log in (control / "events").iterdir():
        log.unlink()
    (blind,) = watch_checkpoint(checkpoint)
    found = blind.refresh()
    assert found.query is None and len(found.history) == 60 and not found.estimates


def test_damage_is_left_out(checkpoint: Path) -> None:
    control = checkpoint / "plait" / "join"
    for path in [*control.rglob("*.json"), *control.rglob("*.jsonl")]:
        raw = path.read_bytes()
        path.write_bytes(raw[: len(raw) // 2] + b"\xff\x00")
    (watcher,) = watch_checkpoint(checkpoint)
    found = watcher.refresh()
    assert 20 < len(found.history) < 60 and found.table is None
    assert any("routing table" in note for note in found.notes)
    os.rename(control, control.with_name("gone"))
    assert watcher.refresh().history, "what was read is still there"


def test_a_place_without_a_join_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        watch_checkpoint(tmp_path / "nowhere")
    with pytest.raises(SourceError, match="no reports of a join"):
        watch_checkpoint(tmp_path)


def test_a_control_directory_will_do(generated: Path) -> None:
    (watcher,) = watch_checkpoint(generated / "plait" / "join")
    assert len(watcher.refresh().history) == 60 and watcher.name == "join"


@pytest.mark.slow
def test_neither_spark_nor_an_engine_is_needed(generated: Path) -> None:
    program = (
        "import sys\n"
        "for name in ('pyspark', 'py4j', 'pandas', 'numba'): sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "from plait.dashboard.reading.watcher import watch_checkpoint\n"
        "from plait.dashboard.server import Console\n"
        "from plait.dashboard.pages.report_page import report_page\n"
        f"(watcher,) = watch_checkpoint(Path({str(generated)!r}))\n"
        "assert 'Join graph' in report_page([watcher.refresh()])\n"
        "Console([watcher]).start().close()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
