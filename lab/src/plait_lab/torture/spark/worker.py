"""The half of a campaign on Spark that is in its Python workers: what dies, and where.

Nothing in the product knows of this. The operator, its store, its control directory and its arena
are subclassed, and a few functions are wrapped in the process of the worker; an audit hook tells
when a file is about to be renamed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

from plait.engine.migrate import moving_state
from plait.groups.routing.table import Table
from plait.node import task
from plait.node.batch import Batch
from plait.node.durable.store import Live
from plait.node.epochs import Epoch
from plait.node.node import Node
from plait.node.reports.report import Report
from plait.node.task import Processor
from plait.spark.arena.engines import Arena
from plait.spark.control.directory import Control
from plait.spark.control.report_files import QueryReports
from plait.spark.control.routing_tables import RoutingTables, TransferFiles
from plait.spark.io import write_delta as delta
from plait.spark.io.delta_parts import PartWriter, TablePart
from plait.spark.io.delta_table import DeltaCommits
from plait.spark.join import operator
from plait.spark.join.operator import JoinOperator, SparkStore
from plait_lab.laws.strategies.policies import Lies
from plait_lab.torture.spark.killpoints import Orders, Target

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True, slots=True)
class Mortal:
    """What a worker is told about the round it works in."""

    folder: str
    group: int
    """The process group of the driver."""
    lies: int | None
    """The seed of false statistics for the adaptive loop, if it is to be lied to."""

    def obey(self, point: str, batch: int | None = None) -> None:
        """Die here, if there is an order to."""
        Orders(Path(self.folder)).obey(point, _batch() if batch is None else batch, self._victim)

    def note(self, error: BaseException) -> None:
        """Keep what went wrong in a task: Spark tries again and says nothing."""
        text = "".join(traceback.format_exception(error))
        with Path(self.folder, "errors").open("a") as log:
            log.write(f"batch {_batch()}: {text}\n---\n")

    def _victim(self, target: Target) -> int:
        if target == "driver":
            return -self.group
        return os.getpid() if target == "worker" else parent(os.getppid())


_here: Mortal | None = None
"""The round that this worker works in."""

_publishing = threading.local()
"""What this thread is about to publish: the point at which its next rename happens."""


def obey(point: str, batch: int | None = None) -> None:
    if _here is not None:
        _here.obey(point, batch)


def _batch() -> int:
    task = TaskContext.get()
    return int(task.getLocalProperty("streaming.sql.batchId") or 0) if task else 0


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@contextlib.contextmanager
def publishes(point: str) -> Iterator[None]:
    """The next file that is renamed or linked in here is the one that the point is about."""
    _publishing.point = point
    try:
        yield
    finally:
        _publishing.point = None


def _audit(event: str, _: object) -> None:
    """Called by Python before everything that touches the system."""
    if event in ("os.rename", "os.link"):
        point = getattr(_publishing, "point", None)
        if point is not None:
            _publishing.point = None
            obey(point)


class MortalStore(SparkStore):
    """Dies around what it writes."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle)
        self._written = 0

    def write_segment(self, segment: int, lane: int, newest: int, body: bytes) -> None:
        """Before the first one, or between two."""
        obey("between-segments" if self._written else "segment-unwritten")
        super().write_segment(segment, lane, newest, body)
        self._written += 1

    def remove_segment(self, segment: int, lane: int) -> None:
        """Before one goes."""
        obey("expired-unremoved")
        super().remove_segment(segment, lane)

    def write_header(self, text: str) -> None:
        """Before and after."""
        obey("header-unwritten")
        super().write_header(text)
        obey("header-written")


class MortalTransfers(TransferFiles):
    """Dies around partition groups that come and go."""

    def write(self, move: int, sender: int, batch: int, raw: bytes) -> None:
        """Before and after others may read them."""
        with publishes("export-unpublished"):
            TransferFiles.write(self, move, sender, batch, raw)
        obey("export-published")

    def read(self, move: int, sender: int, batch: int) -> bytes:
        """Before it is read."""
        obey("import-begun")
        return TransferFiles.read(self, move, sender, batch)


class MortalReports(QueryReports):
    """Dies around what it writes."""

    def write(self, batch: int, report: Report) -> None:
        """Before and after the report is there."""
        with publishes("report-unpublished"):
            QueryReports.write(self, batch, report)
        obey("report-published")


class MortalControl(Control):
    """Dies around what it reports."""

    @property
    def transfers(self) -> TransferFiles:
        """Groups on their way."""
        return MortalTransfers(super().transfers.store)

    def reports(self, query: str) -> QueryReports:
        """The reports of a query."""
        return MortalReports(self.folder, query, self.kept, self.temporary)


class MortalArena(Arena):
    """Dies around handing over an engine; shares its folder with the other rounds of its driver.

    Every array is a file here, as it is of engines that are worth it.
    """

    def __post_init__(self) -> None:
        assert _here is not None, "the worker is armed"
        home = Path(_here.folder).parent / "arena"
        home.mkdir(mode=0o700, exist_ok=True)
        self.places = dataclasses.replace(
            self.places, memory=home / "memory", disk=home / "disk", smallest=1
        )
        Arena.__post_init__(self)

    def put(self, number: int, live: Live) -> None:
        """Before and after others may have it."""
        with publishes("manifest-unpublished"):
            Arena.put(self, number, live)
        obey("manifest-published")


class MortalNode(Node):
    """Dies around changes of plan that the driver has decided."""

    def step(self, batch: Batch, epoch: Epoch | None = None) -> Iterator[Any]:
        """Before the new plan, after it, and while two plans run."""
        if self.engine.migration is not None:
            obey("track-running")
        if epoch is not None and self.followed.is_new(epoch) and self.engine.migration is None:
            obey("epoch-unadopted")
        before, ended = self.followed, len(self.migrations)
        first = True
        for found in super().step(batch, epoch):
            if first and self.followed != before:
                obey("epoch-adopted")
            first = False
            yield found
        if self.followed != before:
            obey("epoch-adopted")
        if any(m.strategy == "parallel-track" and m.end for m in self.migrations[ended:]):
            obey("track-ended")


class MortalPart(PartWriter):
    """Dies around a file of a Delta table."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Before the first rows, and after any."""
        obey("part-unwritten")
        super().write(rows)
        obey("part-begun")

    def close(self) -> TablePart | None:
        """After the file is whole."""
        found = super().close()
        obey("part-written")
        return found


class MortalCommits(DeltaCommits):
    """Dies around an entry of a table's log; the driver does."""

    def _append(
        self, table: DeltaTable, query: str, batch: int, parts: Sequence[TablePart]
    ) -> None:
        obey("files-unlogged", batch)
        DeltaCommits._append(self, table, query, batch, parts)
        obey("files-logged", batch)


class MortalOperator(JoinOperator):
    """Dies at each point of a batch, and has its parts do so."""

    store = MortalStore

    def __init__(self, processor: Processor, *given: Any, mortal: Mortal) -> None:
        adapt = processor.setup.adapt
        if adapt is not None and mortal.lies is not None:
            adapt = dataclasses.replace(adapt, believe=Lies(mortal.lies))
        setup = dataclasses.replace(processor.setup, adapt=adapt, milestone=obey)
        super().__init__(dataclasses.replace(processor, setup=setup), *given)
        self._mortal = mortal

    def init(self, handle: Any) -> None:
        """Declare the state; arm the worker."""
        super().init(handle)
        arm(self._mortal)
        values = [getattr(self._control, f.name) for f in dataclasses.fields(Control)]
        self._control = MortalControl(*values)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        """Join one batch of packets, if nothing happens."""
        obey("task-begun")
        first = True
        try:
            for found in super().handleInputRows(key, _read(rows), timerValues):
                yield found
                if first:
                    obey("results-begun")
                first = False
        except Exception as error:
            self._mortal.note(error)
            raise
        obey("results-ended")


def _read(rows: Iterable[Any]) -> Iterator[Any]:
    yield from rows
    obey("packets-read")


def arm(mortal: Mortal) -> None:
    """Have this worker die on the orders of a round."""
    global _here  # noqa: PLW0603 -- a worker serves one task at a time
    if _here is None:
        _wrap_functions()
        sys.addaudithook(_audit)
        operator.__dict__["Arena"] = MortalArena
        task.__dict__["Node"] = MortalNode
        delta.__dict__["PartWriter"] = MortalPart
    _here = mortal


def _wrap_functions() -> None:
    """Put points into the middle of moving state, and around each routing table."""
    add = RoutingTables.add

    def mortal_add(self: RoutingTables, table: Table) -> None:
        with publishes("table-unpublished"):
            add(self, table)
        obey("table-published")

    type.__setattr__(RoutingTables, "add", mortal_add)
    recompute = moving_state.recompute

    def mortal_recompute(*given: Any) -> Any:
        obey("state-moving")
        return recompute(*given)

    moving_state.__dict__["recompute"] = mortal_recompute


def mortal_sink(mortal: Mortal) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A stage between operator and sink that changes nothing, if nothing happens."""

    def through(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = True
        for batch in batches:
            yield batch
            if first:
                mortal.obey("sink-begun")
            first = False
        mortal.obey("sink-ended")

    return through
