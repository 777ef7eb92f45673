"""The local runtime: a query at work in this process, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from plait.engine.engines import Engine, make_engine
from plait.engine.ingest import BEFORE_ALL_TIMES, Admitted
from plait.errors import SourceError
from plait.plan.jtree import mjoin
from plait.plan.routed import Plan
from plait.query.query import Query

Rows: TypeAlias = pa.Table | pa.RecordBatch


@dataclass(slots=True)
class Counts:
    """What has become of the rows so far, per stream, and how many results there were."""

    rows: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    null_times: dict[str, int] = field(default_factory=dict)
    null_keys: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    results: int = 0
    portions: int = 0
    """Record batches in which the results came."""

    @classmethod
    def of(cls, names: tuple[str, ...]) -> Counts:
        """All zero."""
        zero = dict.fromkeys(names, 0)
        return cls(zero, zero.copy(), zero.copy(), zero.copy(), zero.copy())


class LocalRun:
    """A running query.

    Each `push` is one batch. A row is late when it is older than its stream's watermark at the
    beginning of the batch: the newest event time of earlier batches minus the stream's delay.
    `plan` is a tree of joins, or a router such as `Teddies()`. A tree that holds more than
    `memory_limit` bytes ends in MemoryExceeded.
    """

    def __init__(
        self,
        query: Query,
        plan: Plan | None = None,
        *,
        hash_bits: int = 64,
        portion: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.query = query
        self.plan: Plan = mjoin(query) if plan is None else plan
        self._portion = portion
        self._memory_limit = memory_limit
        self.engine: Engine = make_engine(
            query, self.plan, hash_bits=hash_bits, portion=portion, memory_limit=memory_limit
        )
        self.counts = Counts.of(query.names)
        self._newest = [BEFORE_ALL_TIMES] * len(query.streams)
        self._late: dict[str, list[pa.RecordBatch]] = {name: [] for name in query.names}

    @property
    def watermarks(self) -> dict[str, int | None]:
        """The watermark of each stream in microseconds, None before its first row."""
        return {
            s.name: None if newest == BEFORE_ALL_TIMES else newest - s.delay
            for s, newest in zip(self.query.streams, self._newest, strict=True)
        }

    def _watermark(self, stream: int) -> int:
        newest = self._newest[stream]
        return newest - self.query.streams[stream].delay if newest > BEFORE_ALL_TIMES else newest

    def push(self, batch: Mapping[str, Rows]) -> pa.Table:
        """Join one batch of rows, of any of the streams; the results it completes."""
        return pa.Table.from_batches(list(self.stream(batch)), self.query.schema)

    def stream(self, batch: Mapping[str, Rows]) -> Iterator[pa.RecordBatch]:
        """Like `push`, but results come as they are found; must be exhausted."""
        # All streams first: a batch that is refused leaves nothing behind.
        admitted = {
            self.query.index(name): self.engine.admit(
                self.query.index(name), _one_batch(rows), self._watermark(self.query.index(name))
            )
            for name, rows in batch.items()
        }
        newest = list(self._newest)
        for stream, found in admitted.items():
            newest[stream] = max(newest[stream], found.newest)
            self._count(self.query.names[stream], found)
        arrivals = {stream: found.arrivals for stream, found in admitted.items()}
        self._newest = newest
        watermarks = [self._watermark(s) for s in range(len(newest))]
        self.counts.batches += 1
        yield from self._counted(self.engine.push(arrivals, watermarks))

    def _count(self, name: str, admitted: Admitted) -> None:
        self.counts.rows[name] += admitted.rows
        self.counts.null_keys[name] += admitted.null_keys
        self.counts.filtered[name] += admitted.filtered
        if admitted.null_times is not None:
            self.counts.null_times[name] += admitted.null_times.num_rows
        if admitted.late is not None:
            self.counts.late[name] += admitted.late.num_rows
            self._late[name].append(admitted.late)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The results that still waited for company after the last batch; must be exhausted.

        There are none unless the plan lets tuples wait beyond their batch.
        """
        yield from self._counted(self.engine.finish())

    def switch(self, plan: Plan) -> pa.Table:
        """Go on with another plan from the next batch on; the results that still waited.

        The windows stay. What the new plan needs beside them is computed from them.
        """
        waited = pa.Table.from_batches(list(self.finish()), self.query.schema)
        self.engine = make_engine(
            self.query,
            plan,
            portion=self._portion,
            windows=self.engine.windows,
            memory_limit=self._memory_limit,
        )
        self.plan = plan
        return waited

    def _counted(self, found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for results in found:
            self.counts.results += results.num_rows
            self.counts.portions += 1
            yield results

    def late(self) -> dict[str, pa.Table]:
        """The late rows since the last call, per stream."""
        tables = {
            name: pa.Table.from_batches(self._late[name], self.engine.schema(stream))
            for stream, name in enumerate(self.query.names)
        }
        self._late = {name: [] for name in self.query.names}
        return tables


def _one_batch(rows: Rows) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch):
        return rows
    if not isinstance(rows, pa.Table):
        raise SourceError(
            f"a batch is given as a {type(rows).__name__}", remedy="give a pyarrow Table"
        )
    combined = rows.combine_chunks().to_batches()
    if len(combined) == 1:
        return combined[0]
    if not combined:
        return pa.RecordBatch.from_pylist([], rows.schema)
    return pa.concat_batches(combined)
