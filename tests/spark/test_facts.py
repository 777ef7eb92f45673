"""What Plait relies on in Spark (docs/assumptions.md), tried on Spark alone."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


def test_a_repeated_batch_has_the_same_number_time_and_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.json").write_text('{"v": 1}\n')
    seen: list[tuple[int, int, int]] = []

    def sink(rows: DataFrame, batch: int) -> None:
        [row] = rows.collect()
        seen.append((batch, int(row[0]), int(row[1])))
        if len(seen) == 1:
            (source / "b.json").write_text('{"v": 2}\n')
            raise RuntimeError("it dies before the batch is committed")

    time = F.unix_millis(F.current_timestamp())
    rows = spark.readStream.schema("v LONG").json(str(source)).select("v", time)
    for _ in range(2):
        writer = rows.writeStream.foreachBatch(sink).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        with suppress(StreamingQueryException):
            query.awaitTermination()
    first, again, after = seen
    assert again == first, "although a file has come meanwhile"
    assert after[0] == first[0] + 1 and after[1] == 2 and after[2] > first[2]
