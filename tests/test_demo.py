"""The demo, on a short stretch of its market."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.cli import main
from plait.cli.demo_spark import write_arrivals
from plait.cli.market import market, specs
from plait.hosts.spark import java


@pytest.mark.slow
def test_the_demo_proves_its_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--local", "--seconds", "3", "--seed", "7"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert "mjoin → results" in out
    assert "Late rows: 0." in out
    assert "5 of the results" in out
    figures = dict(re.findall(r"^(Plait|DuckDB) +([\d,]+ +[0-9a-f]{16}) ", out, re.MULTILINE))
    assert figures["Plait"] == figures["DuckDB"]
    assert not figures["Plait"].startswith("0 ")
    assert "The same results, every one of them." in out


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_demo_on_spark() -> None:
    command = [sys.executable, "-m", "plait", "demo", "--seconds", "12"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "The run on Spark" in ran.stdout
    table = ran.stdout.partition("rows/s\n")[2].partition("rows and")[0]
    batches = [line.split() for line in table.splitlines()[:-1]]
    assert [b[0] for b in batches] == ["1", "2", "3"]
    assert "The same results, every one of them." in ran.stdout
    figures = dict(re.findall(r"^(Plait|DuckDB) +([\d,]+) ", ran.stdout, re.MULTILINE))
    counted = sum(int(b[3].replace(",", "")) for b in batches)
    assert int(figures["Plait"].replace(",", "")) == counted > 0


def test_the_demo_without_java_says_so_and_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "packaged_runtime", lambda: None)
    assert main(["demo", "--seconds", "1"]) == 0
    out = capsys.readouterr().out
    assert "This runs in one process, without Spark: Spark needs Java 17 or newer" in out
    assert "no Java was found" in out
    assert "The same results, every one of them." in out


@pytest.mark.slow
def test_arrivals_are_cut_at_the_same_times(tmp_path: Path) -> None:
    tables = market(5, 3)
    assert write_arrivals(tables, 2.0, tmp_path) == 3
    times = {n: table.column("ts").cast(pa.int64()).to_pylist() for n, table in tables.items()}
    first = min(stamps[0] for stamps in times.values())
    for name, table in tables.items():
        parts = [pq.read_table(tmp_path / name / f"{b:03}.parquet") for b in range(3)]
        assert pa.concat_tables(parts).equals(table.combine_chunks())
        # A row arrives when its stream has come to it: late rows are in the batch of their time.
        reached = accumulate(times[name], max)
        batches = Counter((newest - first) // 2_000_000 for newest in reached)
        assert [part.num_rows for part in parts] == [batches[b] for b in range(3)]
        assert all(batches[b] for b in range(3))


def test_the_demo_without_duckdb(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_spec(name: str, package: str | None = None) -> None:
        assert name == "duckdb"

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    assert main(["demo", "--local", "--seconds", "1"]) == 0
    assert "DuckDB is not installed" in capsys.readouterr().out


def test_the_market_is_the_same_every_time() -> None:
    first, second = market(1, 3), market(1, 3)
    assert first == second
    assert first != market(1, 4)
    assert list(first) == [spec.name for spec in specs()]
    assert first["quotes"].column_names == ["ts", "sym", "bid", "ask"]
    assert set(first["orders"].column("side").to_pylist()) == {"buy", "sell"}
