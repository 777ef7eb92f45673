"""A driver that joins topics and writes results and rows set aside to two others.

    python kafka_query.py JOB

JOB is a file of JSON. After each batch its number is printed, and at the end what was counted.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

import plait
from plait_lab.kafka.broker import spark_settings

_TRIES = 6


def main(job: dict[str, Any]) -> None:
    """Run it."""
    folder = Path(job["folder"])
    spark = plait.spark.session(
        2, memory="1g", scratch=folder / "scratch", settings=spark_settings()
    )
    frames = {}
    for name, read in job["streams"].items():
        messages = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", job["address"])
            .option("subscribe", read.pop("topic"))
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", job["most"])
            .load()
        )
        if "writers" in read:
            read["writers"] = {int(number): text for number, text in read["writers"].items()}
        frames[name] = plait.spark.from_kafka(messages, **read)
    asked = plait.join(**frames).on("k").within("5 seconds").watermark("1 hour")
    results = asked.select(*job["select"]).to_df(late=True, checkpoint=folder / "checkpoint")
    columns = ", ".join(c for c in results.columns if c != "late")
    writer = (
        results.selectExpr(
            "IF(late IS NULL, 'results', 'aside') AS topic",
            f"IF(late IS NULL, to_json(struct({columns})), to_json(late)) AS value",
        )
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", job["address"])
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
    )
    query = writer.start()
    for _ in range(_TRIES):
        if _ended(query):
            break
        query = writer.start()
    query.awaitTermination()
    total = plait.attach(query).progress().total
    fates = ("rows", "malformed", "null_times", "null_keys", "late")
    print(json.dumps({fate: dict(getattr(total, fate)) for fate in fates}), flush=True)
    spark.stop()


def _ended(query: StreamingQuery) -> bool:
    """Tell of its batches until it has ended; False if it is to go on from its checkpoint.

    Spark gives a Python worker ten seconds to start, which a machine that is busy does not always
    have. Results must be right after that, too.
    """
    told = -1
    while query.isActive:
        time.sleep(0.1)
        last = query.lastProgress
        if last is not None and last.batchId > told:
            told = last.batchId
            print(f"batch {told}", flush=True)
    problem = query.exception()
    if problem is not None and "failed to connect back" not in str(problem):
        raise problem
    return problem is None


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
