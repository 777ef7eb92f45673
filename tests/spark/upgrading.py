"""Queries that go on from their checkpoints with other questions, and the process that is killed.

    python -m tests.spark.upgrading FOLDER

starts all of them with their second question, and says `ready` when each is in the middle of its
first batch with it. There it waits, to be killed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import plait
from plait.api import Join
from plait.hosts.spark.session import local_session

SINCE, BATCHES = 2, 4
"""The first batch with the second question, and how many batches there are in all."""
SECOND = 1_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("sym", pa.string()),
        ("price", pa.float64()),
        ("venue", pa.string()),
    ]
)


def rows(stream: int, batch: int) -> list[dict[str, object]]:
    """Twelve rows, within ten seconds, out of order; one of them is late, one has no symbol."""
    seconds = [10 * batch + (7 * i + 3 * stream) % 10 for i in range(11)] + [10 * batch - 15]
    return [
        {
            "ts": s * SECOND + stream,
            "sym": None if i == 5 else "AB"[(i + stream) % 2],
            "price": (5 * i + batch) % 7 + stream / 2,
            "venue": f"v{batch}",
        }
        for i, s in enumerate(seconds)
    ]


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


USUAL = ("left.ts", "left.sym", "left.price", "right.price AS other")
Asked = Callable[[Join], Join]


def _plain(q: Join) -> Join:
    return q.within("6 seconds")


def _same(q: Join) -> Join:
    return _plain(q).select(*USUAL)


CASES: dict[str, tuple[Asked, Asked]] = {
    "another expression": (_same, lambda q: _same(q).select("left.price * 2 AS twice")),
    "a column that was not kept": (_same, lambda q: _same(q).select("right.venue")),
    "a column less": (_same, lambda q: _plain(q).select(*USUAL[:2])),
    "a narrower window": (_same, lambda q: q.within("3 seconds").select(*USUAL)),
    "a wider window": (_same, lambda q: q.within("15 seconds").select(*USUAL)),
    "a condition": (_same, lambda q: _same(q).where("left.price > right.price")),
    "another condition": (
        lambda q: _same(q).where("left.price > right.price"),
        lambda q: _same(q).where("left.price < right.price + 1"),
    ),
    "a filter": (_same, lambda q: _same(q).where("left.venue <> 'v3'", "right.price > 2")),
    "a filter less": (lambda q: _same(q).where("right.price > 2"), _same),
    "a stricter lateness": (lambda q: _same(q).lateness("least"), _same),
    "a longer delay": (_same, lambda q: _same(q).watermark("4 seconds")),
    "a shorter delay": (_same, lambda q: _same(q).watermark("1 second")),
}
"""The first and the second question, by what changes."""


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


def main(folder: Path) -> None:
    waiting = threading.Semaphore(0)

    def wait(_: int) -> None:
        waiting.release()
        time.sleep(3600)

    spark = local_session(2, memory="1g", scratch=folder / "scratch")
    for number, (name, (_, second)) in enumerate(CASES.items()):
        question, where = second(base(spark, folder / "inputs")), folder / name
        # Half of them die before any task has run, the others when only Spark's log is missing.
        start(question, where, **{("before", "after")[number % 2]: wait})
        waiting.acquire()  # many that start at once time out
    print("ready", flush=True)
    time.sleep(3600)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
