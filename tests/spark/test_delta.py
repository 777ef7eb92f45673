"""Results in a Delta table: each once, whatever is repeated, and no table that does not fit."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import plait
from plait.api.join import Join
from plait.errors import CheckpointMismatch, SourceError, TableMismatch
from plait.testing.oracle.answer import Result, multiset, oracle, split_late
from plait.testing.oracle.fates import LATE, NULL_KEY, set_aside
from plait_lab.torture.spark.campaign import table_files

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

_SECOND = 1_000_000
_ROW = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.string()),
        ("x", pa.float64()),
        ("when", pa.timestamp("us")),
        ("day", pa.date32()),
    ]
)
_SPARK = "ts timestamp, k string, x double, when timestamp_ntz, day date"


def rows(chance: Random, batch: int) -> list[dict[str, Any]]:
    """Rows out of order and some too late, with nulls, NaN and long texts."""
    return [
        {
            "ts": batch * 10 * _SECOND + chance.randrange(-15 * _SECOND, 10 * _SECOND),
            "k": chance.choice(["a", "b", "é" * 50, None]),
            "x": chance.choice([float("nan"), -0.0, 1.5, None]),
            "when": chance.choice([None, chance.randrange(1 << 50)]),
            "day": chance.choice([None, -700_000, 20_000]),
        }
        for _ in range(20)
    ]


class Fixture:
    """A question, what arrives, and where it goes."""

    def __init__(self, spark: SparkSession, where: Path, batches: int = 3) -> None:
        chance = Random(7)
        self.where, self.spark = where, spark
        self.table, self.checkpoint = where / "ta ble", where / "check point"
        self.batches: list[dict[str, list[dict[str, Any]]]] = []
        for _ in range(batches):
            self.arrive({name: rows(chance, len(self.batches)) for name in ("l", "r")})

    def arrive(self, batch: dict[str, list[dict[str, Any]]]) -> None:
        number = len(self.batches)
        self.batches.append(batch)
        for name, given in batch.items():
            path = self.where / name / f"{number}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.Table.from_pylist(given, _ROW), path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))

    def asked(self) -> Join:
        read = self.spark.readStream.schema(_SPARK).option("maxFilesPerTrigger", 1)
        frames = {name: read.parquet(str(self.where / name)) for name in ("l", "r")}
        outputs = [f"{s}.{f.name} AS {s}_{f.name}" for s in ("l", "r") for f in _ROW]
        asked = plait.join(**frames).time(l="ts", r="ts").watermark("2 seconds").on("l.k = r.k")
        return asked.within("8 seconds").select(*outputs)

    def run(self, **options: Any) -> None:
        self.asked().write_delta(
            self.table, checkpoint=self.checkpoint, availableNow=True, **options
        ).awaitTermination()

    def found(self) -> pa.Table:
        return DeltaTable(self.table).to_pyarrow_table()

    def results(self) -> Counter[Result]:
        schema = self.asked().query.schema
        found = self.found()
        if "late" in found.schema.names:
            found = found.filter(found["late"].is_null()).drop_columns(["late"])
        return multiset(found.cast(schema))

    def check_aside(self) -> None:
        """Compare the rows set aside with the definition."""
        expected = Counter(
            (name, reason)
            for name, reasons in set_aside(self.asked().query, self.batches).items()
            for reason, given in reasons.items()
            for _ in given
        )
        aside = self.found()["late"].drop_null().to_pylist()
        assert Counter((row["stream"], row["reason"]) for row in aside) == expected
        late = next(row for row in aside if row["reason"] == LATE)
        assert late["event_time"] == late[late["stream"]]["ts"]
        assert late["r" if late["stream"] == "l" else "l"] is None
        assert any(row["reason"] == NULL_KEY for row in aside)

    def answer(self) -> Counter[Result]:
        query = self.asked().query
        return oracle(query, split_late(query, self.batches)[0])

    def forget(self) -> None:
        """As if the driver had died before Spark had noted that the last batch was committed."""
        commits = self.checkpoint / "commits"
        last = max(int(p.name) for p in commits.iterdir() if p.name.isdigit())
        for name in (str(last), f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)


def test_oracle_each_result_once_whatever_is_repeated_or_written_by_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    here = Fixture(spark, tmp_path)
    here.run(late=True)
    assert here.results() == here.answer() and here.answer().total() > 30
    here.check_aside()
    # The driver dies after the table has the batch, and before the checkpoint says so.
    version, files = DeltaTable(here.table).version(), parts(here.table)
    here.forget()
    here.run(late=True)
    assert DeltaTable(here.table).version() == version, "the batch is not added again"
    assert parts(here.table) == files, "what it wrote again is gone"
    # Somebody else adds a row, which is no conflict, and the query goes on.
    other = here.found().filter(here.found()["late"].is_null()).slice(0, 1)
    write_deltalake(here.table, other, mode="append")
    here.arrive({name: rows(Random(8), 3) for name in ("l", "r")})
    here.run(late=True)
    alien = multiset(other.drop_columns(["late"]).cast(here.asked().query.schema))
    assert here.results() == here.answer() + alien
    here.check_aside()
    # Spark reads the same files with the same meaning.
    by_spark = spark.read.parquet(*map(str, table_files(here.table)))
    by_spark = by_spark.where("late IS NULL").drop("late")
    assert multiset(by_spark.toArrow().cast(here.asked().query.schema)) == here.results()
    # Somebody changes the schema after it was looked at, and before the next batch.
    here.arrive({name: rows(Random(9), 4) for name in ("l", "r")})
    query = start_late(here.asked(), here, {"l_k": ["x"], "more": [1]})
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()
    found = plait.attach(query).why()
    assert isinstance(found, TableMismatch) and "no column 'more'" in str(found)


def test_a_table_older_than_the_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Results had been missing in silence."""
    here, copy = Fixture(spark, tmp_path), tmp_path / "copy"
    here.run()
    shutil.copytree(here.table, copy)
    unmatched = [{**row, "k": None} for row in rows(Random(8), 3)]
    here.arrive({"l": unmatched, "r": unmatched})
    here.run()
    version = DeltaTable(here.table).version()
    assert version == DeltaTable(copy).version(), "that batch had no results, the copy is as good"
    shutil.rmtree(here.table)
    shutil.copytree(copy, here.table)
    here.arrive({name: rows(Random(9), 4) for name in ("l", "r")})
    here.run()
    assert here.results() == here.answer() and DeltaTable(here.table).version() > version
    here.arrive({name: rows(Random(10), 5) for name in ("l", "r")})
    for was in ("put back", "made anew"):
        shutil.rmtree(here.table)
        if was == "put back":
            shutil.copytree(copy, here.table)
        query = here.asked().write_delta(here.table, checkpoint=here.checkpoint, availableNow=True)
        with pytest.raises(StreamingQueryException):
            query.awaitTermination()
        found = plait.attach(query).why()
        assert isinstance(found, CheckpointMismatch), was
        assert "but batch 4 was written to its table: it is older than the ch" in str(found)


def test_what_does_not_fit_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    here = Fixture(spark, tmp_path, batches=1)
    write_deltalake(here.table, pa.table({"l_k": [1], "more": ["x"]}))
    with pytest.raises(TableMismatch, match=r"no column 'l_ts'.*no column 'more'.*'l_k' is long"):
        here.run()
    assert not here.checkpoint.exists(), "nothing has begun"
    static = plait.join(
        l=spark.range(1).selectExpr("now() ts", "id k"), r=here.asked().sources["r"]
    )
    with pytest.raises(SourceError, match="'l' is a static DataFrame"):
        static.on("l.k = length(r.k)").within("1 second").write_delta("x", checkpoint="y")


def start_late(asked: Join, here: Fixture, more: dict[str, list[Any]]) -> Any:
    from plait.spark.io import write_delta as delta

    start = delta.start_delta

    def changed(*given: Any) -> Any:
        write_deltalake(here.table, pa.table(more), mode="append", schema_mode="merge")
        return start(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta, "start_delta", changed)
        return asked.write_delta(
            here.table, checkpoint=here.checkpoint, late=True, availableNow=True
        )


def parts(table: Path) -> set[str]:
    return {p.name for p in table.glob("*.parquet")}
