"""Mail read by Spark: what was sent arrives, whatever clocks have said."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from plait.sites.spark.mail import Mailbox

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

_DAY = 86_400
_CLOCKS = (0, 30 * _DAY, 0, -30 * _DAY, 0, -100 * 365 * _DAY, 400 * 365 * _DAY, 0)
"""What the clock of the sender was wrong by, in seconds, for each file."""


def _sent(box: Mailbox, number: int, at: float) -> None:
    """One batch of mail as Spark's file sink writes it, by a clock that says `at`."""
    folder = box.mail("all")
    path = folder / "box=to-rome" / f"{number}.parquet"
    path.parent.mkdir(exist_ok=True)
    text = pa.array(["q"])
    blob = pa.array([b"x"], pa.binary())
    names = ["question", "origin", "channel", "number", "digest", "body"]
    columns = [text, text, text, pa.array([number]), blob, blob]
    pq.write_table(pa.table(columns, names=names), path)
    entry = {
        "path": path.as_uri(),
        "size": path.stat().st_size,
        "isDir": False,
        "modificationTime": round(1000 * at),
        "blockReplication": 1,
        "blockSize": 33_554_432,
        "action": "add",
    }
    (folder / "_spark_metadata" / str(number)).write_text("v1\n" + json.dumps(entry))


def _read(frame: DataFrame, folder: Path) -> None:
    """All that is new, into a folder."""
    writer = frame.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.start(str(folder / "read")).awaitTermination()


def test_no_clock_decides_whether_mail_is_read(spark: SparkSession, tmp_path: Path) -> None:
    box = Mailbox(tmp_path / "box")
    box.prepare(["all"])
    for number, wrong in enumerate(_CLOCKS):
        _sent(box, number, time.time() + wrong)
        _read(box.stream(spark, "all").select("number"), tmp_path)
    read = spark.read.parquet(str(tmp_path / "read")).collect()
    assert sorted(row.number for row in read) == [*range(len(_CLOCKS))]
