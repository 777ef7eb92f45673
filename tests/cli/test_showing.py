"""`plait console` and `plait report` from the command line."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from plait.cli import main
from plait_lab.workloads.checkpoints import LongRun


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("showing") / "checkpoint"
    LongRun(12, 2, turns=2, kept=12).write(where)
    return where


def test_a_report_is_one_file(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    assert main(["report", str(checkpoint), "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "Join graph" in text and "12" in text and "<script" not in text
    assert main(["report", str(checkpoint), "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err
    assert main(["report", str(checkpoint), "--out", str(out), "--overwrite"]) == 0


def test_a_place_without_a_query_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("console", "report"):
        assert main([command, str(tmp_path)]) == 2
        assert "no reports of a join" in capsys.readouterr().err


@pytest.mark.slow
def test_the_console_prints_where_it_is_and_ends_when_interrupted(checkpoint: Path) -> None:
    command = [sys.executable, "-m", "plait", "console", str(checkpoint)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S+", url)
            process.stdout.readline()
            jar = urllib.request.HTTPCookieProcessor(CookieJar())
            with urllib.request.build_opener(jar).open(url, timeout=20) as answer:
                assert "Join graph" in answer.read().decode()
        finally:
            process.terminate()
        assert process.wait(timeout=20) != 0
