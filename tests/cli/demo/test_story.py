"""The demo, on a short stretch of its streams."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from plait.api.sql import sql
from plait.cli import main
from plait.cli.demo.on_spark import write_arrivals
from plait.cli.demo.outage import QUERY, WATERMARK, Outage, cut_arrivals, streams
from plait.groups.balance.manager import ManagerState, MoveEnded, manage
from plait.groups.balance.proposal import BalanceSetting
from plait.groups.moves.move import Move
from plait.node.reports.cluster_monitor import ClusterMonitor
from plait.node.reports.report import Report
from plait.node.reports.work import WORK
from plait.plan.text import read_plan
from plait.spark.environment import java
from plait_lab.laws.processors import Cluster

FIGURES = re.compile(r"^(Plait|DuckDB) +([\d,]+) +([0-9a-f]{16})$", re.MULTILINE)
LINE = re.compile(
    r"^ +(\d+) +\d+:\d\d +([\d,]+) +([\d,]+) +([\d.]+) [█-▏]+(?: +([\d.]+) )?", re.MULTILINE
)


def batches(out: str) -> list[tuple[str, ...]]:
    """The lines of batches: number, rows, results, seconds, and those of the frozen run."""
    return LINE.findall(out)


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.slow
def test_the_demo_changes_its_plan_and_proves_its_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--local", "--seed", "7"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert "binary join → results" in out
    told = batches(out)
    assert [int(line[0]) for line in told] == list(range(1, 24))
    assert [bool(line[4]) for line in told] == [True] * 11 + [False] * 12
    flood = out.partition("Errors flood in")[2].partition("a hot spot")[0]
    assert "margin=0.6, by default 0.2" in out
    assert "The plan becomes " in flood, "while both run, and the reason is told"
    assert "staying has cost" in flood
    assert "the frozen plan took" in out
    assert "0 late rows" in out and "5 of the results" in out
    (ours, duck) = FIGURES.findall(out)
    assert ours[1:] == duck[1:]
    assert number(ours[1]) == sum(number(line[2]) for line in told) > 0
    assert "The same results, every one of them." in out


@pytest.mark.integration
@pytest.mark.xdist_group("spark")
def test_the_demo_on_spark() -> None:
    command = [sys.executable, "-m", "plait", "demo", "--seconds", "4"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "The run on Spark" in ran.stdout
    told = batches(ran.stdout)
    assert [int(line[0]) for line in told] == list(range(1, 9))
    assert sum(bool(line[4]) for line in told) == 4, "the frozen run stops at the hot spot"
    assert "The same results, every one of them." in ran.stdout
    (ours, _) = FIGURES.findall(ran.stdout)
    assert number(ours[1]) == sum(number(line[2]) for line in told) > 0


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
    tables = streams(Outage(5), 3)
    assert write_arrivals(tables, 2.0, tmp_path) == 3
    times = {n: table.column("ts").cast(pa.int64()).to_pylist() for n, table in tables.items()}
    first = min(stamps[0] for stamps in times.values())
    for name, table in tables.items():
        parts = [pq.read_table(tmp_path / name / f"{b:03}.parquet") for b in range(3)]
        assert pa.concat_tables(parts).equals(table.combine_chunks())
        # A row arrives when its stream has come to it: late rows are in the batch of their time.
        reached = accumulate(times[name], max)
        counts = Counter((newest - first) // 2_000_000 for newest in reached)
        assert [part.num_rows for part in parts] == [counts[b] for b in range(3)]
        assert all(counts[b] for b in range(3))


def test_the_demo_without_duckdb(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_spec(name: str, package: str | None = None) -> None:
        assert name == "duckdb"

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    assert main(["demo", "--local", "--seconds", "1"]) == 0
    assert "DuckDB is not installed" in capsys.readouterr().out


def test_the_streams_are_the_same_every_time_and_turn_over() -> None:
    course = Outage(11.5)
    first, second = streams(course, 3), streams(course, 3)
    assert first == second
    assert first != streams(course, 4)
    starts = {name: pc.min(table["ts"]).cast(pa.int64()).as_py() for name, table in first.items()}
    begin = min(starts.values())

    def rows(name: str, since: float, until: float, host: str = "") -> int:
        table = first[name]
        at = (table["ts"].cast(pa.int64()).to_numpy() - begin) / 1e6
        within = (at >= since) & (at < until)
        if host:
            within &= table["host"].to_numpy() == host
        return int(within.sum())

    assert rows("requests", 0, 2) > 100 * rows("requests", 2, 11.5) > 0
    assert rows("errors", 3, 11.5) > 100 * rows("errors", 0, 3) > 0
    everything = sum(rows(name, 5.5, 11.5) for name in first)
    assert 0.4 < rows("errors", 5.5, 11.5, "host-007") / everything < 0.5
    assert rows("errors", 0, 5.5, "host-007") < 0.02 * rows("errors", 0, 5.5)


def seconds_of(report: Report) -> float:
    """About what its joins take of a core."""
    costs = {"inserts": 1e-7, "probes": 1e-7, "visited": 2e-9, "matches": 1e-8}
    done = [dict(zip(WORK, counted, strict=True)) for counted in report.work.values()]
    return sum(cost * counted[what] for counted in done for what, cost in costs.items())


@pytest.mark.slow
def test_the_hot_spot_is_seen_and_relieved() -> None:
    """As on Spark, with two processors in this process; moves are carried out.

    CPU times are made of what the joins have counted: whatever else the machine does, the decision
    is the same. By rows alone the neighbours of the hot group would move, and the work would stay.
    """
    course = Outage(46)
    tables = streams(course, 1)
    query = sql(tables, QUERY, watermark=WATERMARK).query
    cluster = Cluster(query, read_plan(query, "mjoin"), 2, seed=1)
    monitor = ClusterMonitor(cluster.processor.setup.query, len(cluster.table.places), 2)
    setting, manager = BalanceSetting(monitor.window), ManagerState()
    busiest, decided = list[float](), list[Move]()
    for batch in cut_arrivals(tables, course.batch)[9:20]:
        table = cluster.table
        cluster.run(batch, worker_of=lambda p: p)
        reports = [replace(report, cpu={"join": seconds_of(report)}) for report in cluster.reports]
        took = [report.cpu["join"] for report in reports]
        busiest.append(max(took) / sum(took))
        monitor.add(reports, table)
        said = {(a["move"], a["what"]) for r in cluster.reports for a in r.moves}
        ended = [m.number for m in table.under_way if (m.number, "received") in said]
        if ended:
            cluster.table = table.changed(cluster.batch, 2, end=ended)
            for number in ended:
                manager = manage(setting, manager, MoveEnded(number, monitor.time)).manager
        snapshot = monitor.snapshot(cluster.table, range(2))
        manager, decision, _ = (
            manage(setting, manager, snapshot) if snapshot else (manager, None, ())
        )
        if decision is not None and not decided:
            decided += decision.moves
            begin = decision.moves
            cluster.table = cluster.table.changed(cluster.batch, 2, begin=begin)
    (move,) = decided
    assert (len(move.groups), move.receivers, move.spread) == (1, (0, 1), query.index("errors"))
    assert busiest[4] > 0.8 and busiest[-1] < 0.65, busiest
