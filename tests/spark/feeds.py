"""Four streams at four sites, as files that Spark reads: for the tests of `plait.sites`."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import plait
from plait.sites.spark.join import PlacedJoin
from plait.spark.join.schemas import arrow_schema
from plait.testing.oracle.answer import multiset, oracle

STREAMS = ("a", "b", "c", "d")
AT = {"oslo": ["a"], "rome": ["b"], "bonn": ["c"], "kyiv": ["d"]}
TURNED = {"a": 8, "b": 8, "c": 4, "d": 30}
"""Rows of each stream in a file that are other than `SAID`, so that the plan changes."""
SAID = {
    stream: {"rate": rows / 10, "factor": 0.25}
    for stream, rows in {"a": 30, "b": 30, "c": 4, "d": 4}.items()
}
"""What is said of the streams. A file has the rows of ten seconds, with four keys."""
SLOW = [("oslo", "rome", 0.5, 500.0), ("rome", "oslo", 0.5, 500.0)]
_SCHEMA = "k BIGINT, v BIGINT, ts TIMESTAMP"
_SECOND = 1_000_000


class Feeds:
    """Folders of files, one for each stream, and all rows that were written there."""

    def __init__(self, folder: Path, seed: int = 0, sizes: Mapping[str, int] | None = None) -> None:
        self.folder = folder
        self.rows: dict[str, list[pa.Table]] = {stream: [] for stream in STREAMS}
        self._sizes = sizes or dict.fromkeys(STREAMS, 12)
        self._chance = random.Random(seed)
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True, exist_ok=True)

    def write(self, number: int, keys: int = 4) -> None:
        """One more file for each stream: rows of the next ten seconds, in any order."""
        for stream in STREAMS:
            rows = self._sizes[stream]
            # The last second is there in each file, so all streams come equally far.
            seconds = [9, *(self._chance.randrange(10) for _ in range(rows - 1))]
            times = [(10 * number + second) * _SECOND for second in seconds]
            table = pa.table(
                {
                    "k": pa.array([self._chance.randrange(keys) for _ in range(rows)], pa.int64()),
                    "v": pa.array(range(rows), pa.int64()),
                    "ts": pa.array(times, pa.timestamp("us", "UTC")),
                }
            )
            draft = self.folder / stream / f"_{number}"
            pq.write_table(table, draft)
            os.rename(draft, self.folder / stream / f"{number:04d}.parquet")
            self.rows[stream].append(table)

    def wanted(self, placed: PlacedJoin) -> Counter[Any]:
        """What the definition says, over all rows so far."""
        tables = {stream: pa.concat_tables(tables) for stream, tables in self.rows.items()}
        return oracle(placed.setup.query, tables)


def placed_at(
    spark: SparkSession, folder: Path, streams: Sequence[str] = STREAMS, **options: Any
) -> PlacedJoin:
    """The join of the four streams; only those listed are DataFrames, as at a site."""
    frames: dict[str, Any] = {s: frame_of(spark, folder / s) for s in STREAMS}
    sources = {s: f if s in streams else arrow_schema(f) for s, f in frames.items()}
    asked = (
        plait.join(**sources)
        .time(**dict.fromkeys(STREAMS, "ts"))
        .watermark("30 seconds")
        .on("a.k = b.k", "b.k = c.k", "c.k = d.k")
        .within("6 seconds")
        .select("a.k", "a.v AS av", "b.v AS bv", "c.v AS cv", "d.v AS dv", "d.ts")
    )
    settings: Mapping[str, Any] = {"at": AT, "latency": 0.005, "rate": 128_000} | options
    return plait.sites.place(asked, **settings)


def frame_of(spark: SparkSession, folder: Path) -> DataFrame:
    """The files of a stream, one in each batch."""
    return spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def found_in(spark: SparkSession, frame: DataFrame, folder: Path) -> Counter[Any]:
    """All that a stream of results has, through a sink of Spark's."""
    target = str(folder / "results")
    writer = frame.writeStream.format("parquet").option(
        "checkpointLocation", str(folder / "results-checkpoint")
    )
    writer.trigger(availableNow=True).start(target).awaitTermination()
    return multiset(spark.read.schema(frame.schema).parquet(target).toArrow())
