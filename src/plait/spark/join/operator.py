"""The stateful operator of a join: one processor per grouping key, with Spark's state store."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from plait.groups.routing.packets import Packet
from plait.machine.clock import REAL
from plait.machine.stores import problem
from plait.node.batch import Aside, batch_of_packets
from plait.node.durable.store import Engines, OwnEngines
from plait.node.reports.report import Report
from plait.node.task import Processor, StepInputs, Task
from plait.query.query import Query
from plait.spark.arena.engines import Arena, Places
from plait.spark.control.directory import Control
from plait.spark.join.aside import aside_columns, aside_schema, padded
from plait.spark.join.instants import with_micros
from plait.spark.join.worker import batch_number, settle

REPORT = "__plait_report"
"""The column that carries a processor's report beside the results; null in result rows."""

_ARENAS: dict[str, Engines] = {}
"""By run of a query, the engines that this Python worker knows."""

_MOST_ARENAS = 8

_TEXT = StructType().add("text", StringType())
_SEGMENT = StructType().add("segment", LongType()).add("stream", IntegerType())
_ROWS = StructType().add("newest", LongType()).add("body", BinaryType())
"""What the state holds. As text, Spark would parse them once more in every task."""


def output_schema(processor: Processor, *, reports: bool, malformed: bool) -> pa.Schema:
    """The columns that the operator returns: results, and reports and rows set aside if asked for.

    Instants are microseconds, also within structs and arrays: pandas would convert them one by
    one, and those of arrays by the clock of the session's zone.
    """
    report = [pa.field(REPORT, pa.string())] if reports else []
    aside = list(aside_schema(processor.setup.query, malformed)) if processor.aside else []
    return pa.schema(
        [f.with_type(with_micros(f.type)) for f in [*processor.setup.query.schema, *report, *aside]]
    )


class SparkStore:
    """The state of one grouping key in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._contract = handle.getValueState("contract", _TEXT)
        self._header = handle.getValueState("header", _TEXT)
        self._segments = handle.getMapState("segments", _SEGMENT, _ROWS)

    def read_header(self) -> str | None:
        found = self._header.get()
        return None if found is None else str(found[0])

    def write_header(self, text: str) -> None:
        self._header.update((text,))

    def read_contract(self) -> str | None:
        found = self._contract.get()
        return None if found is None else str(found[0])

    def write_contract(self, text: str) -> None:
        self._contract.update((text,))

    def segments(self) -> Iterable[tuple[int, int, int, bytes]]:
        for (segment, lane), (newest, body) in self._segments.iterator():
            yield int(segment), int(lane), int(newest), bytes(body)

    def write_segment(self, segment: int, lane: int, newest: int, body: bytes) -> None:
        self._segments.updateValue((segment, lane), (newest, body))

    def remove_segment(self, segment: int, lane: int) -> None:
        self._segments.removeKey((segment, lane))


@dataclass(frozen=True, slots=True)
class BatchId:
    """One batch of one processor."""

    query: str
    number: int
    """As Spark counts; the same in a replay."""
    processor: int


class Delivery(Protocol):
    """The output of one processor in one batch."""

    def add(self, found: pa.RecordBatch | Aside) -> pd.DataFrame | None:
        """Take results or rows set aside; return what Spark gets for them at once, if anything."""

    def end(self, report: Report) -> list[pd.DataFrame]:
        """End the batch; return what else Spark gets."""

    def abandon(self) -> None:
        """Undo what can be undone, since the batch has failed."""


class Outlet(Protocol):
    """How the output of a processor leaves it."""

    @property
    def schema(self) -> pa.Schema:
        """The rows that the operator hands to Spark."""

    @property
    def to_table(self) -> bool:
        """Whether rows go to files of a table."""

    def open(self, batch: BatchId) -> Delivery:
        """Begin the output of a batch."""


@dataclass(frozen=True, slots=True)
class RowOutlet:
    """Results, rows set aside and reports are rows of one DataFrame."""

    processor: Processor
    reports: bool
    """Whether reports travel beside the results."""
    malformed: bool = False
    """Whether values of a stream may be malformed."""

    @property
    def schema(self) -> pa.Schema:
        """All columns side by side."""
        return output_schema(self.processor, reports=self.reports, malformed=self.malformed)

    @property
    def to_table(self) -> bool:
        """Rows go on to whatever sink the user has chosen."""
        return False

    def open(self, batch: BatchId) -> _RowDelivery:
        """Begin the output of a batch."""
        del batch
        return _RowDelivery(self.processor.setup.query, self.schema, self.reports)


@dataclass(frozen=True, slots=True)
class _RowDelivery:
    query: Query
    schema: pa.Schema
    reports: bool

    def add(self, found: pa.RecordBatch | Aside) -> pd.DataFrame:
        if isinstance(found, Aside):
            return padded(aside_columns(self.query, found), found.rows.num_rows, self.schema)
        columns = dict(zip(found.schema.names, found.columns, strict=True))
        return padded(columns, found.num_rows, self.schema)

    def end(self, report: Report) -> list[pd.DataFrame]:
        return [report_row(report, self.schema)] if self.reports else []

    def abandon(self) -> None:
        """Spark drops the rows of a task that fails."""


def report_row(report: Report, schema: pa.Schema) -> pd.DataFrame:
    """A row that carries a report and nothing else."""
    return padded({REPORT: pa.array([report.to_json()])}, 1, schema)


class JoinOperator(StatefulProcessor):
    """The stateful operator; one grouping key is one processor."""

    store: type[SparkStore] = SparkStore

    def __init__(
        self,
        processor: Processor,
        keys: tuple[int, ...],
        run: str,
        control: Control,
        outlet: Outlet,
    ) -> None:
        self._processor = processor
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._run = run
        self._control = control
        self._outlet = outlet

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        settle()
        self._store = self.store(handle)

    def handleInputRows(  # Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        """Join one batch of packets."""
        del timerValues
        number = self._numbers[int(key[0])]
        batch = batch_of_packets(_packets(number, rows), self._processor.setup.query)
        epoch, notes = self._control.newest_epoch(self._processor.setup.query)
        context, spark_batch = TaskContext.get(), batch_number()
        told = StepInputs(
            token=uuid.uuid4().hex,
            clock=REAL,
            epoch=epoch,
            table=self._control.table_numbered(batch.table or 0),
            earlier_table=self._control.table_numbered,
            transfers=self._control.transfers,
            notes=notes,
            delivery=spark_batch if self._outlet.to_table else None,
        )
        query = context.getLocalProperty("sql.streaming.queryId") if context else None
        if query is not None:
            self._control.check_place(query)
        task = self._processor.task(number, self._store, _engines(self._run, query))
        this = BatchId(query or self._unnamed(), spark_batch or 0, number)
        delivery = self._outlet.open(this)
        try:
            for found in task.run(batch, told):
                if isinstance(found, Report):
                    if self._control.shared and query:
                        self._write(task, query, this.number, found)
                    yield from delivery.end(found)
                elif (frame := delivery.add(found)) is not None:
                    yield frame
        except BaseException:
            delivery.abandon()
            raise

    def _unnamed(self) -> str:
        """A name for a query whose id tasks do not know, as on Spark Connect.

        A table's log tells queries apart by it, so it must stay with the checkpoint and belong to
        no other one. The seed of the routing does: it is drawn when a checkpoint begins.
        """
        return f"checkpoint-{self._processor.routing.seed or 0:016x}"

    def _write(self, task: Task, query: str, batch: int, report: Report) -> None:
        """Write event log and report. Count what cannot be written; the next report says so."""
        control = self._control
        try:
            control.write_events(report, batch)
        except OSError as error:
            task.not_written("event logs", _refused("events", control, error))
        try:
            control.reports(query).write(batch, report)
        except OSError as error:
            task.not_written("reports", _refused("reports", control, error))

    def close(self) -> None:
        """Nothing to release: the engines outlive the task on purpose."""


def _refused(what: str, control: Control, error: OSError) -> str:
    place = error.filename or control.folder
    return f"{what} could not be written: {place}: {problem(error)}; make room or make it writable"


def _engines(run: str, query: str | None) -> Engines:
    """The engines of a run of a query, shared with the other workers of the host."""
    if query is None:
        return OwnEngines()
    name = f"{run}-{query}"
    if name not in _ARENAS:
        while len(_ARENAS) >= _MOST_ARENAS:
            del _ARENAS[next(iter(_ARENAS))]
        _ARENAS[name] = Arena(name, Places.of_host())
    return _ARENAS[name]


def _packets(number: int, frames: Iterator[pd.DataFrame]) -> Iterator[Packet]:
    for frame in frames:
        for row in frame.itertuples(index=False):
            values = row._asdict()
            body, reason, groups = (values.pop(name) for name in ("body", "reason", "groups"))
            original = bool(values.pop("original"))
            counts = {name: int(value) for name, value in values.items()} | {"processor": number}
            yield Packet(
                **counts,
                original=original,
                reason=reason or "",
                groups=None if groups is None else bytes(groups),
                body=None if body is None else bytes(body),
            )
