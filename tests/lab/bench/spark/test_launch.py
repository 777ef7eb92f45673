"""Children are heard, ended in time, and leave nobody behind."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from plait_lab.bench.spark.launch import listen

TELLS = """
from plait_lab.bench.spark.job import tell
print("noise")
tell("batch", id=0)
tell("batch", id=1)
tell("end", seconds=1.5)
"""
LINGERS = """
import subprocess, sys, time
from plait_lab.bench.spark.job import tell
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
tell("batch", id=grandchild.pid)
time.sleep(600)
"""


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_what_a_child_says_is_heard(tmp_path: Path) -> None:
    words: list[str] = []
    heard = listen(python(TELLS), tmp_path / "log", 60.0, lambda word: words.append(word["kind"]))
    assert words == ["batch", "batch", "end"]
    assert [b["id"] for b in heard.of("batch")] == [0, 1]
    assert not heard.over
    assert not heard.error


@pytest.mark.slow
def test_a_child_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    heard = listen(python(LINGERS), tmp_path / "log", 4.0)
    assert heard.over
    assert heard.seconds < 60
    (batch,) = heard.of("batch")
    deadline = time.monotonic() + 10
    while _runs(batch["id"]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(batch["id"])


def _runs(pid: int) -> bool:
    try:
        return str(psutil.Process(pid).status()) != str(psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    said = listen(
        python("from plait_lab.bench.spark.job import tell; tell('failed', error='no luck')"),
        tmp_path / "log",
        60.0,
    )
    assert said.error == "no luck"
    died = listen(python("raise SystemExit('gone')"), tmp_path / "log", 60.0)
    assert died.error == "it ended with code 1\ngone"
