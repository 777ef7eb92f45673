"""A driver whose checkpoint, control directory and Delta table are in an object store.

    python store_query.py PLACE FOLDER BATCHES AWAY

It joins the files of FOLDER and migrates the plan when the first batch has been reported. Then the
control directory cannot be reached for AWAY seconds, and the whole store not for four more. What
happened is printed as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plait
from plait.errors import PlaitError
from plait_lab.object_store import be_away, spark_settings

_LIMIT = 600.0


def main(place: str, folder: Path, batches: int, away: float) -> None:
    """Run it."""
    end_point = os.environ["AWS_ENDPOINT_URL"]
    settings = spark_settings(end_point)
    spark = plait.spark.session(2, memory="1g", scratch=folder / "scratch", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    read = spark.readStream.schema("ts timestamp, k bigint").option("maxFilesPerTrigger", 1)
    frames = {name: read.parquet(str(folder / name)) for name in ("a", "b", "c")}
    asked = plait.join(**frames).on("a.k = b.k", "b.k = c.k").within("5 seconds")
    asked = asked.watermark("0 seconds").adapt(False)
    asked = asked.select("a.ts", "a.k", "b.ts AS bts", "c.ts AS cts")
    query = asked.write_delta(
        f"{place}/table".replace("s3a:", "s3:"),
        checkpoint=f"{place}/check",
        processingTime="4 seconds",  # so that batches are left when the store is back
    )
    epochs: list[int] = []
    until(lambda: migrated(query, epochs), query)
    be_away(end_point, away, control=True)
    before, began = ended(query), time.monotonic()
    until(lambda: time.monotonic() - began > away - 1, query)
    meanwhile = ended(query) - before
    be_away(end_point, 4)
    until(lambda: ended(query) >= batches, query)
    until(
        lambda: plait.attach(query).progress().processed >= batches, query
    )  # late, but all of them
    progress = plait.attach(query).progress()
    query.stop()
    told = {"epoch": epochs[0], "plans": sorted(set(progress.plans.values()))}
    print(json.dumps(told | {"meanwhile": meanwhile, "processed": progress.processed}))
    spark.stop()


def migrated(query: Any, epochs: list[int]) -> bool:
    """Ask for another plan, unless nothing is reported yet."""
    try:
        epochs.append(plait.attach(query).migrate("((a b) c)"))
    except PlaitError:
        return False
    return True


def ended(query: Any) -> int:
    """The batches that have ended."""
    return sum("addBatch" in dict(event.durationMs) for event in query.recentProgress)


def until(holds: Callable[[], bool], query: Any) -> None:
    """Wait, as long as the query runs."""
    end = time.monotonic() + _LIMIT
    while not holds():
        if not query.isActive and not holds():
            raise plait.attach(query).why() or RuntimeError(str(query.exception()))
        if time.monotonic() > end:
            raise TimeoutError(f"after {_LIMIT:g} s: {query.lastProgress}")
        time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
