"""A driver on the test cluster, which does what it reads from standard input, one JSON a line.

It is copied to the driver's host and runs in the environment that is shipped to the workers. Each
request is `{"do": NAME, ...}`, the name of a function below with its arguments; each answer is a
line of JSON. What Spark says goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import plait
from plait.machine.stores import RemoteStore

STREAMS = ("a", "b", "c")
COLUMNS = [f"unix_micros({n}) AS {n}" if n != "k" else n for n in ("ts", "k", "bts", "cts")]
_SCHEMA = "ts timestamp, k bigint"
_LIMIT = 900.0
_STARTS, _TOO_SLOW = 5, "Python worker failed to connect back"
"""Before the first batch Spark gives the driver's Python ten seconds, too few on a busy machine."""


class Driver:
    """One session, and the query that was started last."""

    def __init__(self, settings: dict[str, str]) -> None:
        builder = SparkSession.builder.appName("plait on hosts")
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("WARN")
        self._query: StreamingQuery | None = None
        self._place = ""

    @property
    def query(self) -> StreamingQuery:
        """The query that was started last."""
        assert self._query is not None, "start comes first"
        return self._query

    def check(self) -> dict[str, Any]:
        """What `plait.spark.doctor` finds."""
        found = plait.spark.doctor(self.spark)
        return {"ok": found.ok, "text": str(found)}

    def workers(self) -> list[list[str]]:
        """Of each Python worker: host, address, executable, and where Plait is."""
        asked = self.spark.range(6).repartition(6)
        rows = asked.mapInArrow(_look, "host string, python string, plait string, seen string")
        return [list(one) for one in sorted({tuple(row) for row in rows.collect()})]

    def start(self, place: str, topics: str, rows: int, slow: float, broker: str, sink: str) -> str:
        """Join three topics, with so many rows of each in a batch. The first batch is done.

        Every processor takes `slow` seconds more for a batch, after its results and before the
        batch ends.
        """
        read = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
        read = read.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", rows)
        frames = {
            name: plait.spark.from_kafka(
                read.option("subscribe", f"{topics}-{name}").load(), _SCHEMA
            )
            for name in STREAMS
        }
        asked = plait.join(**frames).on("a.k = b.k", "b.k = c.k").within("5 seconds")
        asked = asked.watermark("0 seconds").adapt(False)
        asked = asked.select("a.ts", "a.k", "b.ts AS bts", "c.ts AS cts")
        self._place = place
        results = _slowed(asked.to_df(checkpoint=f"{place}/check"), slow)
        if sink == "kafka":
            value = f"to_json(struct({', '.join(COLUMNS)})) AS value"
            writer = results.selectExpr(value).writeStream.format("kafka")
            writer = writer.option("kafka.bootstrap.servers", broker)
            writer = writer.option("topic", f"{topics}-results")
        else:
            writer = results.writeStream.format(sink).option("path", f"{place}/out")
        writer = writer.option("checkpointLocation", f"{place}/check")
        for _ in range(_STARTS):
            self._query = writer.start()
            while self._ended < 0 and self.query.isActive:
                time.sleep(0.5)
            if self.query.isActive or _TOO_SLOW not in str(self.query.exception()):
                break
        return str(self.query.id)

    def wait_in(self, batch: int) -> dict[str, int]:
        """Until the tasks of the join run in a batch, that one or a later one."""

        def there() -> bool:
            tracker = self.spark.sparkContext.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
            last = [tracker.getStageInfo(max(job.stageIds)) for job in jobs if job is not None]
            running = any(s is not None and s.numActiveTasks == self._processors for s in last)
            return running and self._begun >= batch

        self._until(f"batch {batch} runs", there)
        return self.logged()

    def wait_for(self, batch: int) -> dict[str, int]:
        """Until a batch has ended."""
        self._until(f"batch {batch} has ended", lambda: self._ended >= batch)
        return self.logged()

    def logged(self) -> dict[str, int]:
        """The last batch that has begun, and the last that has ended, by Spark's logs."""
        return {"begun": self._begun, "ended": self._ended}

    def migrate(self, plan: str, strategy: str = "moving-state") -> int:
        """Ask for another plan."""
        # As text: it came from another process.
        return plait.attach(self.query).migrate(plan, strategy)  # type: ignore[arg-type]

    def progress(self) -> dict[str, Any]:
        """How the query is doing."""
        told = plait.attach(self.query).progress()
        return {
            "plans": sorted(set(told.plans.values())),
            "epochs": sorted(set(told.epochs.values())),
            "processors": len(told.plans),
            "processed": told.processed,
            "results": told.total.results,
            "rebuilt": told.total.rebuilt,
            "reused": told.total.reused,
            "migrations": [dict(m) for _, m in told.migrations],
            "notes": [note for _, note in told.notes],
        }

    def stop(self) -> None:
        """End the query."""
        self.query.stop()

    def results(self) -> list[list[int]]:
        """What its files have."""
        found = self.spark.read.parquet(f"{self._place}/out")
        return [list(row) for row in found.selectExpr(*COLUMNS).collect()]

    @property
    def _processors(self) -> int:
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or 0)

    @property
    def _begun(self) -> int:
        return self._last("offsets")

    @property
    def _ended(self) -> int:
        return self._last("commits")

    def _last(self, log: str) -> int:
        names = RemoteStore(f"{self._place}/check").names(log, files=False)
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _until(self, what: str, there: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not there():
            if (error := self.query.exception()) is not None:
                raise RuntimeError(f"the query failed: {error}")
            if time.monotonic() - began > _LIMIT:
                raise TimeoutError(f"it took more than {_LIMIT:.0f} s until {what}")
            time.sleep(0.1)


def _look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a worker sees."""
    import socket
    import sys

    import plait

    for _ in batches:
        pass
    host = socket.gethostname()
    seen = " ".join(sorted(os.listdir("/dev/shm")))
    row = {"host": host, "python": sys.executable, "plait": plait.__file__, "seen": seen}
    yield pa.RecordBatch.from_pylist([row])


def _slowed(frame: DataFrame, seconds: float) -> DataFrame:
    """The same rows, each partition some seconds later."""

    def later(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time

        yield from batches
        time.sleep(seconds)

    return frame.mapInArrow(later, frame.schema) if seconds else frame


def main() -> None:
    """Answer until there is nothing more to read."""
    driver = Driver(json.loads(sys.stdin.readline()))
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: Any = {"answer": getattr(driver, request.pop("do"))(**request)}
        except Exception as error:  # whoever asked is told
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    driver.spark.stop()


if __name__ == "__main__":
    main()
