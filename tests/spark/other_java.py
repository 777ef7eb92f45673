"""A query that goes on from its checkpoint in this process, whose Java may be another one.

    python -m tests.spark.other_java FOLDER end|wait

tells in JSON what Spark writes for the numbers that the query writes, and why the query is refused,
if it is. Then it is agreed to. With `end` the query runs to its end; with `wait` it says `ready` in
the middle of its first batch, and waits there to be killed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.upgrading import base, start
from tests.upgrade_cases import BATCHES, USUAL, rows

import plait
from plait.api.join import Join
from plait.cli import main as plait_command
from plait.errors import CheckpointMismatch

WRITTEN = "CAST({} * 4e22 AS STRING)"
"""Five of it are 2e23, which Java 17 writes with another digit than later ones."""


def asked(spark: SparkSession, inputs: Path) -> Join:
    """Numbers, and a text of one of them."""
    usual = base(spark, inputs).within("6 seconds")
    return usual.select(*USUAL, f"{WRITTEN.format('left.price')} AS written")


def texts(spark: SparkSession) -> dict[float, str]:
    """What Spark writes here, by price."""
    prices = {float(str(row["price"])) for b in range(BATCHES) for row in rows(0, b)}
    return {
        price: str(spark.sql(f"SELECT {WRITTEN.format(f'{price}D')}").collect()[0][0])
        for price in sorted(prices)
    }


def main(folder: Path, end: bool) -> None:
    """Go on."""
    spark = plait.spark.session(2, memory="1g", scratch=folder / "scratch")
    question, checkpoint, refused = asked(spark, folder / "inputs"), folder / "checkpoint", ""
    try:
        question.to_df(checkpoint=checkpoint)
    except CheckpointMismatch as error:
        refused = str(error)
        assert plait_command(["query", "upgrade", str(checkpoint)]) == 0
    told = {"texts": list(texts(spark).items()), "refused": refused}
    print(json.dumps(told), flush=True)
    if end:
        start(question, folder).awaitTermination()
        spark.stop()
    else:
        start(question, folder, after=_wait).awaitTermination()


def _wait(_: int) -> None:
    print("ready", flush=True)
    time.sleep(3600)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "end")
