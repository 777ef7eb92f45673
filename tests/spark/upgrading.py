"""Queries that go on from their checkpoints with other questions, and the process that is killed.

    python -m tests.spark.upgrading FOLDER CASE ...

starts those cases with their second question, and says `ready` when each is in the middle of its
first batch with it. There it waits, to be killed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.upgrade_cases import CASES, SCHEMA, rows

import plait
from plait.api.join import Join


def write_inputs(where: Path, batches: Iterable[int]) -> None:
    for s, name in enumerate(("left", "right")):
        (where / name).mkdir(parents=True, exist_ok=True)
        for b in batches:
            path = where / name / f"{b}.parquet"
            pq.write_table(pa.Table.from_pylist(rows(s, b), SCHEMA), path)
            os.utime(path, (1_700_000_000 + b, 1_700_000_000 + b))


def base(spark: SparkSession, where: Path) -> Join:
    """What all of them have in common."""
    reader = spark.readStream.schema("ts timestamp, sym string, price double, venue string")
    frames = {
        name: reader.option("maxFilesPerTrigger", 1).parquet(str(where / name))
        for name in ("left", "right")
    }
    return plait.join(**frames).watermark("2 seconds").on("left.sym = right.sym")


def start(
    question: Join,
    where: Path,
    before: Callable[[int], None] = lambda _: None,
    after: Callable[[int], None] = lambda _: None,
) -> StreamingQuery:
    """A query that writes each batch to a folder of its own, over what is there."""

    def write(found: DataFrame, batch: int) -> None:
        before(batch)
        table: Any = found.toArrow()
        pq.write_table(table.cast(question.query.schema), where / "out" / f"{batch}.parquet")
        after(batch)

    (where / "out").mkdir(parents=True, exist_ok=True)
    checkpoint = str(where / "checkpoint")
    writer = question.to_df(checkpoint=checkpoint).writeStream.foreachBatch(write)
    return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def main(folder: Path, names: Sequence[str]) -> None:
    waiting = threading.Semaphore(0)

    def wait(_: int) -> None:
        waiting.release()
        time.sleep(3600)

    spark = plait.spark.session(2, memory="1g", scratch=folder / "scratch")
    for number, name in enumerate(names):
        question, where = CASES[name][1](base(spark, folder / "inputs")), folder / name
        # Half of them die before any task has run, the others when only Spark's log is missing.
        start(question, where, **{("before", "after")[number % 2]: wait})
        waiting.acquire()  # many that start at once time out
    print("ready", flush=True)
    time.sleep(3600)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
