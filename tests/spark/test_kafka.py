"""Messages of Kafka as rows, without a broker: a table stands for the source.

`tests/integration/test_kafka.py` has the real one, and Avro, which needs a jar.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import plait
from plait.errors import DuplicateName, SourceError, UnknownColumn
from plait.groups.routing.malformed import MARK

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

MESSAGES = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT"
SCHEMA = "ts TIMESTAMP, k BIGINT, p DOUBLE, s STRING"
NOON = "2026-01-01T12:00:00Z"


def messages(spark: SparkSession, *values: bytes | None) -> DataFrame:
    rows = [(None, None if v is None else bytearray(v), "t", 0, i) for i, v in enumerate(values)]
    return spark.createDataFrame(rows, MESSAGES)


def test_json_values_are_rows_or_tell_what_is_wrong(spark: SparkSession) -> None:
    good = {
        b'{"ts":"2026-01-01T12:00:00Z","k":1,"p":1.5,"s":"x"}': (1, 1.5, "x"),
        b'{"k":1,"more":[true]}': (1, None, None),
        b"{}": (None, None, None),
        b'{"p":2,"s":3}': (None, 2.0, "3"),
    }
    bad = {
        b"": "no JSON object",
        b"  ": "no JSON object",
        b"null": "no JSON object",
        b"5": "no JSON object",
        b'[{"k":1}]': "no JSON object",
        b'{"k":1': "no JSON object",
        b'{"k":"one"}': "no JSON object",
        b'{"k":1.5}': "no JSON object",
        b'{"k":99999999999999999999}': "no JSON object",
        b'{"ts":"then"}': "no JSON object",
        b'{"s":"\xff"}': "no text in UTF-8",
        None: "no value",
    }
    frame = plait.spark.from_kafka(messages(spark, *good, *bad), SCHEMA, keep=["offset"])
    assert frame.columns == ["ts", "k", "p", "s", "offset", MARK]
    found = [row.asDict(recursive=True) for row in frame.collect()]
    for number, (row, wanted) in enumerate(zip(found, good.values(), strict=False)):
        assert (row["k"], row["p"], row["s"]) == wanted and row["offset"] == number
        assert row[MARK] is None
    for row, (value, problem) in zip(found[len(good) :], bad.items(), strict=True):
        mark = row.pop(MARK)
        assert set(row.values()) == {None}, "no column of it may take part in anything"
        assert mark["value"] == value and mark["problem"].startswith(problem), value
    assert found[0]["ts"] is not None and len(found) == len(good) + len(bad)


def test_what_cannot_work_is_named(spark: SparkSession) -> None:
    frame = messages(spark, b"{}")
    with pytest.raises(SourceError, match="no column 'offset', as messages of Kafka have"):
        plait.spark.from_kafka(frame.drop("offset"), SCHEMA)
    with pytest.raises(UnknownColumn, match="no column 'partitions'; did you mean 'partition'"):
        plait.spark.from_kafka(frame, SCHEMA, keep=["partitions"])
    with pytest.raises(DuplicateName, match="values have a column 'key'"):
        plait.spark.from_kafka(frame, "key STRING", keep=["key"])
    with pytest.raises(SourceError, match="no format 'jsn'; did you mean 'json'"):
        # A slip that types would notice.
        plait.spark.from_kafka(frame, SCHEMA, "jsn")  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="no schema of an Avro record"):
        plait.spark.from_kafka(frame, SCHEMA, "avro")
    with pytest.raises(SourceError, match="writers are schemas of Avro"):
        plait.spark.from_kafka(frame, SCHEMA, writers={1: ""})


def ipc(*keys: int) -> bytes:
    rows = pa.table({"ts": pa.array([datetime(2026, 1, 1, 12, tzinfo=UTC)] * len(keys)), "k": keys})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


def streamed(spark: SparkSession, folder: Path, *values: bytes) -> DataFrame:
    messages(spark, *values).write.parquet(str(folder))
    return spark.readStream.schema(MESSAGES).parquet(str(folder))


def test_a_join_counts_malformed_values_and_delivers_them_beside_the_results(
    spark: SparkSession, tmp_path: Path
) -> None:
    """To Spark and to a Delta table; one stream is JSON, the other Arrow."""
    texts = [json.dumps({"ts": NOON, "k": k}).encode() for k in (1, 2, 3)]
    a = plait.spark.from_kafka(
        streamed(spark, tmp_path / "a", *texts, b"{", b"7"), "ts TIMESTAMP, k INT"
    )
    b = plait.spark.from_kafka(
        streamed(spark, tmp_path / "b", ipc(1, 2, 2), b"junk"), "ts TIMESTAMP, k INT", "arrow"
    )
    asked = plait.join(a=a, b=b).on("k").within("1 second").watermark("1 second").select("a.k")
    assert "_malformed" not in asked.query.streams[0].schema.names
    query = (
        asked.to_df(late=True, checkpoint=tmp_path / "check")
        .writeStream.format("memory")
        .queryName("beside")
        .option("checkpointLocation", str(tmp_path / "check"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    total = plait.attach(query).progress().total
    assert total.malformed == {"a": 2, "b": 1} and total.rows == {"a": 5, "b": 4}
    assert "2 values of a could not be read" in str(plait.attach(query).progress())
    _check([row.asDict(recursive=True) for row in spark.table("beside").collect()])
    table = tmp_path / "table"
    asked.write_delta(
        table, checkpoint=tmp_path / "other", late=True, availableNow=True
    ).awaitTermination()
    from deltalake import DeltaTable

    _check(DeltaTable(table).to_pyarrow_table().to_pylist())


def _check(rows: list[dict[str, Any]]) -> None:
    assert sorted(row["k"] for row in rows if row["late"] is None) == [1, 2, 2]
    aside = [row["late"] for row in rows if row["late"] is not None]
    assert {late["reason"] for late in aside} == {"malformed"}
    assert all(late[name] is None for late in aside for name in ("a", "b", "event_time"))
    told = sorted((late["stream"], bytes(late["malformed"]["value"])) for late in aside)
    assert told == [("a", b"7"), ("a", b"{"), ("b", b"junk")]
