"""A client of Spark Connect, in a process without a JVM, as `pyspark-client` gives it.

    python connect_client.py FOLDER steps
    python connect_client.py FOLDER elsewhere

`steps` starts, watches, migrates, releases, moves and stops a query over the files of FOLDER, goes
on with it, and writes a Delta table. `elsewhere` is a client that does not see the server's files.
What happened is printed as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # the name everybody uses

import plait
from plait.api.join import Join
from plait.errors import MissingRequirement, PlaitError

_LIMIT = 600.0
_STARTS = 8
_HEARD = 20.0
"""Seconds within which an event of the server is to be heard."""


def main(folder: Path, what: str) -> None:
    """Do it, and tell."""
    spark = SparkSession.builder.getOrCreate()
    plait.spark.configure(spark, processors=2)
    heard: list[int] = []
    stop_listening = plait.spark.listen(spark, lambda _, found: heard.append(found.total.results))
    try:
        told = {"steps": steps, "elsewhere": elsewhere}[what](spark, folder)
        end = time.monotonic() + _HEARD
        while not any(heard) and time.monotonic() < end:
            time.sleep(0.2)  # events come when the server has time
    finally:
        stop_listening()  # its thread would keep the process alive
    print(json.dumps(told | {"heard": max(heard, default=-1)}))
    spark.stop()


def frames(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """The streams, a file of each in a batch."""
    read = spark.readStream.schema("ts timestamp, k bigint").option("maxFilesPerTrigger", 1)
    return {name: read.parquet(str(folder / name)) for name in ("a", "b", "c")}


def asked(spark: SparkSession, folder: Path) -> Join:
    """The question."""
    found = plait.join(**frames(spark, folder)).on("a.k = b.k", "b.k = c.k").within("5 seconds")
    found = found.watermark("0 seconds").adapt(False).balance(False)
    return found.select("a.ts", "a.k", "b.ts AS bts", "c.ts AS cts")


def steps(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Everything that a client does with a query."""
    told: dict[str, Any] = {"jvm": hasattr(spark, "_jvm"), "py4j": "py4j" in sys.modules}
    told["check"] = plait.spark.doctor(spark).ok
    check, out = str(folder / "check"), str(folder / "out")

    def start(**trigger: Any) -> Any:
        results = asked(spark, folder).to_df(checkpoint=check)
        writer = results.writeStream.format("parquet").option("path", out)
        return writer.option("checkpointLocation", check).trigger(**trigger).start()

    query = started(
        lambda: start(processingTime="0 seconds"),
        lambda query: bool(plait.attach(query).progress().plans),
    )
    told["epoch"] = plait.attach(query).migrate("((a b) c)")
    for path in sorted((folder / "later").glob("*/*")):  # more arrives
        path.rename(folder / path.parent.name / path.name)
    until(lambda: set(plait.attach(query).progress().plans.values()) == {"((a b) c)"}, query)
    told["released"] = plait.attach(query).release()
    told["move"] = plait.attach(query).move([0, 2], 1)
    query.stop()
    again = started(lambda: start(availableNow=True), has_ended)
    told["processed"] = plait.attach(again).progress().processed
    told["total"] = plait.attach(again).progress().total.results

    def to_table(checkpoint: str) -> Any:
        return asked(spark, folder).write_delta(
            folder / "table", checkpoint=folder / checkpoint, availableNow=True
        )

    delta = started(lambda: to_table("delta-check"), has_ended)
    told["delta"] = plait.attach(delta).progress().total.results
    for checkpoint in ("delta-check", "another-check"):  # the first has nothing new to say
        started(partial(to_table, checkpoint), has_ended)
    told["refused"] = {
        "session": refused(lambda: plait.spark.session(1)),
        "column": refused(lambda: asked(spark, folder).where(F.col("a.k") == F.col("b.k"))),
        "other schema": refused(
            lambda: (
                asked(spark, folder)
                .select("b.k AS other")
                .write_delta(folder / "table", checkpoint=folder / "third", availableNow=True)
            )
        ),
    }
    return told


def elsewhere(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """A query whose files and checkpoint only the server sees; it goes on if it has run before."""
    told: dict[str, Any] = {"sees": (folder / "a").exists()}
    check = str(folder / "check")

    def start() -> Any:
        results = asked(spark, folder).to_df(checkpoint=check)
        writer = results.writeStream.format("parquet").option("path", str(folder / "out"))
        return writer.option("checkpointLocation", check).trigger(availableNow=True).start()

    def asked_to_migrate(query: Any) -> bool:
        if query.recentProgress and query.isActive:
            told.setdefault("migrate", refused(lambda: plait.attach(query).migrate("((a b) c)")))
        return has_ended(query)

    started(start, asked_to_migrate)
    return told


def refused(ask: Callable[[], object]) -> str:
    """What the error says; nothing if there is none."""
    try:
        ask()
    except PlaitError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def until(holds: Callable[[], bool], query: Any) -> None:
    """Wait, as long as the query runs."""
    end = time.monotonic() + _LIMIT
    while not holds():
        if not query.isActive and not holds():
            raise plait.attach(query).why() or RuntimeError(str(query.exception()))
        if time.monotonic() > end:
            raise TimeoutError(f"after {_LIMIT:g} s")
        time.sleep(0.2)


def has_ended(query: Any) -> bool:
    """Whether all that was available has been joined."""
    return not query.isActive and query.exception() is None


def started(start: Callable[[], Any], ready: Callable[[Any], bool]) -> Any:
    """A query that has come so far; started again if the machine was too busy for its workers."""
    for left in reversed(range(_STARTS)):
        try:
            query = start()
            until(partial(ready, query), query)
            return query
        except (MissingRequirement, PySparkException) as error:
            if not left or not isinstance(plait.spark.why(error), MissingRequirement):
                raise
    raise AssertionError("the last try returns or raises")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
