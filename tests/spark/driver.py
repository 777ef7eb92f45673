"""A driver process for the kill tests: runs a query to its end, while parts of it die on order.

Each file in the folder `orders` is named `POINT-TARGET-BATCH`: the first task that reaches the
point in that batch or later removes the file and kills the target with signal 9. Points are `begun`
(nothing is written yet), `joined` (segments are written, the header is not), `written` (all is
written, nothing is committed). Targets are `worker` (the Python process of the task) and `executor`
(the JVM that runs it, which with a local master is the driver itself).

Meanwhile the plan changes: by a parallel track from batch 2 on, by moving state from batch 5 on. So
parts also die in the middle of migrations.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.spark.test_frame import asked, streams

from plait.cluster.epochs import Epoch
from plait.plan.jtree import parse_shape
from plait.query.query import Query
from plait.runtime.spark import frame
from plait.runtime.spark.control import Control
from plait.runtime.spark.operator import JoinOperator, SparkStore
from plait.runtime.spark.session import LOCAL

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_MOST_RESTARTS = 10


def main(master: str, where: Path) -> None:
    """Run until all input is used up, restarting the query when it fails."""
    builder = SparkSession.builder.master(master)
    if master.startswith("local["):  # otherwise checkpoint files are written as Spark usually does
        builder = builder.config(map=dict(LOCAL))
    session = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(where / "local"))
        .config("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    (where / "drivers").mkdir(exist_ok=True)
    (where / "drivers" / str(os.getpid())).touch()
    orders = where / "orders"

    class MortalStore(SparkStore):
        def write_header(self, text: str) -> None:
            self.obey("joined")
            super().write_header(text)

        def obey(self, point: str) -> None:
            now = _batch()
            for order in sorted(orders.glob(f"{point}-*")):
                _, target, batch = order.name.split("-")
                if int(batch) > now:
                    continue
                try:
                    order.unlink()
                except FileNotFoundError:
                    continue  # another task was told so
                os.kill(os.getpid() if target == "worker" else _executor(), signal.SIGKILL)

    class Changing(Control):
        """Decides by the number of the batch."""

        def epoch(self, query: Query) -> Epoch | None:
            now = _batch()
            if now < 2:
                return None
            if now < 5:
                return Epoch(1, parse_shape(query, "((trades quotes) fees)"), "parallel-track")
            return Epoch(2, parse_shape(query, "(trades (quotes fees))"), "moving-state")

    class MortalOperator(JoinOperator):
        store = MortalStore

        def init(self, handle: Any) -> None:
            super().init(handle)
            self._control = Changing(self._control.folder, self._control.shared)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            assert isinstance(self._store, MortalStore)
            self._store.obey("begun")
            yield from super().handleInputRows(key, rows, timerValues)
            self._store.obey("written")

    def _batch() -> int:
        task = TaskContext.get()
        return int(task.getLocalProperty("streaming.sql.batchId") or 0) if task else 0

    def _executor() -> int:
        """The JVM: it started the daemon that started this worker."""
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
        return int(daemon.rpartition(")")[2].split()[1])

    frame.__dict__["JoinOperator"] = MortalOperator
    frames = streams(session, where / "in", ())
    for _ in range(_MOST_RESTARTS):
        query = (
            asked(frames)
            .to_df()
            .writeStream.format("parquet")
            .option("path", str(where / "out"))
            .option("checkpointLocation", str(where / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as failure:
            with (where / "failures").open("a") as log:
                log.write(f"{str(failure)[:500]}\n---\n")
            continue
        (where / "done").touch()
        break
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
