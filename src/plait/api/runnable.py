"""Ways to answer a question: in this process, as a DataFrame of Spark, or into a Delta table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plait.api.question import BaseQuestion
from plait.api.sources import is_spark_frame
from plait.errors import SourceError
from plait.local.options import BATCH_ROWS, UNDATED_ROWS, LocalOptions, Order
from plait.plan.text import Given

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from plait.local.run import Execution, Results


_OVERDRAFT = 0.05
"""How much more than its memory a query that changes its plan may hold for a moment."""


class RunnableQuestion(BaseQuestion):
    """A question with its sources, and the ways to answer it."""

    __slots__ = ()

    def run(
        self,
        *,
        plan: Given = None,
        order: Order = "event-time",
        batch_rows: int = BATCH_ROWS,
        batch_seconds: float | None = None,
        undated_rows: int = UNDATED_ROWS,
        memory_limit: int | None = None,
    ) -> Results:
        """Compute the results over tables, batches or files, in this process.

        Rows come in the order of their event times, or as they stand with `order="file"`, in
        batches of `batch_rows` rows or `batch_seconds` of event time; up to `undated_rows` rows
        without a time are kept for the report. `plan` is "((a b) c)", "mjoin", "teddies" or a plan
        as a value. Beyond `memory_limit` bytes of states it ends in MemoryExceeded.
        """
        from plait.local.run import run

        options = LocalOptions(
            plan=plan,
            order=order,
            batch_rows=batch_rows,
            batch_seconds=batch_seconds,
            undated_rows=undated_rows,
            memory_limit=memory_limit,
        )
        return run(self.query, self.sources, self._local_options(options))

    def start(
        self,
        *,
        plan: Given = None,
        order: Order = "event-time",
        batch_rows: int = BATCH_ROWS,
        batch_seconds: float | None = None,
        undated_rows: int = UNDATED_ROWS,
        memory_limit: int | None = None,
        late: Callable[[str, pa.Table], None] | None = None,
        seed: int | None = None,
    ) -> Execution:
        """Begin a run in this process whose results are taken as they are found.

        The options are those of `run`, and `late`, a function that is handed the late rows of a
        stream, and `seed`, with which plans that draw at random begin.

        >>> import plait
        >>> at = pa.array([0, 1_000_000], pa.timestamp("us"))
        >>> rows = pa.table({"k": [1, 2], "ts": at})
        >>> asked = plait.join(a=rows, b=rows).on("a.k = b.k").within("5 seconds").select("a.k")
        >>> under_way = asked.start(batch_rows=2)
        >>> [batch.to_pydict() for batch in under_way.results()], under_way.rows
        ([{'k': [1]}, {'k': [2]}], 4)
        """
        from plait.local.run import Execution

        options = LocalOptions(
            plan=plan,
            order=order,
            batch_rows=batch_rows,
            batch_seconds=batch_seconds,
            undated_rows=undated_rows,
            memory_limit=memory_limit,
            seed=seed,
        )
        return Execution(self.query, self.sources, self._local_options(options), late=late)

    def _local_options(self, options: LocalOptions) -> LocalOptions:
        """Add the plan, the policy and the limits that the question has."""
        policy, limit = self._policy(options.plan), options.memory_limit
        memory = None if self.limits is None else self.limits.memory
        if limit is None and self.enforced and memory is not None:
            # Changing plans needs a moment in which the limit is exceeded a little.
            limit = int(memory * (1.0 if policy is None else 1 + _OVERDRAFT))
        plan = self.plan() if options.plan is None else options.plan
        return replace(options, plan=plan, policy=policy, budget=self.limits, memory_limit=limit)

    def to_df(
        self,
        *,
        plan: Given = None,
        processors: int | None = None,
        late: bool | str = False,
        checkpoint: str | PathLike[str] | None = None,
        name: str | None = None,
        upgrade: str | None = None,
    ) -> DataFrame:
        """Return the results as a DataFrame, streaming if the sources are; any Spark sink takes it.

        `late=True` adds a column, and rows. The column is called `late` (or as you say:
        `late="aside"`), and is a struct. It is null in results. Rows of a stream that were not
        joined, because they were late or lacked their event time or key, come as rows in which
        only this column is set, with the reason. `plait.spark.split_late` makes two DataFrames of
        a static one, and `plait.spark.each_batch` of every batch of a streaming one.

        `checkpoint` is the location that the query will be started with. With it, a location that
        is no checkpoint, or that of another query, is refused here and not when the query runs.
        Where a query could go on with a question that has changed, the error says how: by
        `plait query upgrade` on the command line, or with the code of this change as `upgrade`.

        A join over the results of another join needs a `name`, which `plait.attach` takes too.
        """
        self._check_frames()
        from plait.spark.join.frame import results
        from plait.spark.join.options import JoinOptions

        options = JoinOptions(
            plan=self.plan(plan),
            processors=processors,
            late=late,
            checkpoint=None if checkpoint is None else fspath(checkpoint),
            name=name,
            policy=self._policy(plan),
            budget=self.limits,
            balance=self._balancing(),
            upgrade=upgrade,
        )
        return results(self.query, self.sources, options)

    def write_delta(
        self,
        table: str | PathLike[str],
        *,
        checkpoint: str | PathLike[str],
        plan: Given = None,
        processors: int | None = None,
        late: bool | str = False,
        name: str | None = None,
        upgrade: str | None = None,
        query_name: str | None = None,
        **trigger: Any,
    ) -> StreamingQuery:
        """Start a query that adds its results to a Delta table, each exactly once.

            query = q.write_delta("/data/matches", checkpoint="/data/check", availableNow=True)

        Processors write the files of the table themselves, and for each batch the driver adds them
        to the table's log: no row of a result passes through Spark. The table is made if it is not
        there; one with another schema is refused. What is left of batches that failed is never
        seen; `plait.spark.vacuum` removes it.

        `trigger` is what Spark's `trigger` takes, and `query_name` what its `queryName` does; the
        other options are those of `to_df`. With `late`, rows that are set aside are in the table
        too. Credentials for a table in an object store come from the environment of the driver and
        the executors, as for `deltalake`.
        """
        from plait.groups.routing.packets import lean
        from plait.spark.io.delta_table import DeltaCommits, check_delta, create_delta
        from plait.spark.io.write_delta import start_delta, table_place, table_schema
        from plait.spark.join.aside import late_column
        from plait.spark.join.frame import results
        from plait.spark.join.options import JoinOptions
        from plait.spark.join.schemas import is_marked
        from plait.spark.join.source_types import check_plain, read_of

        self._check_frames()
        if static := [n for n, s in self.sources.items() if not s.isStreaming]:
            raise SourceError(
                f"{static[0]!r} is a static DataFrame, and write_delta writes batches of streams",
                remedy="use to_df() and write it with Spark, or run() and write_deltalake",
            )
        place = table_place(fspath(table))
        small = lean(self.query)
        check_plain(read_of(small, bool(late)), self.sources, "a Delta table")
        malformed = any(map(is_marked, self.sources.values()))
        schema = table_schema(small, late_column(small, late), malformed)
        there = check_delta(place, schema)
        options = JoinOptions(
            plan=self.plan(plan),
            processors=processors,
            late=late,
            checkpoint=fspath(checkpoint),
            name=name,
            policy=self._policy(plan),
            budget=self.limits,
            balance=self._balancing(),
            upgrade=upgrade,
            table=place,
        )
        files = results(self.query, self.sources, options)
        if not there:
            create_delta(place, schema)
        commits = DeltaCommits(place, schema)
        return start_delta(files, commits, fspath(checkpoint), query_name, trigger)

    def _check_frames(self) -> None:
        """Refuse sources that are no DataFrames of Spark."""
        for stream, source in self.sources.items():
            if not is_spark_frame(source):
                raise SourceError(
                    f"the source of {stream!r} is a {type(source).__name__}, not a DataFrame",
                    remedy="give Spark DataFrames, or use run() for tables",
                )

    def result_delay(self, stream: str) -> str:
        """Return the delay of a watermark on this stream's event time that drops no result.

        `q.to_df().withWatermark("ts", q.result_delay("trades"))`, where `ts` is `trades.ts`. A
        shorter one closes windows earlier and may drop results.
        """
        return f"{-(-self.query.result_delay(stream) // 1_000)} milliseconds"
