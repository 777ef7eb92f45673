"""Checkpoints: those of earlier versions, those of other queries, and disks that refuse.

`plait_lab.laws.golden` holds checkpoints of earlier versions. Before the format of the state
changes, write another one and keep the old ones:

    PLAIT_WRITE_GOLDEN=NAME python -m pytest -n 0 tests/spark/test_checkpoints.py -k golden
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import plait
from plait.api.join import Join
from plait.errors import CheckpointMismatch, StorageError
from plait.spark.checkpoint.stored_state import stored_contracts
from plait.testing.oracle.answer import Result, multiset, oracle, split_late
from plait_lab.laws import golden
from plait_lab.laws.golden import CHANGELOG, CHECKPOINTS, WRITTEN, golden_query, golden_rows

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

BATCHES = 4


def table(stream: int, batch: int) -> pa.Table:
    """The rows of a batch that the golden checkpoints are about."""
    return pa.Table.from_pylist(golden_rows(stream, batch), golden_query().streams[stream].schema)


@pytest.fixture
def small_changes(spark: SparkSession) -> Iterator[None]:
    """State as a log of changes, which is smaller than a snapshot."""
    before = spark.conf.get(CHANGELOG, "false") or "false"
    spark.conf.set(CHANGELOG, "true")
    yield
    spark.conf.set(CHANGELOG, before)


def question(spark: SparkSession, where: Path, batches: int) -> Join:
    frames = {}
    for s, name in enumerate(("left", "right")):
        folder = where / name
        folder.mkdir(parents=True, exist_ok=True)
        for b in range(batches):
            path = folder / f"{b}.parquet"
            pq.write_table(table(s, b), path)
            os.utime(path, (1_700_000_000 + b, 1_700_000_000 + b))
        reader = spark.readStream.schema("ts timestamp, sym string, price double")
        frames[name] = reader.option("maxFilesPerTrigger", 1).parquet(str(folder))
    return (
        plait.join(**frames)
        .watermark("2 seconds")
        .on("left.sym = right.sym")
        .within("8 seconds")
        .select("left.ts", "left.sym", "left.price", "right.price AS other")
    )


def run(
    asked: Join, checkpoint: Path, *, late: bool = False
) -> tuple[Counter[Result], StreamingQuery]:
    found: Counter[Result] = Counter()

    def collect(rows: Any, _: int) -> None:
        found.update(multiset(rows.toArrow().cast(asked.query.schema)))

    query = (
        asked.to_df(checkpoint=str(checkpoint), late=late)
        .writeStream.foreachBatch(plait.spark.each_batch(collect) if late else collect)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return found, query


def answer(asked: Join, batches: int) -> Counter[Result]:
    rows = [
        {name: table(s, b).to_pylist() for s, name in enumerate(("left", "right"))}
        for b in range(batches)
    ]
    return oracle(asked.query, split_late(asked.query, rows)[0])


@pytest.fixture(scope="module", autouse=True)
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Write a golden checkpoint, if there is to be another one."""
    name = os.environ.get("PLAIT_WRITE_GOLDEN")
    if name:
        spark.conf.set(CHANGELOG, "true")
        where = tmp_path_factory.mktemp("golden")
        found, _ = run(question(spark, where, WRITTEN), where / "checkpoint")
        assert found.total() > 0
        target = Path(golden.__file__).parent / "checkpoints" / name
        golden.pack(where / "checkpoint", target, where)
        CHECKPOINTS[name] = target


def test_the_golden_query_is_the_one_that_is_asked_here(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert question(spark, tmp_path, 1).query == golden_query()


@pytest.mark.usefixtures("small_changes")
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_oracle_goes_on_from_a_golden_checkpoint(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    files = [p for p in CHECKPOINTS[name].rglob("*") if p.is_file()]
    assert not any(b"/tmp" in p.read_bytes() for p in files)
    golden.unpack(CHECKPOINTS[name], checkpoint, tmp_path)
    asked = question(spark, tmp_path, BATCHES)
    with pytest.raises(CheckpointMismatch, match="bounds was all within 8 s and is now all within"):
        asked.within("3 seconds").to_df(checkpoint=str(checkpoint))
    # Idle timeouts and the output of late rows are no part of the contract: both may change.
    found, query = run(asked.idle("1 hour"), checkpoint, late=True)
    before, everything = answer(asked, WRITTEN), answer(asked, BATCHES)
    assert found == everything - before
    assert before and found, "there is something to remember and something to find"
    progress = plait.attach(query).progress()
    assert progress.processed == BATCHES, "counted on from the checkpoint"
    assert progress.total.results == everything.total()
    assert progress.total.rows == {"left": 9 * BATCHES, "right": 9 * BATCHES}
    assert progress.batches[0].counted.rebuilt == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes; only root can make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=2m", "plait-test", str(disk)]
    try:
        subprocess.run(made, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)  # Spark keeps a torn file open


@pytest.mark.usefixtures("small_changes")
def test_oracle_goes_on_after_a_read_only_and_a_full_disk(
    spark: SparkSession, tmp_path: Path, small_disk: Path
) -> None:
    checkpoint = small_disk / "checkpoint"
    found, _ = run(question(spark, tmp_path, 1), checkpoint)

    _remount(small_disk, "ro")
    with pytest.raises(StreamingQueryException) as refused:
        run(question(spark, tmp_path, 2), checkpoint)
    reason = plait.spark.why(refused.value)
    assert isinstance(reason, StorageError), refused.value
    _remount(small_disk, "rw")

    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(b"x" * 4096)
    with pytest.raises(StreamingQueryException) as full:
        run(question(spark, tmp_path, 2), checkpoint)
    reason = plait.spark.why(full.value)
    assert isinstance(reason, StorageError), full.value
    assert "No space left on device" in str(reason)
    filler.unlink()

    asked = question(spark, tmp_path, 3)
    found += run(asked, checkpoint)[0]
    assert found == answer(asked, 3)


def _remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def test_oracle_a_restarted_query_routes_by_the_seed_of_its_checkpoint(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver knows nothing of the seed but what the checkpoint says."""
    checkpoint = tmp_path / "checkpoint"
    found, _ = run(question(spark, tmp_path, 2), checkpoint)
    (seed,) = {json.loads(text)["hash"] for text in stored_contracts(spark, str(checkpoint))}
    assert int(seed, 16) >= 0
    monkeypatch.setattr("plait.spark.join.layout._SEEDS", {})
    asked = question(spark, tmp_path, BATCHES)
    found += run(asked, checkpoint)[0]
    assert found == answer(asked, BATCHES)
    again = {json.loads(text)["hash"] for text in stored_contracts(spark, str(checkpoint))}
    assert again == {seed}
