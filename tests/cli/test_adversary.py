"""The command line under attack: one clear error, no traceback, nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.cli import main

QUERY = "SELECT a.n FROM a JOIN b ON a.k = b.k WITHIN 1 SECOND"
LONG = "x" * 5000


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLAIT_TRACEBACK", raising=False)
    rows = pa.table({"ts": pa.array(range(9), pa.timestamp("us")), "k": range(9), "n": range(9)})
    for name in "ab":
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    (tmp_path / "query.sql").write_text(QUERY)
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").touch()
    (tmp_path / "deep.json").write_text("[" * 100_000)
    os.mkfifo(tmp_path / "pipe.csv")
    return tmp_path


ROWS = ("-s", "a=a.parquet", "-s", "b=b.parquet")
RUN = ("run", "query.sql", *ROWS)
BAD_FILES = ["", "folder", "bytes", "empty", "nowhere", LONG, "\udc80", "a\nb", "/dev/full"]
BAD_OUTPUTS = ["folder", "nowhere/x.csv", "bytes/x.csv", f"{LONG}.csv", "pipe.csv", "a\0b.csv"]
FAILURES = [
    *([*option, file] for file in [*BAD_FILES, "deep.json"] for option in (
        [*RUN, "--plan-file"], ["plan", *RUN[1:], "--stats"], ["query", "replay"],
        ["generate", "--out", "new"],
    )),
    *(["run", file, *ROWS] for file in BAD_FILES),
    *(["run", "query.sql", "-s", f"a={file}", "-s", "b=b.parquet"] for file in BAD_FILES),
    *([*RUN, option, path, "--overwrite"] for path in BAD_OUTPUTS
      for option in ("--out", "--bad-rows", "--events")),
    *([*RUN, "--late", path] for path in ("bytes", "bytes/x", LONG, f"{LONG}.csv", "no/x.csv")),
    *(["generate", "--preset", "market", "--seconds", "0.01", "--out", path]
      for path in ("bytes", "bytes/x", LONG, "pipe.csv", "/dev/full", "/proc/x", "a\0b")),
    *(["generate", "--preset", "market", "--out", "new", "--seconds", text]
      for text in ("nan", "inf", "-1", "0", "1e400", "1e300", "")),
    *([*RUN, option, ""] for option in ("--time", "--watermark", "--type", "--plan", "--engine")),
    ["env", "calibrate", "--repeats", "0"],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("arguments", FAILURES, ids=lambda a: ascii(" ".join(a)[-40:]))
def test_failures_are_clear_and_leave_nothing(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    before = sorted(root.rglob("*"))
    assert main(arguments) == 2
    error = capsys.readouterr().err.splitlines()
    assert error[0].startswith("error: ")
    assert sorted(root.rglob("*")) == before


@pytest.mark.slow
def test_streams_are_generated_all_or_none(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = {"name": "t", "keys": [{"name": "k", "domain": 3}], "rate": 10}
    for name in ("../t", "/t", "a/b", ".."):
        Path("spec.json").write_text(json.dumps([stream, stream | {"name": name}]))
        assert main(["generate", "spec.json", "--out", "new"]) == 2
        assert "is no file name" in capsys.readouterr().err
    Path("spec.json").write_text(json.dumps([stream, stream | {"name": "u"}]))
    (root / "folder" / "u.parquet").write_text("mine")
    assert main(["generate", "spec.json", "--out", "folder"]) == 2
    assert "folder/u.parquet exists\n  choose another directory" in capsys.readouterr().err
    assert [p.name for p in Path("folder").iterdir()] == ["u.parquet"]
    assert main(["generate", "spec.json", "--out", "new/deep", "--seconds", "1"]) == 0
    assert sorted(p.name for p in Path("new/deep").iterdir()) == ["t.parquet", "u.parquet"]
    assert not Path("new/t.parquet").exists()


def plait(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "plait", *arguments]


@pytest.mark.slow
@pytest.mark.parametrize("command", [RUN, ("explain", *RUN[1:]), ("--version",), ("query",)])
def test_standard_output_that_is_full(root: Path, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            plait(*command), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    error = "error: standard output cannot be written: No space left on device"
    assert done.stderr.splitlines()[0] == error
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_standard_output_that_is_closed(root: Path) -> None:
    process = subprocess.Popen(
        plait(*RUN, "-o", "out.csv"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait()
    assert len((root / "out.csv").read_text().splitlines()) == 10, "the results are complete"
    assert not list(root.glob(".*"))


@contextmanager
def not_as_root(root: Path) -> Iterator[None]:
    """Root may do everything: as someone else, who owns the directory."""
    if os.geteuid():
        yield
        return
    for path in (root, *root.rglob("*")):
        os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_directories_and_files_without_permission(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "SELECT"]) == 2  # imports what an error needs, while that can be read
    capsys.readouterr()
    (root / "folder").chmod(0o500)
    for arguments in ((*RUN, "-o", "folder/x.csv"), (*RUN, "--late", "folder/late")):
        with not_as_root(root):
            assert main(list(arguments)) == 2
        assert "ermission denied" in capsys.readouterr().err
    (root / "a.parquet").chmod(0)
    with not_as_root(root):
        assert main(list(RUN)) == 2
    error = capsys.readouterr().err
    assert "a.parquet cannot be read" in error
    assert "ermission denied" in error
    (root / "folder").chmod(0o700)
    assert not list((root / "folder").iterdir())
