"""Run a node in this process, batch by batch; nothing is stored or committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from plait.adapt.events import Event
from plait.adapt.policy import PlanPolicy
from plait.adapt.setting import Setting
from plait.engine.driver import Engine
from plait.engine.intake.admission import LATE
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.purging import PurgeByWatermarks
from plait.errors import MigrationError
from plait.machine.clock import REAL, Clock, micros_now
from plait.node.batch import Aside, Rows, batch_of_rows
from plait.node.node import Node, Setup
from plait.optimize.budget import Budget
from plait.optimize.costs import Costs, load
from plait.plan.jtree import mjoin
from plait.plan.migration import Migration, ResultOrder, Strategy
from plait.plan.routed import Plan
from plait.query.compare import difference
from plait.query.query import Query
from plait.tuning import USUAL, Tuning

__all__ = ["Counts", "LocalRun", "Rows"]


@dataclass(slots=True)
class Counts:
    """Rows by stream and by what became of them, and the number of results."""

    rows: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    null_times: dict[str, int] = field(default_factory=dict)
    ahead: dict[str, int] = field(default_factory=dict)
    null_keys: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    results: int = 0
    portions: int = 0
    """Record batches in which the results came."""

    @classmethod
    def of(cls, names: tuple[str, ...]) -> Counts:
        """All zero."""
        a, b, c, d, e, f = (dict.fromkeys(names, 0) for _ in range(6))
        return cls(a, b, c, d, e, f)


class LocalRun:
    """A running query.

    Each `push` is one batch. A row is late when it is older than its stream's watermark at the
    beginning of the batch: the newest event time of earlier batches minus the stream's delay, or
    the least of these times of all streams if the query says so.
    `plan` is a tree of joins, or a router such as `Teddies()`. A tree that holds more than
    `memory_limit` bytes ends in MemoryExceeded. `purge` is the rule by which states drop rows.
    Results do not depend on it, nor on the `tuning`.

    With `adapt`, a policy or True for the usual one, a tree of joins is replaced between batches
    by one that is better for the streams as they are, or that fits the `budget`; `events` tells
    about it. Estimates are priced by `costs`, by default those that were calibrated.

    `seed` is what the hashes of keys follow from. Where keys come from strangers, draw it at
    random: who knows it can choose keys that make every lookup slow.

    `aside` is told the rows of each batch that are not joined, with the reason; `late` keeps those
    that are late. `present` tells the time in microseconds since 1970; rows of a stream with a
    bound (`ahead`) are compared with it. `clock` measures what plans take.
    """

    def __init__(
        self,
        query: Query,
        plan: Plan | None = None,
        *,
        hash_bits: int = 64,
        memory_limit: int | None = None,
        purge: type[PurgeByWatermarks] = PurgeByWatermarks,
        tuning: Tuning = USUAL,
        adapt: PlanPolicy | Setting | bool = False,
        budget: Budget | None = None,
        costs: Costs | None = None,
        seed: int = 0,
        aside: Callable[[Aside], None] | None = None,
        present: Callable[[], int] = micros_now,
        clock: Clock = REAL,
    ) -> None:
        self.query = query
        self._present = present
        setting: Setting | None = None
        if isinstance(adapt, Setting):
            setting = adapt
        elif adapt:
            policy = PlanPolicy() if isinstance(adapt, bool) else adapt
            setting = Setting(query, policy, budget or Budget(), costs or load())
        self.node = Node(
            Setup(
                query,
                mjoin(query) if plan is None else plan,
                adapt=setting,
                tuning=tuning,
                seed=seed,
                hash_bits=hash_bits,
                purge=purge,
                memory_limit=memory_limit,
            ),
            clock=clock,
        )
        self.counts = Counts.of(query.names)
        self.events: list[Event] = []
        """The events of the adaptive loop."""
        self._late: dict[str, list[pa.RecordBatch]] = {name: [] for name in query.names}
        self._aside = aside
        self._finished = False

    @property
    def engine(self) -> Engine:
        """The engine of the node."""
        return self.node.engine

    @property
    def plan(self) -> Plan:
        """The running plan, or the one that it is migrating to."""
        return self.node.plan

    @property
    def watermarks(self) -> dict[str, int | None]:
        """The watermark of each stream in microseconds, None before its first row."""
        return {
            name: None if mark == BEFORE_ALL_TIMES else mark
            for name, mark in zip(self.query.names, self.node.watermarks, strict=True)
        }

    def push(self, batch: Mapping[str, Rows]) -> pa.Table:
        """Join one batch of rows of any of the streams; return the results that it completes."""
        return pa.Table.from_batches(list(self.stream(batch)), self.query.schema)

    def stream(self, batch: Mapping[str, Rows]) -> Iterator[pa.RecordBatch]:
        """Like `push`, but yield results as they are found. Take all of them: the rest of the
        batch is done between them.
        """
        for found in self.node.step(batch_of_rows(self.query, batch, self._present())):
            if isinstance(found, Aside):
                if self._aside is not None:
                    self._aside(found)
                if found.reason == LATE:
                    self._late[self.query.names[found.stream]].append(found.rows)
                continue
            self._count(found)
            yield found
        report = self.node.report
        self.events += report.events
        self.counts.batches += 1
        for name in ("rows", "late", "null_times", "ahead", "null_keys", "filtered"):
            sums = getattr(self.counts, name)
            for stream, n in getattr(report, name).items():
                sums[stream] += n

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the results that still waited after the last batch. Take all of them.

        There are none unless the plan lets tuples wait beyond their batch, or a migration holds
        results back.
        """
        self._finished = True
        for found in self.node.finish():
            self._count(found)
            yield found

    def late(self) -> dict[str, pa.Table]:
        """The late rows since the last call, per stream."""
        tables = {
            name: pa.Table.from_batches(self._late[name], self.engine.schema(stream))
            for stream, name in enumerate(self.query.names)
        }
        self._late = {name: [] for name in self.query.names}
        return tables

    def _count(self, found: pa.RecordBatch) -> None:
        self.counts.results += found.num_rows
        self.counts.portions += 1

    # -- another plan

    @property
    def migrations(self) -> list[Migration]:
        """All migrations so far: those done, the one under way, those queued."""
        under_way = self.engine.migration
        return [*self.node.migrations, *([under_way] if under_way else []), *self.node.queued]

    def migrate(
        self,
        plan: Plan,
        strategy: Strategy | Literal["auto"] = "moving-state",
        *,
        order: ResultOrder = "any",
        query: Query | None = None,
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
        if self._finished:
            raise MigrationError(
                f"the query has finished, so it cannot go on with {plan}",
                remedy="start it again with this plan",
            )
        return self.node.migrate(plan, strategy, order=order)

    def release(self) -> None:
        """Let the run choose its plan again, after `migrate`."""
        self.node.release()
