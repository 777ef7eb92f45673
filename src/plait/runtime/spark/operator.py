"""The processor inside `transformWithStateInPandas`: Spark's state store is its store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
)

from plait.cluster.packets import Packet
from plait.cluster.processor import Engines, OwnEngines, Processor
from plait.cluster.report import Report
from plait.runtime.arena import Arena, Places

REPORT = "__plait_report"
"""The column that carries a processor's report beside the results; null in result rows."""

_ARENAS: dict[str, Engines] = {}
"""By run of a query, the engines that this Python worker knows."""

_MOST_ARENAS = 8


class SparkStore:
    """The state of one grouping key in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._contract = handle.getValueState("contract", "text STRING")
        self._header = handle.getValueState("header", "text STRING")
        self._segments = handle.getMapState(
            "segments", "segment BIGINT, stream INT", "newest BIGINT, body BINARY"
        )

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
        for (segment, stream), (newest, body) in self._segments.iterator():
            yield int(segment), int(stream), int(newest), bytes(body)

    def write_segment(self, segment: int, stream: int, newest: int, body: bytes) -> None:
        self._segments.updateValue((segment, stream), (newest, body))

    def remove_segment(self, segment: int, stream: int) -> None:
        self._segments.removeKey((segment, stream))


class JoinOperator(StatefulProcessor):
    """The stateful operator; one grouping key is one processor."""

    def __init__(self, processor: Processor, keys: tuple[int, ...], run: str) -> None:
        self._processor = processor
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._run = run

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._store = SparkStore(handle)

    def handleInputRows(  # Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        """Join one batch of packets."""
        del timerValues
        number = self._numbers[int(key[0])]
        packets = _packets(number, rows)
        for found in self._processor.run(number, packets, self._store, _engines(self._run)):
            if isinstance(found, Report):
                yield _report_frame(self._processor.query.schema, found)
            else:
                yield _frame(found)

    def close(self) -> None:
        """Nothing to release: the engines outlive the task on purpose."""


def _engines(run: str) -> Engines:
    """The engines of a run of a query, shared with the other workers of the host."""
    task = TaskContext.get()
    query = task.getLocalProperty("sql.streaming.queryId") if task else None
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
            body = values.pop("body")
            original = bool(values.pop("original"))
            counts = {name: int(value) for name, value in values.items()} | {"processor": number}
            yield Packet(**counts, original=original, body=None if body is None else bytes(body))


def _frame(rows: pa.RecordBatch) -> pd.DataFrame:
    """Results as pandas columns that are Arrow arrays underneath: nothing is converted."""
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    nothing = pd.arrays.ArrowExtensionArray(pa.nulls(rows.num_rows, pa.string()))
    frame[REPORT] = pd.Series(nothing, index=frame.index)
    return frame


def _report_frame(schema: pa.Schema, report: Report) -> pd.DataFrame:
    frame = _frame(pa.RecordBatch.from_arrays([pa.nulls(1, f.type) for f in schema], schema=schema))
    frame[REPORT] = [report.to_json()]
    return frame
