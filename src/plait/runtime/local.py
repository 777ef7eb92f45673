"""The local runtime: a query at work in this process, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import pyarrow as pa

from plait.adapt.adapter import Adapter
from plait.adapt.decide import Decision
from plait.adapt.events import Event
from plait.adapt.loop import Setting
from plait.adapt.policy import Policy
from plait.engine.engines import Engine, make_engine
from plait.engine.ingest import Admitted, Arrivals
from plait.engine.migrate.choose import Chooser, moving_unless_dearer
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.migrate.record import Migration, Order, Strategy
from plait.engine.migrate.strategy import check_request, migrate, settled
from plait.engine.purging import Purge
from plait.engine.times import BEFORE_ALL_TIMES
from plait.engine.watermarks import watermarks_of
from plait.engine.windows import Windows
from plait.errors import MigrationError, PlaitError, SourceError
from plait.optimize.budget import Budget
from plait.optimize.costs import Costs, load
from plait.plan.jtree import Join, Leaf, mjoin
from plait.plan.routed import Plan
from plait.query.compare import difference
from plait.query.query import Query
from plait.tuning import USUAL, Tuning

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
    beginning of the batch: the newest event time of earlier batches minus the stream's delay, or
    the least of these times of all streams if the query says so.
    `plan` is a tree of joins, or a router such as `Teddies()`. A tree that holds more than
    `memory_limit` bytes ends in MemoryExceeded. `purge="lemma"` drops rows by the tuples that came
    instead of by watermarks, for streams in order. Results do not depend on the `tuning`.

    With `adapt`, a policy or True for the usual one, a tree of joins is replaced between batches
    by one that is better for the streams as they are, or that fits the `budget`; `events` tells
    about it. Estimates are priced by `costs`, by default those that were calibrated.

    `seed` is what the hashes of keys follow from. Where keys come from strangers, draw it at
    random: who knows it can choose keys that make every lookup slow.
    """

    def __init__(
        self,
        query: Query,
        plan: Plan | None = None,
        *,
        hash_bits: int = 64,
        memory_limit: int | None = None,
        purge: Purge = "watermark",
        tuning: Tuning = USUAL,
        adapt: Policy | bool = False,
        budget: Budget | None = None,
        costs: Costs | None = None,
        seed: int = 0,
    ) -> None:
        self.query = query
        self.plan: Plan = mjoin(query) if plan is None else plan
        self.engine: Engine = make_engine(
            query,
            self.plan,
            windows=Windows(query, {}, hash_bits=hash_bits, purge=purge, tuning=tuning, seed=seed),
            memory_limit=memory_limit,
            purge=purge,
        )
        self.counts = Counts.of(query.names)
        self._newest = [BEFORE_ALL_TIMES] * len(query.streams)
        self._late: dict[str, list[pa.RecordBatch]] = {name: [] for name in query.names}
        self._done: list[Migration] = []
        self._queued: list[tuple[Migration, Chooser]] = []
        self._waited: list[pa.RecordBatch] = []
        self._within_batch = False
        self._finished = False
        self._kept = False
        self.events: list[Event] = []
        """What the adaptive loop did."""
        self._adapter: Adapter | None = None
        if adapt and isinstance(self.plan, Join | Leaf):
            policy = Policy() if adapt is True else adapt
            setting = Setting(query, policy, budget or Budget(), costs or load())
            self._adapter = Adapter(setting)

    @property
    def watermarks(self) -> dict[str, int | None]:
        """The watermark of each stream in microseconds, None before its first row."""
        marks = watermarks_of(self.query, self._newest)
        return {
            name: None if mark == BEFORE_ALL_TIMES else mark
            for name, mark in zip(self.query.names, marks, strict=True)
        }

    def push(self, batch: Mapping[str, Rows]) -> pa.Table:
        """Join one batch of rows, of any of the streams; the results it completes."""
        return pa.Table.from_batches(list(self.stream(batch)), self.query.schema)

    def stream(self, batch: Mapping[str, Rows]) -> Iterator[pa.RecordBatch]:
        """Like `push`, but results come as they are found; must be exhausted."""
        # All streams first: a batch that is refused leaves nothing behind.
        watermarks = watermarks_of(self.query, self._newest)
        given_rows = {self.query.index(name): _one_batch(rows) for name, rows in batch.items()}
        admitted = {
            stream: self.engine.admit(stream, rows, watermarks[stream])
            for stream, rows in given_rows.items()
        }
        newest = list(self._newest)
        for stream, given in admitted.items():
            newest[stream] = max(newest[stream], given.newest)
            self._count(self.query.names[stream], given)
        arrivals = {stream: given.arrivals for stream, given in admitted.items()}
        self._newest = newest
        watermarks = watermarks_of(self.query, newest)
        self.counts.batches += 1
        self._within_batch = True
        yield from self._counted(self._that_waited())
        if self._adapter is None or self._kept:
            yield from self._counted(self.engine.push(arrivals, watermarks))
        else:
            yield from self._adapting(self._adapter, arrivals, watermarks)
        self._within_batch = False
        self._settle()

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

        There are none unless the plan lets tuples wait beyond their batch, or a migration holds
        results back.
        """
        self._finished = True
        yield from self._counted(self._that_waited())
        yield from self._counted(self.engine.finish())

    # -- the adaptive loop

    def _adapting(
        self, adapter: Adapter, arrivals: dict[int, Arrivals], watermarks: list[int]
    ) -> Iterator[pa.RecordBatch]:
        """Join a batch, and let the loop look at it."""
        number, newest = self.counts.batches, max(self._newest)
        for piece in adapter.pieces(self.engine, number, arrivals, watermarks, newest):
            self._carry_out(adapter, adapter.foresee(self.engine, piece))
            adapter.begin(self.engine)
            found = self.engine.push(piece.arrivals, piece.watermarks)
            yield from self._counted(adapter.timed(found))
            self._carry_out(adapter, adapter.end(self.engine, piece))

    def _carry_out(self, adapter: Adapter, decision: Decision | None) -> None:
        if decision is not None:
            assert decision.plan is not None
            self._let_go()
            request = Migration("auto", self.plan, decision.plan)
            try:
                record = self._begin(request, adapter.chooser(self.engine))
            except PlaitError as error:
                here = self.counts.batches
                record = replace(request, start=here, end=here, refused=str(error))
                self._done.append(record)
            adapter.carried_out(record)
        self.events += adapter.events()

    # -- another plan

    @property
    def migrations(self) -> list[Migration]:
        """All migrations so far: those done, the one under way, those queued."""
        under_way = [self.engine.record] if isinstance(self.engine, ParallelTrack) else []
        return [*self._done, *under_way, *(request for request, _ in self._queued)]

    def migrate(
        self,
        plan: Plan,
        strategy: Strategy | Literal["auto"] = "moving-state",
        *,
        order: Order = "any",
        query: Query | None = None,
        choose: Chooser = moving_unless_dearer,
    ) -> Migration:
        """Go on with another plan from the next batch on; no result is lost or repeated.

        Moving state is done when this returns; a parallel track runs both plans until the old one
        has no old tuple left. While it does, and in the middle of a batch, a migration is queued,
        and begins between two batches when its turn comes; if it does not fit into the memory
        limit then, its record says so. `query` is the one that the plan was made for, if that is
        to be checked. What is refused changes nothing: the query runs on. A run that adapts keeps
        the plan, until `release` is called.
        """
        if query is not None and query != self.query:
            raise MigrationError(
                f"the plan {plan} is for another query: {difference(query, self.query)}",
                remedy="make a plan for the query that runs",
            )
        running = self._queued[-1][0].new if self._queued else self.plan
        check_request(self.query, running, plan, strategy, order)
        if self._finished:
            raise MigrationError(
                f"the query has finished, so it cannot go on with {plan}",
                remedy="start it again with this plan",
            )
        self._kept = True
        request = Migration(strategy, running, plan, order)
        if self.engine.migrating or self._within_batch:
            self._queued.append((request, choose))
            return request
        return self._begin(request, choose)

    def release(self) -> None:
        """Let the run choose its plan again, after `migrate`."""
        self._kept = False

    def _begin(self, request: Migration, choose: Chooser) -> Migration:
        done = migrate(
            self.engine,
            request.new,
            request.strategy,
            order=request.order,
            start=self.counts.batches,
            choose=choose,
        )
        self.engine, self.plan = done.engine, request.new
        self._waited += done.waited
        if self.engine.migrating:
            return done.record
        self.engine = settled(self.engine)
        self._done.append(done.record)
        return done.record

    def _settle(self) -> None:
        """Let go of a plan that has nothing left to do, and begin what was queued."""
        self._let_go()
        while self._queued and not self.engine.migrating:
            request, choose = self._queued.pop(0)
            try:
                self._begin(request, choose)
            except PlaitError as error:
                # Nobody waits for an answer any more: the query runs on, and the record says why.
                here = self.counts.batches
                self._done.append(replace(request, start=here, end=here, refused=str(error)))

    def _let_go(self) -> None:
        if isinstance(self.engine, ParallelTrack) and not self.engine.migrating:
            self._done.append(self.engine.record)
            self.engine = self.engine.new

    def _that_waited(self) -> Iterator[pa.RecordBatch]:
        """Results that an engine had not emitted when it was replaced."""
        waited, self._waited = self._waited, []
        yield from waited

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
