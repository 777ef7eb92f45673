"""Run a query over sources from beginning to end, in this process.

>>> import pyarrow as pa
>>> import plait
>>> second = lambda *s: pa.array([x * 1_000_000 for x in s], pa.timestamp("us"))
>>> trades = pa.table({"ts": second(1, 2), "sym": ["A", "B"], "price": [10.5, 20.5]})
>>> quotes = pa.table({"ts": second(3, 9), "sym": ["A", "B"], "bid": [10.0, 20.0]})
>>> question = (plait.join(trades=trades, quotes=quotes).on("trades.sym = quotes.sym")
...             .within("5 seconds").select("trades.sym", "price", "bid"))
>>> run(question.query, question.sources).table.to_pylist()
[{'sym': 'A', 'price': 10.5, 'bid': 10.0}]
"""

from __future__ import annotations

import importlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa

from plait.adapt.events import Event
from plait.engine.intake.codes import stored_type
from plait.errors import MissingRequirement, SourceError
from plait.local.encodings import check_columns
from plait.local.host import Counts, LocalRun
from plait.local.options import LocalOptions
from plait.local.replay import Replay
from plait.local.sources import BadRow, Source, as_source
from plait.plan.migration import Migration
from plait.plan.text import read_plan
from plait.query.query import Query, Stream, narrowed


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a run, counts of its rows, and the time and memory that it took."""

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
        """The interface by which DuckDB, polars and others read tables."""
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
    """A run in progress: iterate over `results`, and read the other properties in between.

    With `late`, late rows are handed to it, by stream and with all their columns; otherwise only
    the columns that the query needs are read.
    """

    def __init__(
        self,
        query: Query,
        sources: Mapping[str, Any],
        options: LocalOptions,
        *,
        late: Callable[[str, pa.Table], None] | None = None,
    ) -> None:
        plan = read_plan(query, options.plan)
        self.sources = _sources(query, sources)
        needed = query if late is not None else narrowed(query)
        check_columns(needed)
        begin = time.perf_counter()
        self.run = LocalRun(
            needed,
            plan,
            memory_limit=options.memory_limit,
            adapt=options.policy or False,
            budget=options.budget,
            seed=secrets.randbits(64) if options.seed is None else options.seed,
        )
        self._replay = Replay(needed, self.sources, options)
        self._late = late
        self.seconds = time.perf_counter() - begin
        self.peak_state_rows = 0
        self.peak_state_bytes = 0

    def results(self, watch: Callable[[], None] = lambda: None) -> Iterator[pa.RecordBatch]:
        """Yield the results as they are found; call `watch` after each of them and each batch."""
        begin = time.perf_counter() - self.seconds
        for batch in chain(self._replay, [None]):
            for found in self.run.finish() if batch is None else self.run.stream(batch):
                self._measure(begin)
                if found.num_rows:
                    yield found
                watch()
            for name, rows in self.run.late().items():
                if rows.num_rows and self._late is not None:
                    self._late(name, rows)
            self._measure(begin)
            watch()

    def _measure(self, begin: float) -> None:
        self.seconds = time.perf_counter() - begin
        self.peak_state_rows = max(self.peak_state_rows, self.state_rows)
        self.peak_state_bytes = max(self.peak_state_bytes, self.state_bytes)

    @property
    def counts(self) -> Counts:
        """Counts of the rows so far."""
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
        """The fraction of the input that is done, if it is known."""
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


def run(query: Query, sources: Mapping[str, Any], options: LocalOptions | None = None) -> Results:
    """Run a query to the end over tables, readers, iterators of batches or opened files.

    In event-time order, the default, no row is late. In file order, rows that are older than their
    stream's watermark are in `late`.
    """
    options = options or LocalOptions()
    late: dict[str, list[pa.Table]] = {name: [] for name in query.names}
    keep = (lambda name, rows: late[name].append(rows)) if options.order == "file" else None
    execution = Execution(query, sources, options, late=keep)
    table = pa.Table.from_batches(list(execution.results()), query.schema)
    return Results(
        table=table,
        counts=execution.counts,
        late={
            s.name: pa.concat_tables([pa.Table.from_batches([], late_schema(s)), *late[s.name]])
            for s in query.streams
        },
        bad={name: list(source.bad.rows) for name, source in execution.sources.items()},
        seconds=execution.seconds,
        peak_state_rows=execution.peak_state_rows,
        peak_state_bytes=execution.peak_state_bytes,
        migrations=execution.run.migrations,
        events=execution.run.events,
    )


def late_schema(stream: Stream) -> pa.Schema:
    """All columns of a stream, in the types that late rows have: without dictionaries."""
    return pa.schema([(f.name, stored_type(f.type)) for f in stream.fields])


def _sources(query: Query, given: Mapping[str, Any]) -> dict[str, Source]:
    """Make a source for each stream; streams with the same rows share one."""
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
