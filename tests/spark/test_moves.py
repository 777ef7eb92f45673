"""Law 4 on Spark: partition groups move while the query runs, and nothing is lost or repeated."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.balance.managed_story import last_balanced

import plait
from plait.errors import CheckpointDamaged, MoveError
from plait.machine.stores import LocalStore
from plait.spark.balance.moves import moves_of
from plait.spark.control.directory import Control
from plait.spark.control.routing_tables import RoutingTables

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

NAMES = ("a", "b", "c")
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64())])
BATCHES, SECOND = 24, 1_000_000


def tables(batch: int) -> dict[str, pa.Table]:
    """Rows of ten seconds, in order, so that none is late."""
    chance, found = Random(batch), {}
    for number, name in enumerate(NAMES):
        times = sorted(chance.randrange(batch * 10, batch * 10 + 10) for _ in range(40))
        found[name] = pa.table(
            {
                "ts": pa.array([t * SECOND for t in times]).cast(SCHEMA.field("ts").type),
                "k": [f"key {chance.randrange(12)}" for _ in times],
                "v": [1_000_000 * number + 1_000 * batch + i for i in range(len(times))],
            },
            SCHEMA,
        )
    return found


class Story:
    """A query whose files come one batch at a time."""

    def __init__(
        self, spark: SparkSession, where: Path, balance: plait.BalancePolicy | bool = False
    ) -> None:
        self.spark, self.where, self.balance = spark, where, balance
        self.arrived = 0
        self.arrive()
        self.query = self.start()

    def arrive(self) -> None:
        for name, table in tables(self.arrived).items():
            (self.where / name).mkdir(parents=True, exist_ok=True)
            new = self.where / f"new-{name}"
            pq.write_table(table, new)
            os.utime(new, (1_700_000_000 + self.arrived,) * 2)
            new.rename(self.where / name / f"{self.arrived:03}.parquet")
        self.arrived += 1

    def start(self, processors: int | None = None) -> StreamingQuery:
        frames = {
            name: self.spark.readStream.schema("ts TIMESTAMP, k STRING, v LONG")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self.where / name))
            for name in NAMES
        }
        join = asked(frames).balance(self.balance)
        place = str(self.where / "checkpoint")
        results = join.to_df(checkpoint=place, processors=processors)
        writer = results.writeStream.format("parquet").option("path", str(self.where / "out"))
        return writer.option("checkpointLocation", str(self.where / "checkpoint")).start()

    def batch(self) -> None:
        """One batch more, which the manager beside the query has time to look at."""
        self.arrive()
        self.query.processAllAvailable()
        control = Control(str(self.where / "checkpoint" / "plait" / "join"), True)
        ended = control.reports(str(self.query.id)).last_ended(2)
        deadline = time.monotonic() + 10
        while ended is not None and last_balanced(control) < ended:
            assert time.monotonic() < deadline, "the balancer does not run"
            time.sleep(0.05)

    def until(self, holds: Callable[[], bool]) -> None:
        """As many batches as it takes."""
        for _ in range(BATCHES):
            if holds():
                return
            self.batch()
        raise AssertionError(f"it never happened:\n{plait.attach(self.query).progress()}")

    def until_at_rest(self) -> int:
        """As many batches as it takes until no move is under way."""
        for number in range(BATCHES):
            if not moves_of(self.query).table.under_way:
                self.batch()  # the first one after the move
                return number
            self.batch()
        raise AssertionError(f"it never ended: {moves_of(self.query).table.under_way}")

    def found(self) -> Counter[tuple[int, ...]]:
        rows = self.spark.read.parquet(str(self.where / "out")).collect()
        return Counter((row["a"], row["b"], row["c"]) for row in rows)

    def wanted(self) -> Counter[tuple[int, ...]]:
        whole = [tables(batch) for batch in range(self.arrived)]
        sources = {name: pa.concat_tables([t[name] for t in whole]) for name in NAMES}
        found = asked(sources).run().table.to_pylist()
        return Counter((row["a"], row["b"], row["c"]) for row in found)


def test_oracle_the_manager_beside_a_query_empties_a_processor_and_fills_it_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    story = Story(spark, tmp_path, plait.BalancePolicy(active=1, confirm=1, rest=0))

    def held() -> set[int]:
        newest = RoutingTables(
            LocalStore(tmp_path / "checkpoint" / "plait" / "join" / "tables")
        ).newest()
        return {0, 1} if newest is None else {p for place in newest.places for p in place}

    try:
        story.query.processAllAvailable()
        story.until(lambda: len(held()) == 1)
        [stays] = held()
        all_there = f"128 groups: 128 on processor {stays}"
        story.until(lambda: all_there in str(plait.attach(story.query).progress()))
        found = plait.attach(story.query).progress()
        assert found.placement is not None and not found.placement.moves
        assert f"processor {1 - stays} to leave, 1 of 2 remain" in str(found)
        story.query.stop()
        story.balance = plait.BalancePolicy(
            active=2, confirm=1, rest=0, margin=0.05, payback=0, least=0
        )
        story.query = story.start()
        story.query.processAllAvailable()
        story.until(lambda: len(held()) == 2)
        for _ in range(3):
            story.arrive()
            story.query.processAllAvailable()
    finally:
        story.query.stop()
    found_rows = story.found()
    assert found_rows == story.wanted() and found_rows.total() > 500


def asked(sources: dict[str, DataFrame] | dict[str, pa.Table]) -> plait.Join:
    return (
        plait.join(**sources)
        .time(a="ts", b="ts", c="ts")
        .watermark("5 seconds")
        .on("a.k = b.k", "b.k = c.k")
        .within("15 seconds")
        .select("a.v AS a", "b.v AS b", "c.v AS c")
    )


def test_oracle_groups_move_by_both_protocols_and_across_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    story = Story(spark, tmp_path)
    try:
        story.query.processAllAvailable()
        moves = moves_of(story.query)
        with pytest.raises(MoveError, match="there is no group 4000"):
            moves.begin([4000], [1])
        with pytest.raises(MoveError, match="is on processor 0 already"):
            moves.begin([0], [0])
        with pytest.raises(MoveError, match="there is no processor 7"):
            moves.begin([0], [7])
        moves.begin(range(48), [1])
        with pytest.raises(MoveError, match="group 5 is moving already"):
            moves.begin([5], [1])
        story.until_at_rest()
        assert moves.table.places[0] == (1,)
        moves.begin(range(32), [0, 1], spread=0)
        story.batch()
        story.query.stop()
        # Another driver goes on: all it needs is in the checkpoint.
        story.arrive()
        story.query = story.start()
        story.query.processAllAvailable()
        story.until_at_rest()
        moves = moves_of(story.query)
        assert moves.table.places[0] == (0, 1) and moves.table.spread
        moves.begin(range(100, 128), [0], "PTLB")
        assert story.until_at_rest() >= 2, "old rows have to leave their windows"
        moves.begin(range(32), [0], "MSLB")
        story.batch()
        moves.give_up(moves.table.under_way[0].number)
        transfers = tmp_path / "checkpoint" / "plait" / "join" / "transfer"
        story.until(lambda: not list(transfers.glob("[0-9]*")))
        assert moves.table.places[0] == (0, 1)
    finally:
        story.query.stop()
    found = story.found()
    assert found == story.wanted() and found.total() > 1_000
    control = tmp_path / "checkpoint" / "plait" / "join"

    shutil.rmtree(control / "tables")
    story.arrive()
    story.query = story.start()
    with pytest.raises(Exception, match="tables between them are missing"):
        story.query.processAllAvailable()
    assert isinstance(plait.attach(story.query).why(), CheckpointDamaged)
