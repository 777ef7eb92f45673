"""A node: one engine, its plan and its watermarks, and what decides about them.

*Correct output.* Over all steps, every result whose tuples came to this node, each exactly once,
and every row that was set aside, with the reason. Nothing of that depends on plans.

*Invariants.* A node is a state machine: what a step does follows from the node, the batch and what
it is told. Clock, storage, commit and transport are its host's. A step admits the rows by the
watermarks before the batch, moves the watermarks, joins, and lets the adaptive loop look. Plans
change between batches, or between the pieces of a batch where the loop says so. Between two steps
everything that a node knows is in its header, apart from the rows of its windows; so a node that
was rebuilt from both finds the same results as one that went on.

*Cost.* That of the engine, and a constant for each batch.

*Ties and time.* Rows are late against the watermarks at the beginning of the batch. If many nodes
are told the same progress of the streams, they have the same watermarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.adapt.policy import PlanPolicy
from plait.adapt.setting import Setting
from plait.adapt.strategy import Way
from plait.engine.driver import Engine
from plait.engine.intake.admission import AHEAD, LATE, NO_TIME, NULL_KEY
from plait.engine.intake.ingest import Admitted, Arrivals
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.intake.watermarks import watermarks_of
from plait.engine.migrate.strategy import check_request, migrate
from plait.engine.purging import PurgeByWatermarks
from plait.engine.windows import Windows
from plait.errors import PlaitError
from plait.kernels.memory import HEAP, Memory
from plait.machine.clock import Clock
from plait.node.adapting import Adapting, unwatched
from plait.node.batch import Aside, Batch
from plait.node.durable.header import Header, stored_plan
from plait.node.epochs import Epoch
from plait.node.idle import followed
from plait.node.reports.report import Report, add
from plait.node.reports.work import Tally, held
from plait.node.strategy_choice import choose_strategy
from plait.node.time_outliers import time_outliers_after
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.plan.jtree import Join, Leaf
from plait.plan.migration import Migration, ResultOrder, Strategy
from plait.plan.routed import Plan
from plait.query.query import Query
from plait.tuning import USUAL, Tuning


@dataclass(frozen=True, slots=True)
class Setup:
    """What a node is set up with: a value that travels to wherever the node runs."""

    query: Query
    plan: Plan
    adapt: Setting | None = None
    """By what to change the plan while it runs; None leaves it as it is."""
    tuning: Tuning = USUAL
    seed: int = 0
    """What the hashes inside the engine follow from; any will do, and it need not be durable."""
    hash_bits: int = 64
    purge: type[PurgeByWatermarks] = PurgeByWatermarks
    memory_limit: int | None = None
    milestone: Callable[[str], None] = unwatched
    """Called where the loop's decisions are made and carried out; tests end the process there."""

    def engine(self, plan: Plan, memory: Memory = HEAP) -> Engine:
        """An empty engine that runs a plan."""
        windows = Windows(
            self.query,
            {},
            hash_bits=self.hash_bits,
            memory=memory,
            purge=self.purge,
            tuning=self.tuning,
            seed=self.seed,
        )
        return Engine(self.query, plan, windows=windows, memory_limit=self.memory_limit)


class Node:
    """An engine at work, which goes on from a `header` with the `engine` of that state.

    `number` is its number among the nodes of the query. With `every_batch`, the adaptive loop looks
    after each batch, because it may be the last one that this process sees.
    """

    def __init__(
        self,
        setup: Setup,
        header: Header | None = None,
        engine: Engine | None = None,
        *,
        clock: Clock,
        number: int = 0,
        every_batch: bool = False,
    ) -> None:
        header = Header.new(setup.query) if header is None else header
        self.setup = setup
        self.query = setup.query
        self.engine = setup.engine(setup.plan) if engine is None else engine
        self.number = number
        self.batch = header.batch
        """How many batches it has joined, or is joining."""
        self.newest = list(header.newest)
        """The newest event time of each stream."""
        self.floors = list(header.floors or (BEFORE_ALL_TIMES,) * len(self.newest))
        """The time below which the watermark of each stream does not go."""
        self.far_ahead = header.far_ahead
        """Streams that are far ahead of the others."""
        self.followed = header.followed
        """What it was told to run, and by whom."""
        self.is_late: dict[int, npt.NDArray[np.bool_] | None] = {}
        """For each row of the last batch that could be in a result, whether it was late."""
        self.migrations: list[Migration] = []
        """The changes of plan that came to their end."""
        self.report = Report(number, self.batch)
        self.moving = header.moving
        self._heard = header.heard
        self._loop_state = header.loop
        self._looked = False
        self.queued: list[Migration] = []
        """The changes of plan that wait for their turn."""
        self._clock = clock
        self._waited: list[pa.RecordBatch] = []
        self._busy = False
        self._loop: Adapting | None = None
        if setup.adapt is not None and isinstance(setup.plan, Join | Leaf):
            self._loop = Adapting(
                setup.adapt,
                cpu=clock.cpu,
                state=header.loop,
                processor=number,
                every_batch=every_batch,
                milestone=setup.milestone,
            )

    @property
    def plan(self) -> Plan:
        """The plan that runs, or that it is going to."""
        return self.engine.plan

    @property
    def watermarks(self) -> list[int]:
        """The time below which a row of each stream is late."""
        return watermarks_of(self.query, self.newest, self.floors)

    def header(self, token: str, checksum: int) -> Header:
        """What it knows after a batch, with the name of its state and the sum of its segments."""
        return Header(
            newest=tuple(self.newest),
            batch=self.batch,
            token=token,
            heard=self._heard,
            total=self.report.total,
            followed=self.followed,
            plan=stored_plan(self.plan),
            asked=stored_plan(self.setup.plan),
            loop=self._loop_state
            if self._loop is None or not self._looked
            else self._loop.to_dict(),
            checksum=checksum,
            moving=self.moving,
            floors=tuple(self.floors),
            far_ahead=self.far_ahead,
        )

    # -- one batch

    def step(self, batch: Batch, epoch: Epoch | None = None) -> Iterator[pa.RecordBatch | Aside]:
        """Join one batch; yields results and rows that are set aside, and must be exhausted.

        Afterwards `report` tells what was done. A batch that is refused changes nothing. If the
        `epoch` is new, the node goes on with its plan; in the middle of a migration, it does so in
        a later batch.
        """
        self.report = Report(self.number, self.batch + 1)
        self._obey(epoch)
        tally = Tally(self.engine)
        watermarks = self.watermarks
        # All streams first: a batch that is refused leaves nothing behind.
        admitted = {
            stream: self.engine.admit(
                stream, rows, watermarks[stream], batch.flags.get(stream), batch.present
            )
            for stream, rows in batch.rows.items()
        }
        self.is_late = {stream: given.is_late for stream, given in admitted.items()}
        self.batch += 1
        self._busy = True
        began = self._clock.wall()
        self._count(batch, admitted)
        yield from self._aside(batch, admitted)
        self._advance(batch, admitted)
        arrivals = {stream: given.arrivals for stream, given in admitted.items()}
        del admitted  # rows that are stored may be given back to memory
        yield from self._counted(self.waited())
        yield from self._counted(self._joined(arrivals, epoch))
        self._busy = False
        self._settle()
        yield from self._counted(self.waited())
        self.report.states, self.report.work = held(self.engine), tally.since(self.engine)
        self._close(self._clock.wall() - began)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The results that still wait after the last batch; must be exhausted.

        There are none unless the plan lets tuples wait beyond their batch, or a migration holds
        results back.
        """
        yield from self.waited()
        yield from self.engine.finish()

    def _count(self, batch: Batch, admitted: Mapping[int, Admitted]) -> None:
        """Count the rows by what became of them, where nobody has done so before."""
        report = self.report
        report.routed, report.groups = batch.routed, batch.groups
        if batch.counts is not None:
            counts = batch.counts
            report.rows, report.null_times = counts.rows, counts.null_times
            report.null_keys, report.filtered = counts.null_keys, counts.filtered
            report.malformed, report.ahead = counts.malformed, counts.ahead
            return
        for stream, given in admitted.items():
            name = self.query.names[stream]
            add(report.rows, name, given.rows)
            add(report.filtered, name, given.filtered)
            add(report.null_times, name, _length(given.no_time))
            add(report.ahead, name, _length(given.ahead))
            add(report.null_keys, name, _length(given.no_key))

    def _aside(self, batch: Batch, admitted: Mapping[int, Admitted]) -> Iterator[Aside]:
        """The rows that are not joined. Of several copies of a late row, the original counts."""
        yield from batch.aside
        for stream, given in admitted.items():
            for reason, rows in (
                (NO_TIME, given.no_time),
                (AHEAD, given.ahead),
                (NULL_KEY, given.no_key),
            ):
                if rows is not None and rows.num_rows:
                    yield Aside(stream, reason, rows)
            late = given.late
            if late is None or given.is_late is None:
                continue
            originals = batch.originals.get(stream)
            if originals is not None:
                late = late.slice(0, int(np.count_nonzero(given.is_late[:originals])))
            add(self.report.late, self.query.names[stream], late.num_rows)
            if late.num_rows:
                yield Aside(stream, LATE, late)

    def _advance(self, batch: Batch, admitted: Mapping[int, Admitted]) -> None:
        """Move the watermarks as far as the streams have come."""
        before = list(self.newest)
        for stream, given in admitted.items():
            self.newest[stream] = max(self.newest[stream], given.newest)
        for stream, newest in batch.newest.items():
            self.newest[stream] = max(self.newest[stream], newest)
        if batch.clock is not None:
            since = self._heard or (batch.clock,) * len(self.newest)
            self._heard = tuple(
                batch.clock if stream in batch.newest else then for stream, then in enumerate(since)
            )
            self.floors = followed(
                self.query.streams, self.newest, self.floors, self._heard, batch.clock
            )
        report = self.report
        self.far_ahead = time_outliers_after(
            self.query, self.far_ahead, before, self.newest, report.rows, report.late
        )

    def _joined(
        self, arrivals: dict[int, Arrivals], epoch: Epoch | None
    ) -> Iterator[pa.RecordBatch]:
        """Join the batch; where the loop may choose the plan, in pieces that it looks at."""
        watermarks, loop = self.watermarks, self._loop
        if loop is None or self.followed.holds(epoch):
            yield from self.engine.push(arrivals, watermarks)
            return
        yield from loop.join(self, self.batch, arrivals, watermarks, max(self.newest))
        self.report.events = loop.events()
        self._looked = True

    def _counted(self, found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for results in found:
            self.report.results += results.num_rows
            yield results

    def waited(self) -> Iterator[pa.RecordBatch]:
        """Results that had not left the engine when its plan was changed."""
        waited, self._waited = self._waited, []
        yield from waited

    def _close(self, seconds: float) -> None:
        """Complete the report."""
        report = self.report
        report.plan = str(self.plan)
        report.epoch = self.followed.last
        report.seconds = {"join": seconds}
        report.far_ahead = self.far_ahead
        report.watermarks = {
            name: mark
            for name, mark in zip(self.query.names, self.watermarks, strict=True)
            if mark > BEFORE_ALL_TIMES
        }

    # -- another plan

    def migrate(
        self,
        plan: Plan,
        strategy: Strategy | Literal["auto"] = "moving-state",
        *,
        order: ResultOrder = "any",
    ) -> Migration:
        """Go on with another plan, and keep it until `release` is called.

        Within a batch and while another migration is under way, the request is queued. Its turn
        comes between two batches; if it is refused then, its record says so. What is refused here
        changes nothing.
        """
        running = self.queued[-1].new if self.queued else self.plan
        check_request(self.query, running, plan, strategy, order)
        self.followed = replace(self.followed, held=True)
        wanted = Migration(strategy, running, plan, order)
        if self.engine.migrating or self._busy:
            self.queued.append(wanted)
            return wanted
        return self._begin(wanted)

    def release(self) -> None:
        """Let the loop choose the plan again."""
        self.followed = replace(self.followed, held=False)

    def _obey(self, epoch: Epoch | None) -> None:
        """Go over to the plan of a new epoch."""
        if epoch is None or not self.followed.is_new(epoch) or self.engine.migrating:
            return
        obeyed = True
        if epoch.plan is not None and epoch.plan != self.plan:
            wanted = Migration(epoch.strategy, self.plan, epoch.plan)
            obeyed = not self.change(wanted).refused
        self.followed = self.followed.after(epoch, obeyed=obeyed)

    def change(self, wanted: Migration) -> Migration:
        """Change the plan now. If that is refused, the query runs on and the record says why."""
        self._note_ends()
        try:
            return self._begin(wanted)
        except PlaitError as error:
            record = replace(wanted, start=self.batch, end=self.batch, refused=str(error))
            self._ended(record)
            return record

    def _begin(self, wanted: Migration) -> Migration:
        """Change the plan now; raises if that is refused."""
        strategy, reason = wanted.strategy, wanted.reason
        if strategy == "auto":
            way = self._way(wanted.new)
            strategy, reason = way.strategy, way.reason
        done = migrate(
            self.engine,
            wanted.new,
            strategy,
            order=wanted.order,
            start=self.batch,
            reason=reason,
        )
        self._waited += done.waited
        if not self.engine.migrating:
            self._ended(done.record)
        return done.record

    def _way(self, plan: Plan) -> Way:
        """How to get to a plan that somebody asks for without saying how."""
        setting = self.setup.adapt or Setting(self.query, PlanPolicy(), Budget(), DEFAULT)
        memory = setting.budget.memory
        room = None if memory is None else max(0.0, memory - self.engine.nbytes)
        return choose_strategy(self.engine, plan, setting.costs, setting.policy, room)

    def _settle(self) -> None:
        """After a batch: note what has ended, and begin what was queued."""
        self._note_ends()
        while self.queued and not self.engine.migrating:
            self.change(self.queued.pop(0))
        if self.engine.migration is not None:
            self.report.migrations.append(self.engine.migration.to_dict())

    def _note_ends(self) -> None:
        """Note the migrations that came to their end in the course of the batch."""
        for record in self.engine.ended():
            self._ended(record)

    def _ended(self, record: Migration) -> None:
        self.migrations.append(record)
        self.report.migrations.append(record.to_dict())


def _length(rows: pa.RecordBatch | None) -> int:
    return 0 if rows is None else rows.num_rows
