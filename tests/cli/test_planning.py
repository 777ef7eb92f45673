"""`plait plan`, `plait explain --stats` and `plait env calibrate`."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.cli import main

SQL = "SELECT a.x FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y WITHIN 10 SECONDS"
STATS: dict[str, Any] = {
    "columns": {
        "a": {"ts": "timestamp", "x": "int64"},
        "b": {"ts": "timestamp", "x": "int64", "y": "int64"},
        "c": {"ts": "timestamp", "y": "int64"},
    },
    "rates": {"a": 200, "b": {"value": 200, "age": "5 s", "confidence": 0.9}},
    "selectivities": {"a.x = b.x": 0.0001, "b.y = c.y": 0.01},
}


@pytest.fixture(autouse=True)
def default_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing was calibrated."""
    monkeypatch.setenv("PLAIT_COSTS", str(tmp_path / "none.json"))


@pytest.fixture
def stats(tmp_path: Path) -> str:
    """A file of statistics."""
    path = tmp_path / "stats.json"
    path.write_text(json.dumps(STATS))
    return str(path)


def test_planning_needs_no_rows(stats: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-q", SQL, "--stats", stats, "--cpu", "0.8", "--memory", "2 GB"]) == 0
    text = capsys.readouterr().out
    assert "rows/s out" in text and "budget     0.8 CPU, 2 GB" in text
    assert "assumed    the rate of c is not known" in text
    assert "rejected" in text and "binding" in text


def test_no_qualified_plan_is_exit_code_1(stats: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-q", SQL, "--stats", stats, "--cpu", "0.000001", "--json", "-"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["answer"] == "none" and found["binding"] == "cpu" and found["proven"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cpu", "-1"], "a budget of -1.0 CPU"),
        (["--memory", "much"], "'much' is not an amount of memory"),
    ],
)
def test_bad_limits(
    stats: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["plan", "-q", SQL, "--stats", stats, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_bad_statistics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.json"
    for data, message in (
        (STATS | {"rates": {"z": 1}}, "'z', which is not a stream"),
        (STATS | {"rates": {"a": -1}}, "rates of a: a value of -1 rows/s"),
        (STATS | {"selectivities": {"a.x = b.x": 2}}, "a probability of 2"),
        (STATS | {"columns": {"a": 1}}, "columns is no object of objects"),
    ):
        path.write_text(json.dumps(data))
        assert main(["plan", "-q", SQL, "--stats", str(path)]) == 2
        assert message in capsys.readouterr().err


def test_explain_with_statistics(
    stats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = []
    for name, columns in STATS["columns"].items():
        table = {c: pa.array([], pa.timestamp("us") if c == "ts" else pa.int64()) for c in columns}
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
        given += ["-s", f"{name}={tmp_path / name}.parquet"]
    limited = json.loads(Path(stats).read_text())
    assert main(["explain", "-q", SQL, *given, "--stats", stats, "--memory", "1 GB"]) == 0
    assert "binding" in capsys.readouterr().out
    assert main(["explain", "-q", SQL, *given]) == 0
    assert "binding" not in capsys.readouterr().out
    assert limited["rates"]


def test_the_page_on_statistics_has_a_file_that_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text()
    (data,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"```\n(plait plan .*?)```", page, re.DOTALL)
    (tmp_path / "stats.json").write_text(data)
    arguments = [str(tmp_path / a) if a == "stats.json" else a for a in shlex.split(command)[1:]]
    assert main(arguments) == 0
    assert "assumed" in capsys.readouterr().out
