"""A query over sources from beginning to end, in this process.

>>> import pyarrow as pa
>>> import plait
>>> second = lambda *s: pa.array([x * 1_000_000 for x in s], pa.timestamp("us"))
>>> trades = pa.table({"ts": second(1, 2), "sym": ["A", "B"], "price": [10.5, 20.5]})
>>> quotes = pa.table({"ts": second(3, 9), "sym": ["A", "B"], "bid": [10.0, 20.0]})
>>> question = (plait.join(trades=trades, quotes=quotes).on("trades.sym = quotes.sym")
...             .within("5 seconds").select("trades.sym", "price", "bid"))
>>> run(question).table.to_pylist()
[{'sym': 'A', 'price': 10.5, 'bid': 10.0}]
"""

from __future__ import annotations

import importlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from plait.adapt.events import Event
from plait.adapt.policy import PlanPolicy
from plait.engine.intake.codes import stored_type
from plait.errors import MissingRequirement, SourceError
from plait.local.encodings import check_columns
from plait.local.host import Counts, LocalRun
from plait.local.replay import BATCH_ROWS, UNDATED_ROWS, Order, Replay
from plait.local.sources import BadRow, Source, as_source
from plait.optimize.budget import Budget
from plait.plan.migration import Migration
from plait.plan.text import Given, read_plan
from plait.query.query import Query, Stream, narrowed


class Asked(Protocol):
    """A question with its sources: what `plait.join` and `plait.sql` return."""

    @property
    def query(self) -> Query:
        """What is asked."""

    @property
    def sources(self) -> Mapping[str, Any]:
        """The sources by stream."""


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a run, what became of the rows, and what the run took."""

    table: pa.Table
    counts: Counts
    late: dict[str, pa.Table]
    bad: dict[str, list[BadRow]]
    seconds: float
    peak_state_rows: int
    peak_state_bytes: int
    migrations: list[Migration] = field(default_factory=list)
    """The changes of plan."""
    events: list[Event] = field(default_factory=list)
    """What the adaptive loop did, and why."""

    def to_arrow(self) -> pa.Table:
        """The results as an Arrow table."""
        return self.table

    def to_pandas(self) -> Any:
        """The results as a pandas DataFrame."""
        _require("pandas")
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The results as a polars DataFrame."""
        return _require("polars").from_arrow(self.table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What DuckDB, polars and others read tables by."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = ", ".join(self.table.column_names)
        return f"Results({self.table.num_rows:,} rows of {columns}; {self.seconds:.3f} s)"


def _require(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError:
        raise MissingRequirement(
            f"{package} is not installed", remedy=f"pip install {package}, or use to_arrow()"
        ) from None


class Execution:
    """A run under way: iterate over `results`, and look at the rest in between.

    With `late`, late rows are handed to it, by stream and with all their columns; otherwise only
    the columns that the query needs are read. A tree of joins that comes to hold more than
    `memory_limit` bytes ends in MemoryExceeded. With `adapt` the plan changes while it runs, by
    this policy and within the `budget`. Without a `seed` of the hashes a random one is drawn, so
    that nobody can choose keys that collide; the order of results within a batch follows from it.
    """

    def __init__(
        self,
        query: Query,
        sources: Mapping[str, Any],
        *,
        plan: Given = None,
        order: Order = "event-time",
        batch_rows: int = BATCH_ROWS,
        batch_seconds: float | None = None,
        undated_rows: int = UNDATED_ROWS,
        late: Callable[[str, pa.Table], None] | None = None,
        memory_limit: int | None = None,
        adapt: PlanPolicy | None = None,
        budget: Budget | None = None,
        seed: int | None = None,
    ) -> None:
        runs = read_plan(query, plan)
        self.sources = _sources(query, sources)
        needed = query if late is not None else narrowed(query)
        check_columns(needed)
        begin = time.perf_counter()
        self.run = LocalRun(
            needed,
            runs,
            memory_limit=memory_limit,
            adapt=adapt or False,
            budget=budget,
            seed=secrets.randbits(64) if seed is None else seed,
        )
        self._replay = Replay(
            needed,
            self.sources,
            order=order,
            batch_rows=batch_rows,
            batch_seconds=batch_seconds,
            undated_rows=undated_rows,
        )
        self._late = late
        self.seconds = time.perf_counter() - begin
        self.peak_state_rows = 0
        self.peak_state_bytes = 0

    def results(self, watch: Callable[[], None] = lambda: None) -> Iterator[pa.RecordBatch]:
        """The results as they are found; `watch` is called now and then."""
        begin = time.perf_counter() - self.seconds

        def found(some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for results in some:
                self._look(begin)
                if results.num_rows:
                    yield results
                watch()

        for batch in self._replay:
            yield from found(self.run.stream(batch))
            late = self.run.late()
            if self._late is not None:
                for name, rows in late.items():
                    if rows.num_rows:
                        self._late(name, rows)
            self._look(begin)
            watch()
        yield from found(self.run.finish())
        self._look(begin)
        watch()

    def _look(self, begin: float) -> None:
        self.seconds = time.perf_counter() - begin
        self.peak_state_rows = max(self.peak_state_rows, self.state_rows)
        self.peak_state_bytes = max(self.peak_state_bytes, self.state_bytes)

    @property
    def counts(self) -> Counts:
        """What has become of the rows so far."""
        return self.run.counts

    @property
    def rows(self) -> int:
        """The rows read so far, over all streams."""
        return sum(self.counts.rows.values())

    @property
    def state_rows(self) -> int:
        """The tuples in all states now."""
        return sum(size.rows for size in self.run.engine.sizes())

    @property
    def state_bytes(self) -> int:
        """The bytes of all states now."""
        return self.run.engine.nbytes

    @property
    def progress(self) -> float | None:
        """The fraction of the input that is done, if it can be told."""
        return self._replay.progress

    @property
    def reached(self) -> int | None:
        """The newest event time so far, in microseconds."""
        return max(self._newest(), default=None)

    @property
    def lag(self) -> int:
        """How far the last watermark is behind the newest event time, in microseconds."""
        marks = [w for w in self.run.watermarks.values() if w is not None]
        return max(self._newest()) - min(marks) if marks else 0

    def _newest(self) -> list[int]:
        marks = self.run.watermarks
        return [
            mark + stream.delay
            for stream in self.run.query.streams
            if (mark := marks[stream.name]) is not None
        ]


def run(
    asked: Asked,
    *,
    plan: Given = None,
    order: Order = "event-time",
    batch_rows: int = BATCH_ROWS,
    batch_seconds: float | None = None,
    undated_rows: int = UNDATED_ROWS,
    memory_limit: int | None = None,
    adapt: PlanPolicy | None = None,
    budget: Budget | None = None,
) -> Results:
    """The results of what `plait.join(...)` or `plait.sql(...)` asks, over its own sources."""
    return run_tables(
        asked.query,
        asked.sources,
        plan=plan,
        order=order,
        batch_rows=batch_rows,
        batch_seconds=batch_seconds,
        undated_rows=undated_rows,
        memory_limit=memory_limit,
        adapt=adapt,
        budget=budget,
    )


def run_tables(
    query: Query,
    sources: Mapping[str, Any],
    *,
    plan: Given = None,
    order: Order = "event-time",
    batch_rows: int = BATCH_ROWS,
    batch_seconds: float | None = None,
    undated_rows: int = UNDATED_ROWS,
    memory_limit: int | None = None,
    adapt: PlanPolicy | None = None,
    budget: Budget | None = None,
) -> Results:
    """The results of a query over tables, readers, iterators of batches or opened files.

    In event-time order, the default, no row is late. With `order="file"` rows arrive as they
    stand, and those older than their stream's watermark are in `late`. `plan` is
    whatever `plait.plan.text` reads: a tree such as "((a b) c)", a router such as "teddies", or a
    plan as a value. A tree of joins
    that comes to hold more than `memory_limit` bytes ends in MemoryExceeded. With a policy,
    `adapt`, the plan changes while it runs, to be the best for the streams within the `budget`.
    """
    late: dict[str, list[pa.Table]] = {name: [] for name in query.names}
    execution = Execution(
        query,
        sources,
        plan=plan,
        order=order,
        batch_rows=batch_rows,
        batch_seconds=batch_seconds,
        undated_rows=undated_rows,
        late=(lambda name, rows: late[name].append(rows)) if order == "file" else None,
        memory_limit=memory_limit,
        adapt=adapt,
        budget=budget,
    )
    table = pa.Table.from_batches(list(execution.results()), query.schema)
    return Results(
        table,
        execution.counts,
        {
            s.name: pa.concat_tables([pa.Table.from_batches([], late_schema(s)), *late[s.name]])
            for s in query.streams
        },
        {name: list(source.bad.rows) for name, source in execution.sources.items()},
        execution.seconds,
        execution.peak_state_rows,
        execution.peak_state_bytes,
        execution.run.migrations,
        execution.run.events,
    )


def late_schema(stream: Stream) -> pa.Schema:
    """The columns of the late rows of a stream: all it has, without dictionaries and the like."""
    return pa.schema([(f.name, stored_type(f.type)) for f in stream.fields])


def _sources(query: Query, given: Mapping[str, Any]) -> dict[str, Source]:
    """A source for each stream; two streams that are given the same rows share it."""
    made: dict[int, Source] = {}
    found = {}
    for stream in query.streams:
        if stream.name not in given:
            raise SourceError(
                f"stream {stream.name!r} has no rows",
                remedy=f"give some for each of {', '.join(query.names)}",
            )
        rows = given[stream.name]
        if id(rows) not in made:
            made[id(rows)] = as_source(rows, stream.schema, stream.name)
        found[stream.name] = made[id(rows)]
    return found
