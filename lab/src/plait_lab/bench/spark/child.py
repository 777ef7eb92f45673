"""One Spark system on one workload: `python -m plait_lab.bench.spark.child`, its own process.

Every system reads the same files, one of each stream per batch. Number and checksum of the results
are computed by the same expression for all, in one of two ways. An aggregate in `foreachBatch` is
compiled and costs least per result; `observe` on the way to the `noop` sink costs more per result,
but no further job in every batch. So the first is for many results, the other for few.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # the name everybody uses
from pyspark.sql.streaming.query import StreamingQuery

import plait
from plait.groups.routing.malformed import MARK
from plait.groups.routing.table import initial
from plait.spark.balance.moves import moves_of
from plait.spark.control.directory import Control
from plait.spark.control.progress import reports_of
from plait.tuning import USUAL
from plait_lab.bench.spark.job import FIRST_WARM, Job, tell
from plait_lab.bench.spark.native import native_join
from plait_lab.workloads.files import owners, result_columns, row_checksum

Start = Callable[[], StreamingQuery]
"""Starts a query that is ready."""

_LOOK = 0.2
"""Seconds between two looks at the progress."""


def main(path: Path) -> None:
    """Do the job in a file."""
    job = Job.read(path)
    spark = plait.spark.session(
        job.cores,
        name=job.system,
        memory=job.memory,
        scratch=Path(job.scratch),
        settings={"spark.sql.streaming.noDataMicroBatches.enabled": "false", **job.settings},
    )
    try:
        _run(spark, job)
    except Exception as error:
        # What comes after is the whole plan; the log has it.
        tell("failed", error=str(error).partition("=== Streaming Query ===")[0].strip())
        raise
    finally:
        spark.stop()


def _run(spark: SparkSession, job: Job) -> None:
    frames = [_stream(spark, job, i) for i in range(len(job.keys))]
    sums: dict[int, Any] = {}
    start = _kept(frames, job) if job.sink else _summed(frames, job, sums)
    began = time.perf_counter()
    query = start()
    told, warm, migrated, moved = -1, 0.0, not job.migrate_to, not job.move_by
    while query.isActive:
        time.sleep(_LOOK)
        told = _tell_batches(spark, query, told, job, sums)
        if not migrated and told >= job.migrate_after and query.isActive:
            migrated = bool(plait.attach(query).migrate(job.migrate_to, cast(Any, job.strategy)))
        if not moved and told >= job.move_after and query.isActive:
            _move(query, job)
            moved = True
        if told >= FIRST_WARM:
            warm = warm or time.perf_counter()
            if job.seconds and time.perf_counter() - warm > job.seconds:
                query.stop()
        if job.stop.exists():
            query.stop()
    seconds = time.perf_counter() - began
    query.awaitTermination()  # raises what ended the query, if anything did
    _tell_batches(spark, query, told, job, sums)
    tell("end", seconds=seconds)


def _summed(frames: list[DataFrame], job: Job, sums: dict[int, Any]) -> Start:
    """A query whose results are counted and forgotten."""
    found = plait_join(frames, job) if job.system == "plait" else _native(frames, job)
    values = [f"unix_micros({c})" if c.endswith("_ts") else c for c in result_columns(job.keys)]
    check = (
        F.count(F.lit(1)).alias("results"),
        F.sum(F.expr(row_checksum(values))).alias("checksum"),
    )
    if job.aggregate:

        def add_up(results: DataFrame, batch: int) -> None:
            sums[batch] = results.agg(*check).first()

        writer = found.writeStream.foreachBatch(add_up)
    else:
        writer = found.observe("check", *check).writeStream.format("noop")
    writer = writer.option("checkpointLocation", _checkpoint(job))
    return writer.trigger(**_trigger(job)).start


def _kept(frames: list[DataFrame], job: Job) -> Start:
    """A query whose results are written to `out`."""
    out, checkpoint = Path(job.scratch) / "out", Path(job.scratch) / "checkpoint"
    if job.sink == "kafka":
        return _to_kafka(frames, job, checkpoint)
    asked = plait_question(frames, job)
    if job.sink == "delta":
        return partial(asked.write_delta, out, checkpoint=checkpoint, **_trigger(job))
    writer = asked.to_df(checkpoint=checkpoint).writeStream.format(job.sink)
    writer = writer.option("path", str(out)).option("checkpointLocation", str(checkpoint))
    return writer.trigger(**_trigger(job)).start


def _checkpoint(job: Job) -> str:
    return job.checkpoint or str(Path(job.scratch) / "checkpoint")


def _to_kafka(frames: list[DataFrame], job: Job, checkpoint: Path) -> Start:
    """A query whose results are messages: when their newest row was made, and what they are of."""
    found = plait_join(frames, job) if job.system == "plait" else _native(frames, job)
    streams = range(len(job.keys))
    made = ", ".join(f"unix_micros(s{i}_ts)" for i in streams)
    rows = ", ".join(f"s{i}_v" for i in streams)
    value = f"to_json(struct(greatest({made}) AS made, array({rows}) AS rows)) AS value"
    writer = found.selectExpr(value).writeStream.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", job.kafka)
    writer = writer.option("topic", f"{job.topics}-results")
    writer = writer.option("checkpointLocation", str(checkpoint))
    return writer.trigger(**_trigger(job)).start


def _from_kafka(spark: SparkSession, job: Job, number: int) -> DataFrame:
    """Both systems read the messages in the same way."""
    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", job.kafka)
        .option("subscribe", f"{job.topics}-s{number}")
        .option("startingOffsets", "earliest")
        .load()
    )
    columns = ", ".join(f"{name} BIGINT" for name in (*job.keys[number], "ts", "v"))
    rows = plait.spark.from_kafka(messages, columns).withColumn("ts", F.timestamp_micros("ts"))
    return rows if job.system == "plait" else rows.drop(MARK)


def _trigger(job: Job) -> dict[str, Any]:
    if job.files:
        return {"availableNow": True}
    return {"processingTime": f"{job.trigger_seconds} seconds"}


def _stream(spark: SparkSession, job: Job, number: int) -> DataFrame:
    if job.files:
        where = f"{job.files}/s{number}"
        schema = spark.read.parquet(where).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(where)
    if job.kafka:
        return _from_kafka(spark, job, number)
    rate = spark.readStream.format("rate").option("rowsPerSecond", job.rate).load()
    keys = [
        F.expr(f"pmod(xxhash64(value, {number}, '{k}'), {job.domain})").alias(k)
        for k in job.keys[number]
    ]
    return rate.select(*keys, F.col("timestamp").alias("ts"), F.col("value").alias("v"))


def plait_question(frames: list[DataFrame], job: Job) -> plait.Join:
    """The join as a user of Plait writes it."""
    names = [f"s{i}" for i in range(len(frames))]
    keys = dict.fromkeys(k for own in job.keys for k in own)
    equal = []
    for k in keys:
        first, *others = owners(job.keys, k)
        equal += [f"s{first}.{k} = s{other}.{k}" for other in others]
    outputs = [f"s{owners(job.keys, k)[0]}.{k}" for k in keys]
    outputs += [f"{s}.{c} AS {s}_{c}" for s in names for c in ("ts", "v")]
    asked = plait.join(**dict(zip(names, frames, strict=True))).on(*equal)
    asked = asked.within(f"{job.window} microseconds").watermark("0 seconds").select(*outputs)
    if job.condition:
        asked = asked.where(job.condition)
    if job.adapt is not None:
        asked = asked.adapt(job.adapt)
    if job.balance is not None:
        asked = asked.balance(job.balance)
    return asked


def plait_join(frames: list[DataFrame], job: Job) -> DataFrame:
    """Its results."""
    asked = plait_question(frames, job)
    if not (job.told or job.skew or job.holders or job.move_by):
        return asked.to_df(plan=job.plan or None)
    checkpoint = _checkpoint(job)
    found = asked.to_df(plan=job.plan or None, checkpoint=checkpoint)
    if job.skew or job.holders:
        homes = _homes(round(job.skew * USUAL.groups), job.holders or job.cores)
        control = Control.of(checkpoint, None, "", "")
        control.tables.add(replace(initial(homes), number=1))
    return found


def _homes(first: int, processors: int) -> list[int]:
    """Where groups begin: so many on the first processor, the others evenly on the others.

    >>> _homes(0, 2)[:4], _homes(3, 2)[:5], _homes(2, 3)[:5]
    ([0, 1, 0, 1], [0, 0, 0, 1, 1], [0, 0, 1, 2, 1])
    """
    if not first:
        return [g % processors for g in range(USUAL.groups)]
    return [0 if g < first else 1 + (g - first) % (processors - 1) for g in range(USUAL.groups)]


def _move(query: StreamingQuery, job: Job) -> None:
    """Half of the first processor's groups go to the second one."""
    moves = moves_of(query)
    held = [g for g, place in enumerate(moves.table.places) if place == (0,)]
    moves.begin(held[: len(held) // 2], [1], cast(Any, job.move_by))


def _native(frames: list[DataFrame], job: Job) -> DataFrame:
    return native_join(frames, job.keys, job.window)


def _tell_batches(
    spark: SparkSession, query: StreamingQuery, told: int, job: Job, sums: dict[int, Any]
) -> int:
    """Tell what has been done since; the number of the last batch."""
    for progress in query.recentProgress:
        if progress.batchId > told and "addBatch" in progress.durationMs:
            told = progress.batchId
            metrics: dict[str, Any] = progress.observedMetrics
            check = metrics.get("check", sums.get(told))
            tell(
                "batch",
                id=progress.batchId,
                rows=progress.numInputRows,
                durations=dict(progress.durationMs),
                results=0 if check is None else check["results"],
                checksum=0 if check is None else check["checksum"] or 0,
                # Those in an object store are left alone: reading them would be part of the cost.
                reports=[]
                if job.checkpoint
                else [report.to_json() for report in reports_of(progress)],
                heap=_live_heap(spark) if job.seconds else 0,
            )
    return told


def _live_heap(spark: SparkSession) -> int:
    """Bytes on the driver's heap that survived the last collection of each pool."""
    jvm: Any = spark._jvm
    beans = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    used = [bean.getCollectionUsage() for bean in beans]
    return sum(int(u.getUsed()) for u in used if u is not None)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
