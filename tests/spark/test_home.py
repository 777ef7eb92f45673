"""What a newcomer from Spark meets: a default session, Berlin time, no watermark, wrong names."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import plait
from plait.api.join import Join
from plait.errors import CheckpointMismatch, MissingRequirement, SourceError, TypeMismatch
from plait.spark.environment.partitions import parallelism
from plait.spark.environment.settings import ROCKSDB, SPARKS_STORE, STORE, store_in_rocksdb

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

ROW = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64())])


@pytest.fixture
def plain(spark: SparkSession) -> Iterator[SparkSession]:
    """A session as Spark makes it, in Berlin: nothing of what Plait likes is set."""
    session = spark.newSession()
    session.conf.set(STORE, SPARKS_STORE)
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield session


def stream(session: SparkSession, where: Path, seconds: list[int]) -> DataFrame:
    """A stream with one row per file and batch."""
    where.mkdir(parents=True, exist_ok=True)
    for number, second in enumerate(seconds):
        table = pa.table({"ts": [second * 1_000_000], "k": [1]}, schema=ROW)
        if not (where / f"{number}.parquet").exists():
            pq.write_table(table, where / f"{number}.parquet")
    schema = session.read.parquet(str(where)).schema
    reader = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(where))


def asked(session: SparkSession, where: Path, a: list[int], b: list[int]) -> Join:
    frames = {"a": stream(session, where / "a", a), "b": stream(session, where / "b", b)}
    return plait.join(**frames).on("a.k = b.k").within("9 seconds").select("a.ts AS t", "b.ts AS u")


def finish(frame: DataFrame, checkpoint: Path, name: str) -> StreamingQuery:
    writer = frame.writeStream.format("noop").queryName(name).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()
    return query


def test_a_default_session_streams_and_nothing_is_late_without_a_watermark(
    plain: SparkSession, tmp_path: Path
) -> None:
    """Regression: the query died with STORE_BACKEND_NOT_SUPPORTED_FOR_TWS, or lost half."""
    question = asked(plain, tmp_path, [100, 50, 99], [100, 51, 98])
    assert "no watermark: no row is late, state grows" in question.explain()
    with pytest.warns(UserWarning, match="'a', 'b' has no watermark.*grows for ever"):
        frame = question.to_df(checkpoint=tmp_path / "ckpt")
    assert plain.conf.get(STORE) == ROCKSDB
    query = finish(frame, tmp_path / "ckpt", "endless")
    progress = plait.attach(query).progress()
    assert progress.total.results == 5 and not any(progress.total.late.values())
    assert any("has no watermark" in note for _, note in progress.notes)
    # Told a delay, rows are late; what an input came with is taken over.
    told = question.watermark("2 seconds").query
    assert [s.delay for s in told.streams] == [2_000_000, 2_000_000]
    frames = {n: f.withWatermark("ts", "3 seconds") for n, f in question.sources.items()}
    came = plait.join(**frames).on("a.k = b.k").within("9 seconds").query
    assert [s.delay for s in came.streams] == [3_000_000, 3_000_000]


def test_a_restart_takes_the_processors_of_its_checkpoint(
    plain: SparkSession, tmp_path: Path
) -> None:
    """Regression: on a machine with other cores the checkpoint was refused."""
    a, b = [10, 11], [10, 12]
    with plait.spark.partitions(plain, 3):
        first = asked(plain, tmp_path, a, b).watermark("5 seconds")
        finish(first.to_df(checkpoint=tmp_path / "ckpt"), tmp_path / "ckpt", "before")
    again = asked(plain, tmp_path, [*a, 13], [*b, 14]).watermark("5 seconds")
    with plait.spark.partitions(plain, 5), warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = again.to_df(checkpoint=tmp_path / "ckpt")
        query = finish(frame, tmp_path / "ckpt", "after")
    assert plait.attach(query).progress().total.results == 9
    assert len(plait.attach(query).progress().plans) == 3
    # A restart without new rows shows what there was.
    idle = finish(frame, tmp_path / "ckpt", "idle")
    assert plait.attach(idle).progress().total.results == 9
    with pytest.raises(CheckpointMismatch, match="processors was 3 and is now 4"):
        again.to_df(processors=4, checkpoint=str(tmp_path / "ckpt"))
    with pytest.raises(
        CheckpointMismatch, match=r"delay of a was 5 s and is now unlimited.*; rows would be let"
    ):
        asked(plain, tmp_path, a, b).to_df(checkpoint=tmp_path / "ckpt")


def test_another_checkpoint_than_was_told_is_refused(plain: SparkSession, tmp_path: Path) -> None:
    question = asked(plain, tmp_path, [10], [10]).watermark("1 second")
    with pytest.raises(StreamingQueryException) as refused:
        finish(question.to_df(checkpoint=tmp_path / "told"), tmp_path / "other", "elsewhere")
    reason = plait.spark.why(refused.value)
    assert isinstance(reason, CheckpointMismatch)
    assert "but the query was started with another" in str(reason)


def test_progress_says_what_is_wrong_with_the_question(plain: SparkSession, tmp_path: Path) -> None:
    question = asked(plain, tmp_path, [10], [10]).watermark("1 second")
    query = finish(question.to_df(name="prices"), tmp_path / "ckpt", "named")
    with pytest.raises(SourceError, match="has no join called 'price'; its joins are: 'prices'"):
        plait.attach(query, "price").progress()
    with pytest.raises(SourceError, match="has no join without a name; its joins are: 'prices'"):
        plait.attach(query).progress()
    other = finish(stream(plain, tmp_path / "a", []), tmp_path / "plain", "noplait")
    with pytest.raises(SourceError, match="the query noplait has no join of Plait"):
        plait.attach(other).progress()
    both = question.to_df().union(question.to_df())
    two = plait.attach(finish(both, tmp_path / "both", "two")).progress()
    assert any("2 joins of the same name" in note for _, note in two.notes)


def test_awkward_columns(plain: SparkSession) -> None:
    """Instants within structs and arrays, fields, and columns that nobody selects."""
    frame = plain.sql(
        "SELECT 1 k, timestamp'2024-07-01 00:30:00' ts, map('a', 1) m, interval '1' year y, "
        "named_struct('t', timestamp'2024-07-01 00:30:00', 'x', 5) st, "
        "array(timestamp'2024-07-01 00:30:00') arr, interval '1' day d"
    )
    begun = plait.join(a=frame, b=frame.select("k", "ts")).on("a.k = b.k").within("1 second")
    found = begun.select("a.k", "a.st", "a.st.x", "a.st.t AS at", "arr", "d").to_df()
    wanted = frame.selectExpr("k", "st", "st.x", "st.t AS at", "arr", "d")
    assert found.collect() == wanted.collect()
    assert found.collect()[0].d == dt.timedelta(days=1)
    for column, type_ in (("m", "map<string,int>"), ("y", "interval year")):
        with pytest.raises(TypeMismatch, match=f"a.{column} is of type {type_}, which Plait"):
            begun.select(f"a.{column}").to_df()


def test_configure_is_explained_and_undone(plain: SparkSession) -> None:
    with plait.spark.configure(plain, processors=7) as done:
        assert plain.conf.get(STORE) == ROCKSDB
        assert plain.conf.get("spark.sql.shuffle.partitions") == "7"
        assert "(was org.apache" in str(done) and "one partition of the state" in str(done)
    assert plain.conf.get(STORE) == SPARKS_STORE
    assert plain.conf.get("spark.sql.shuffle.partitions") == "2"
    assert plain.conf.get("spark.sql.session.timeZone") == "Europe/Berlin"


def test_check_is_a_table_with_remedies(plain: SparkSession) -> None:
    found = plait.spark.doctor(plain)
    verdicts = {f.what: f.verdict for f in found.findings}
    assert found.ok and verdicts["Plait of the workers"] == "ok"
    assert verdicts["state store"] == "note" and verdicts["time zone"] == "ok"
    assert "to_df sets RocksDB" in str(found)
    plain.conf.set(STORE, "com.example.Store")
    assert not plait.spark.doctor(plain).ok
    with pytest.raises(MissingRequirement, match=r"com\.example\.Store, but"):
        store_in_rocksdb(plain)


def test_the_cluster_says_how_many_processors(plain: SparkSession) -> None:
    """Regression: it was the number of the driver's cores."""
    assert parallelism(plain) == 2
