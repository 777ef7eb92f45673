"""A driver whose checkpoint is in an object store, and whose partition groups move.

    python moving_query.py PLACE FOLDER

It joins the files of FOLDER, one of each stream a batch, and lets all groups of the first processor
go to the second one. Who holds groups in the end is printed as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import plait
from plait.errors import PlaitError
from plait.spark.balance.moves import moves_of
from plait_lab.object_store import spark_settings

_LIMIT = 600.0


def main(place: str, folder: Path) -> None:
    """Run it."""
    settings = spark_settings(os.environ["AWS_ENDPOINT_URL"])
    spark = plait.spark.session(2, memory="1g", scratch=folder / "scratch", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    read = spark.readStream.schema("ts timestamp, k bigint").option("maxFilesPerTrigger", 1)
    frames = {name: read.parquet(str(folder / name)) for name in ("a", "b", "c")}
    asked = plait.join(**frames).on("a.k = b.k", "b.k = c.k").within("5 seconds")
    asked = asked.watermark("0 seconds").adapt(False).balance(False)
    asked = asked.select("a.ts", "a.k", "b.ts AS bts", "c.ts AS cts")
    query = asked.write_delta(
        f"{place}/table".replace("s3a:", "s3:"), checkpoint=f"{place}/check", availableNow=True
    )
    began, moving, holders = time.monotonic(), False, list[list[int]]()
    while query.isActive and time.monotonic() - began < _LIMIT:
        time.sleep(0.2)
        moving = moving or _moved(query)
        if moving and query.isActive:
            holders = [list(at) for at in sorted(set(moves_of(query).table.places))]
    query.awaitTermination()
    print(json.dumps({"holders": holders}))
    spark.stop()


def _moved(query: Any) -> bool:
    """Let the groups of the first processor go to the second, unless nothing is reported yet."""
    try:
        table = moves_of(query).table
        plait.attach(query).move([g for g, at in enumerate(table.places) if at == (0,)], 1)
    except PlaitError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
