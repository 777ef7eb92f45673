"""Batches in which no processor runs, because no input has a partition: nothing ends, all is there.

One stream comes in files of 0 bytes then, the other in a folder that a filter leaves out.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.balance.managed_story import last_balanced

import plait
from plait.api.join import Join
from plait.groups.moves.move import Protocol
from plait.spark.balance.moves import moves_of
from plait.spark.control.directory import Control

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

Row = dict[str, Any]
SCHEMA = "s LONG, k STRING, v LONG"
EPOCH = 1_700_000_000


def rows(batch: int, stream: int) -> list[Row]:
    """Rows of ten seconds; some have no key, and so are set aside."""
    chance = Random(10 * batch + stream)
    return [
        {
            "s": EPOCH + 10 * batch + chance.randrange(10),
            "k": chance.choice([*"abcdefgh", None]),
            "v": 1_000_000 * stream + 1_000 * batch + i,
        }
        for i in range(20)
    ]


class Story:
    """A query whose files come one batch at a time, some of them without rows."""

    def __init__(self, spark: SparkSession, where: Path) -> None:
        self.spark, self.where = spark, where
        self.checkpoint, self.table = where / "checkpoint", where / "table"
        self.given: dict[str, list[Row]] = {"l": [], "r": []}
        self.files = 0
        self.query: StreamingQuery | None = None

    def arrive(self, *, empty: bool = False) -> None:
        """The files of one batch."""
        for stream, name in enumerate(("l", "r")):
            given = rows(self.files, stream)
            text = "".join(f"{json.dumps(row)}\n" for row in given)
            folder = self.where / name / ("day=none" if name == "r" and empty else "day=some")
            folder.mkdir(parents=True, exist_ok=True)
            new = self.where / "new"
            new.write_text("" if name == "l" and empty else text)
            os.utime(new, (EPOCH + self.files,) * 2)
            new.rename(folder / f"{self.files:03}.json")
            if not empty:
                self.given[name] += given
        self.files += 1

    def asked(self) -> Join:
        def read(name: str) -> DataFrame:
            source = self.spark.readStream.schema(f"{SCHEMA}, day STRING")
            frame = source.option("maxFilesPerTrigger", 1).json(str(self.where / name))
            return frame.where("day = 'some'").selectExpr("timestamp_seconds(s) ts", "k", "v")

        return question({"l": read("l"), "r": read("r")})

    def start(self, *, delta: bool = False) -> StreamingQuery:
        if delta:
            self.query = self.asked().write_delta(self.table, checkpoint=self.checkpoint, late=True)
        else:
            found = self.asked().to_df(checkpoint=self.checkpoint, late=True)
            writer = found.writeStream.format("parquet").option("path", str(self.table))
            self.query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        return self.query

    def batch(self, *, empty: bool = False) -> None:
        """One batch more, which the manager beside the query has time to look at."""
        assert self.query is not None
        self.arrive(empty=empty)
        self.query.processAllAvailable()
        deadline = time.monotonic() + 20
        while self.ran() and last_balanced(self.control) < self.ended:
            assert time.monotonic() < deadline, "the balancer does not run"
            time.sleep(0.05)

    @property
    def control(self) -> Control:
        return Control(str(self.checkpoint / "plait" / "join"), True)

    @property
    def ended(self) -> int:
        """The last batch that has ended."""
        assert self.query is not None
        found = self.control.reports(str(self.query.id)).last_ended(2)
        return -1 if found is None else found

    def ran(self) -> list[int]:
        """The batches in which processors ran."""
        assert self.query is not None
        return self.control.reports(str(self.query.id)).batches()

    def check(self, found: pa.Table) -> None:
        """Compare everything with the definition: the same question in one process."""
        columns = {
            name: pa.table(
                {
                    "ts": pa.array([1_000_000 * row["s"] for row in given], pa.timestamp("us")),
                    "k": [row["k"] for row in given],
                    "v": [row["v"] for row in given],
                }
            )
            for name, given in self.given.items()
        }
        wanted = Counter(
            (row["lv"], row["rv"]) for row in question(columns).run().table.to_pylist()
        )
        results = found.filter(found["late"].is_null()).to_pylist()
        assert Counter((row["lv"], row["rv"]) for row in results) == wanted
        assert wanted.total() > 50
        aside = Counter(row["stream"] for row in found["late"].drop_null().to_pylist())
        assert aside == {
            name: sum(row["k"] is None for row in given) for name, given in self.given.items()
        }


def question(sources: dict[str, Any]) -> Join:
    """Asked of streams, and of all rows at once."""
    join = plait.join(**sources).time(l="ts", r="ts").watermark("5 seconds").on("l.k = r.k")
    return join.within("25 seconds").select("l.v AS lv", "r.v AS rv")


def test_oracle_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    """It had been an AssertionError, again with every start."""
    story = Story(spark, tmp_path)
    story.arrive(empty=True)
    query = story.start(delta=True)
    query.processAllAvailable()
    assert not story.ran(), "before the first batch there is no state, either"
    query.stop()
    story.start(delta=True)
    for empty in (False, True, True, False, True):
        story.batch(empty=empty)
    assert story.query is not None
    story.query.stop()
    query = story.start(delta=True)
    for empty in (True, False):
        story.batch(empty=empty)
    assert 3 <= len(story.ran()) < story.ended, "the two files of a batch may come in two"
    assert plait.attach(query).progress().batches[-1].number == story.ended
    assert plait.attach(query).progress().total.rows == {"l": 60, "r": 60}
    query.stop()
    story.check(DeltaTable(story.table).to_pyarrow_table())


@pytest.mark.parametrize("protocol", ["PTLB", "MSLB"])
def test_oracle_moves(spark: SparkSession, tmp_path: Path, protocol: Protocol) -> None:
    """They had ended with «is missing», or with tables that are missing."""
    story = Story(spark, tmp_path)
    story.arrive()
    query = story.start()
    try:
        query.processAllAvailable()
        story.batch()
        moves = moves_of(query)
        here = [g for g, place in enumerate(moves.table.places) if place == (0,)]
        moves.begin(here[:20], [1], protocol)
        moves.begin(here[20:40], [1], "PTLB")
        first, second = (story.control.tables.numbered(number) for number in (1, 2))
        while story.ended + 1 < first.since:
            story.batch()
        while story.ended + 1 < second.since:
            story.batch(empty=True)  # no batch goes by the first table
        story.batch()
        for _ in range(40):
            if not moves.table.under_way and story.ended > moves.table.since + 1:
                break
            story.batch(empty=story.files % 2 == 0)
        assert not moves.table.under_way
        assert all(moves.table.places[g] == (1,) for g in here[:40])
        story.batch()
        transfers = story.checkpoint / "plait" / "join" / "transfer"
        story.batch()
        assert not list(transfers.glob("[0-9]*"))
    finally:
        query.stop()
    assert len(story.ran()) < story.ended
    story.check(spark.read.parquet(str(story.table)).toArrow())
