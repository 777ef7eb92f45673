"""A driver whose checkpoint, control directory and Delta table are in an object store.

    python store_query.py PLACE FOLDER AWAY

It joins the files of FOLDER, migrates the plan when the first batch has been reported, and has the
store be away for AWAY seconds then. What happened is printed as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from pathlib import Path

import plait
from plait.hosts.spark.session import local_session

_LIMIT = 400.0


def main(place: str, folder: Path, away: float) -> None:
    """Run it."""
    end_point = os.environ["AWS_ENDPOINT_URL"]
    settings = {
        # Not spark.jars, which would copy 700 MB for every session.
        "spark.driver.extraClassPath": f"{os.environ['PLAIT_JARS']}/*",
        "spark.hadoop.fs.s3a.endpoint": end_point,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
        # Hadoop's parallel client and the server of the tests wait for each other.
        "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
        "spark.hadoop.fs.s3a.connection.expect.continue": "false",
    }
    spark = local_session(2, memory="1g", scratch=folder / "scratch", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    read = spark.readStream.schema("ts timestamp, k bigint").option("maxFilesPerTrigger", 1)
    frames = {name: read.parquet(str(folder / name)) for name in ("a", "b", "c")}
    asked = plait.join(**frames).on("a.k = b.k", "b.k = c.k").within("5 seconds")
    asked = asked.watermark("0 seconds").adapt(False)
    asked = asked.select("a.ts", "a.k", "b.ts AS bts", "c.ts AS cts")
    query = asked.write_delta(
        f"{place}/table".replace("s3a:", "s3:"),
        checkpoint=f"{place}/check",
        availableNow=True,
    )
    began, epoch = time.monotonic(), 0
    while query.isActive and time.monotonic() - began < _LIMIT:
        time.sleep(0.2)
        if not epoch and query.isActive:
            try:
                epoch = plait.migrate(query, "((a b) c)")
            except plait.errors.PlaitError:
                continue  # nothing is reported yet
            if away:
                urllib.request.urlopen(f"{end_point}/__away__/{away}").read()
    query.awaitTermination()
    progress = plait.progress(query)
    told = {"epoch": epoch, "plans": sorted(set(progress.plans.values()))}
    print(json.dumps(told | {"processed": progress.processed}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
