"""The virtual runtime: the real engine on real tuples, on a machine whose time is computed.

*Correct output.* The results of a local run over the same rows: only when they come is computed.

*Time.* A stream's row arrives at its event time, or later if it comes through a link. The machine
takes rows in slices of event time, `quantum` seconds each, all streams at the same instants; a
slice can begin when all its rows have arrived and the machine is free. What it costs is read from
the engine's counters (`accounting.py`), and the machine is free again that much later. So a
machine that is slower than the streams falls behind: rows wait in its input queues, and it works
through them as fast as it can, also after the streams have ended.

*Migrations* are asked for at an instant and begin when the machine has done the slice it is at.
Moving state first *cleans* the queues (`work-off`): what has arrived before that instant is worked
off by the old plan; then the state is *moved*, during which nothing comes out. With `take-over` the
rows that wait are left to the new plan at once, which is the refinement of the paper's footnote 4:
the queues are worked off in event-time order, so no stream is behind another. A parallel track
begins at once and lasts until the old plan has no old tuple left.

*Invariants.* Arrived = taken + queued, per stream and at all times. Nothing depends on anything but
the rows, the plan and the costs: the same run twice is the same, to the last bit.

*Cost.* One push per slice that has rows, so a run takes about as long as a local run in as many
batches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.engine.intake.times import event_times
from plait.engine.purging import PurgeByWatermarks
from plait.errors import PlaitError, did_you_mean
from plait.machine.clock import Clock
from plait.node.batch import Aside, Rows, batch_of_rows
from plait.node.node import Node, Setup
from plait.optimize.costs import DEFAULT, Costs
from plait.plan.jtree import Node as Tree
from plait.plan.migration import ResultOrder, Strategy
from plait.query.query import Query
from plait_lab.virtual.accounting import Account, Meter
from plait_lab.virtual.machines import Link, Machine
from plait_lab.virtual.trace import Slice, Stage, Trace

Clean = Literal["work-off", "take-over"]
_SECOND = 1_000_000
_TINY = 1e-9
_NO_CLOCK = Clock(float, float)
"""Time is computed here from what is counted; nothing is measured."""


@dataclass(frozen=True, slots=True)
class Request:
    """A migration to begin at an instant of virtual time."""

    at: float
    plan: Tree
    strategy: Strategy
    order: ResultOrder
    clean: Clean


class VirtualRun:
    """A query and a plan on one machine, with the rows of its streams to come.

    `tables` have the rows of each stream in order of time, from second 0 on; `feeds` are the links
    that streams come through, a row being of size 1. `keep` keeps the results. `aside` is told the
    rows that are not joined.
    """

    def __init__(
        self,
        query: Query,
        plan: Tree,
        tables: Mapping[str, pa.Table],
        *,
        machine: Machine | None = None,
        account: Account = "hash",
        costs: Costs = DEFAULT,
        purge: type[PurgeByWatermarks] = PurgeByWatermarks,
        quantum: float = 0.05,
        feeds: Mapping[str, Link] | None = None,
        keep: bool = False,
        aside: Callable[[Aside], None] | None = None,
    ) -> None:
        if not quantum > 0:
            raise PlaitError(f"a quantum of {quantum} seconds", remedy="give one above 0")
        self.query = query
        self.node = Node(Setup(query, plan, purge=purge), clock=_NO_CLOCK)
        self.filtered: Counter[str] = Counter()
        """Rows of each stream that a condition on their own stream refused."""
        self._aside = aside
        self.machine = machine or Machine()
        self.quantum = quantum
        self.clock = 0.0
        self.trace = Trace()
        self.kept: list[pa.RecordBatch] = []
        self._keep = keep
        self._meter = Meter(query, account, costs)
        self._queues = [
            _Queue(s.name, tables[s.name], s.time, (feeds or {}).get(s.name)) for s in query.streams
        ]
        self._last = last = max((q.last for q in self._queues), default=0.0)
        # Rows from before second 0 are all in the first slice.
        self._slices = max(1, int(last / quantum) + 1) if any(map(len, self._queues)) else 0
        self._next = 0
        self._requests: list[Request] = []
        self._cleaning: float | None = None
        self._parallel: float | None = None

    # -- what may be asked

    @property
    def done(self) -> bool:
        """Whether all rows have been worked off and nothing is left to migrate."""
        return self._next >= self._slices and not self._requests

    @property
    def queued(self) -> int:
        """Rows that have arrived and wait."""
        return sum(q.arrived_by(self.clock) - q.taken for q in self._queues)

    @property
    def migrating(self) -> bool:
        """Whether a migration is to come or under way."""
        return bool(self._requests) or self.node.engine.migrating

    def migrate(
        self,
        at: float,
        plan: Tree,
        strategy: Strategy = "moving-state",
        *,
        order: ResultOrder = "any",
        clean: Clean = "work-off",
    ) -> None:
        """Change the plan at an instant of virtual time."""
        if clean not in get_args(Clean):
            raise PlaitError(
                f"queues cannot be cleaned by {clean!r}",
                remedy=did_you_mean(clean, get_args(Clean)),
            )
        self._requests.append(Request(at, plan, strategy, order, clean))
        self._requests.sort(key=lambda request: request.at)

    def advance(self, until: float = float("inf"), *, through_migrations: bool = False) -> Trace:
        """Go on until a time (the slice at work is done), or to the end of all rows.

        With `through_migrations`, stop as soon as there is no migration to come or under way.
        """
        while not self.done and self.clock < until:
            if through_migrations and not self.migrating:
                break
            self._step()
        return self.trace

    # -- one slice, or the beginning of a migration

    def _step(self) -> None:
        begin = max(self.clock, self._ready(self._next)) if self._next < self._slices else None
        request = self._due(begin)
        if request is not None:
            if not self._to_clean(request):
                self._migrate(request)
                return
            if self._cleaning is None:
                self._cleaning = max(self.clock, request.at)
        assert begin is not None, "a run that is not done has rows left or a migration to begin"
        self._work(begin)

    def _due(self, begin: float | None) -> Request | None:
        """The migration that is asked for before the next slice begins."""
        if not self._requests or self.node.engine.migrating:
            return None
        request = self._requests[0]
        return request if begin is None or begin >= request.at - _TINY else None

    def _to_clean(self, request: Request) -> bool:
        """Whether rows wait that moving state works off first."""
        if request.strategy != "moving-state" or request.clean != "work-off":
            return False
        return self._next < self._slices and self._ready(self._next) < request.at - _TINY

    def _migrate(self, request: Request) -> None:
        self._requests.pop(0)
        start = self.clock = max(self.clock, request.at)
        if self._cleaning is not None:
            self.trace.stages.append(Stage("clean", self._cleaning, start))
            self._cleaning = None
        record = self.node.migrate(request.plan, request.strategy, order=request.order)
        if request.strategy == "moving-state":
            work = self._meter.moved(self.node.engine, record)
            self.clock += self.machine.seconds(work)
            self.trace.stages.append(Stage("move", start, self.clock))
        else:
            self._parallel = start
            self._close_parallel()

    def _close_parallel(self) -> None:
        if self._parallel is not None and not self.node.engine.migrating:
            self.trace.stages.append(Stage("parallel", self._parallel, self.clock))
            self._parallel = None

    def _work(self, begin: float) -> None:
        """Push the next slice through the engine."""
        reached = self._reached(self._next)
        taken = {q.name: q.take(reached) for q in self._queues}
        batch: dict[str, Rows] = {name: rows for name, rows in taken.items() if rows.num_rows}
        self._next += 1
        if not batch:
            return
        before = self._meter.read(self.node.engine)
        results = 0
        for found in self.node.step(batch_of_rows(self.query, batch)):
            if isinstance(found, Aside):
                if self._aside is not None:
                    self._aside(found)
                continue
            results += found.num_rows
            if self._keep:
                self.kept.append(found)
        self.filtered.update(self.node.report.filtered)
        work = self._meter.since(before, results)
        self.clock = begin + self.machine.seconds(work)
        engine = self.node.engine
        combined = sum(len(state) for state in engine.states()[len(engine.bases) :])
        rows = sum(t.num_rows for t in batch.values())
        base = sum(len(s) for s in self.node.engine.bases)
        self.trace.slices.append(
            Slice(begin, self.clock, reached, rows, results, base, combined, self.queued)
        )
        self._close_parallel()

    def _ready(self, number: int) -> float:
        """When a slice's rows have all arrived."""
        return max(q.complete_by(self._reached(number)) for q in self._queues)

    def _reached(self, number: int) -> float:
        """The event time up to which a slice has rows; the last one has all, however rounded."""
        reached = (number + 1) * self.quantum
        if number + 1 < self._slices:
            return reached
        return max(reached, math.nextafter(self._last, math.inf))


class _Queue:
    """The rows of a stream: to come, waiting, or taken."""

    def __init__(self, name: str, table: pa.Table, time: str, feed: Link | None) -> None:
        self.name = name
        chunks = table.combine_chunks().to_batches()
        self._rows = chunks[0] if chunks else pa.RecordBatch.from_pylist([], table.schema)
        stamps = event_times(self._rows.column(time))
        self._events: NDArray[np.float64] = stamps / _SECOND
        if np.any(np.diff(stamps) < 0):
            raise PlaitError(
                f"the rows of stream {name!r} are not in order of time",
                remedy="sort them: virtual time arrives in order",
            )
        self._latency = 0.0 if feed is None else feed.latency
        self._arrivals = self._events if feed is None else feed.deliver(self._events)
        self.taken = 0

    def __len__(self) -> int:
        return len(self._events)

    @property
    def last(self) -> float:
        """The time of the last row."""
        return float(self._events[-1]) if len(self) else 0.0

    def arrived_by(self, time: float) -> int:
        """How many rows have arrived."""
        return max(self.taken, int(np.searchsorted(self._arrivals, time, side="right")))

    def complete_by(self, reached: float) -> float:
        """When it is known that all rows before an event time have arrived."""
        through = reached + self._latency
        stop = int(np.searchsorted(self._events, reached, side="left"))
        return max(through, float(self._arrivals[stop - 1])) if stop else through

    def take(self, reached: float) -> pa.RecordBatch:
        """The waiting rows before an event time."""
        stop = int(np.searchsorted(self._events, reached, side="left"))
        rows = self._rows.slice(self.taken, stop - self.taken)
        self.taken = stop
        return rows
