from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.adapt.conftest import batches
from typer.testing import CliRunner

from plait.cli.app import app
from plait.node.reports.event_log import read_events

SQL = """
SELECT a.k, c.v FROM s0 a
JOIN s1 b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 4 SECONDS AND a.ts + INTERVAL 4 SECONDS
JOIN s2 c ON b.m = c.m AND c.ts BETWEEN b.ts - INTERVAL 4 SECONDS AND b.ts + INTERVAL 4 SECONDS
         AND c.ts BETWEEN a.ts - INTERVAL 4 SECONDS AND a.ts + INTERVAL 4 SECONDS
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The events of a run over files."""
    root = tmp_path_factory.mktemp("replay")
    tables = batches(20, lambda s: "k" if s < 10 else "m", rate=3_000)
    options = []
    for name in ("s0", "s1", "s2"):
        pq.write_table(pa.concat_tables([b[name] for b in tables]), root / f"{name}.parquet")
        options += ["-s", f"{name}={root / name}.parquet"]
    done = CliRunner().invoke(
        app,
        ["run", "-q", SQL, *options, "-t", "ts", "-w", "0 seconds", "--batch-seconds", "1",
         "-o", str(root / "out.parquet"), "--events", str(root / "events.jsonl")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "the plan became" in done.output
    return root / "events.jsonl"


@pytest.mark.slow
def test_a_run_writes_what_it_decided(log: Path) -> None:
    events = read_events(log)
    assert events[0].kind == "started" and any(e.kind == "migrated" for e in events)


@pytest.mark.slow
def test_the_same_policy_and_another_one(log: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    same = runner.invoke(app, ["query", "replay", str(log)])
    assert same.exit_code == 0 and "replayed with the same policy: " in same.output
    out = tmp_path / "replay.json"
    other = runner.invoke(
        app, ["query", "replay", str(log), "--policy", "margin=1", "--json", str(out)]
    )
    assert other.exit_code == 0 and "replayed with margin=1: 0 moves" in other.output
    figures = json.loads(out.read_text())
    assert figures["moves"] == 0 < figures["recorded_moves"]
    assert figures["policy"]["margin"] == 1 and len(figures["decisions"]) == figures["comparisons"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("marg=1", "a policy has no 'marg'"),
        ("margin", "'margin' is no threshold"),
        ("margin=much", "the threshold margin is 'much', not a number"),
        ("margin=7", "a policy with margin=7"),
    ],
)
def test_bad_thresholds_are_refused(log: Path, argument: str, message: str) -> None:
    done = CliRunner().invoke(app, ["query", "replay", str(log), "--policy", argument])
    assert done.exit_code != 0 and message in str(done.exception)


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["query", "replay", str(tmp_path / "nothing.jsonl")])
    assert done.exit_code != 0 and "cannot be read" in str(done.exception)


@pytest.mark.slow
def test_a_plan_that_is_given_is_kept(log: Path) -> None:
    root = log.parent
    streams = [x for n in ("s0", "s1", "s2") for x in ("-s", f"{n}={root / n}.parquet")]
    done = CliRunner().invoke(
        app,
        ["run", "-q", SQL, *streams, "-t", "ts", "-w", "0 seconds", "--batch-seconds", "1",
         "-o", str(root / "kept.parquet"), "--plan", "((a b) c)"],
    )  # fmt: skip
    assert done.exit_code == 0 and "the plan became" not in done.output


def test_a_checkpoint_is_as_good_as_its_log(log: Path, tmp_path: Path) -> None:
    for join in ("join", "second"):
        events = tmp_path / "plait" / join / "events"
        events.mkdir(parents=True)
        (events / "0.jsonl").write_text(log.read_text())
        done = CliRunner().invoke(app, ["query", "replay", str(tmp_path), "--json", "-"])
        if join == "join":
            assert done.exit_code == 0 and json.loads(done.output)["decisions"]
    assert "has several joins" in str(done.exception)
