"""`plait query`: what it reads and refuses; what it does on Spark is tested in tests/spark."""

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
    assert main(["query", "report", str(checkpoint), "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "Join graph" in text and "12" in text and "<script" not in text
    assert main(["query", "report", str(checkpoint), "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err
    assert main(["query", "report", str(checkpoint), "--out", str(out), "--overwrite"]) == 0


def test_a_place_without_a_query_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("console", "report"):
        assert main(["query", command, str(tmp_path)]) == 2
        assert "no reports of a join" in capsys.readouterr().err


@pytest.mark.slow
def test_the_console_prints_where_it_is_and_ends_when_interrupted(checkpoint: Path) -> None:
    command = [sys.executable, "-m", "plait", "query", "console", str(checkpoint)]
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


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["query", "rebalance", *arguments]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_what_is_missing_or_wrong_is_said_before_spark_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = str(tmp_path)
    assert "--processors" in refused(capsys, place, "--sink", "none")
    assert "--sink" in refused(capsys, place, "--processors", "2")
    assert "greater than or equal to 1" in refused(capsys, place, "-p", "0", "--sink", "none")
    said = refused(capsys, place, "-p", "2", "--sink", "none")
    assert "is not the checkpoint of a query that has run" in said
    (tmp_path / "notes.txt").touch()
    assert "not a checkpoint" in refused(capsys, place, "-p", "2", "--sink", "none")
    far = refused(capsys, "s3://bucket/checkpoint", "-p", "2", "--sink", "none")
    assert "not in the file system of this machine" in far
