"""From Arrow rows to what the engine joins: sorted times, key codes and payload columns.

Rows that can never be in a result are set aside here, each kind counted: rows without an event
time, rows older than their stream's watermark (late), rows with a null key, rows that fail a
condition on their own stream. What is left is sorted by time; rows within a batch have no order of
their own, so nothing may depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.engine.codes import CodeBook, plain_array, stored_type
from plait.errors import SourceError
from plait.kernels.jit import Bytes, Ints
from plait.plan.steps import on_arrival
from plait.query.evaluate import evaluate
from plait.query.expr import Column, columns_of
from plait.query.query import Query

BEFORE_ALL_TIMES = -(2**62)
"""The watermark of a stream that has not been seen; far enough from the end of int64 to add to."""

MOST_DISTANT_TIME = 2**60
"""Event times further than this from 1970, some 36,000 years, are set aside."""

_PER_MICRO = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(slots=True, eq=False, weakref_slot=True)
class Arrivals:
    """New tuples of one stream, sorted by time: times, a code per key class, payload columns."""

    times: Ints
    codes: dict[int, Ints]
    payload: dict[str, pa.Array]
    whole: Arrivals | None = None
    """What these are a part of: its codes are in use as long as any part of it is to come."""

    def __len__(self) -> int:
        return len(self.times)

    def part(self, start: int, stop: int) -> Arrivals:
        """Some of them."""
        codes = {k: c[start:stop] for k, c in self.codes.items()}
        payload = {n: p.slice(start, stop - start) for n, p in self.payload.items()}
        return Arrivals(
            self.times[start:stop], codes, payload, self if self.whole is None else self.whole
        )


@dataclass(slots=True)
class Admitted:
    """What became of a batch of rows."""

    arrivals: Arrivals
    rows: int
    newest: int
    late: pa.RecordBatch | None
    null_times: pa.RecordBatch | None
    null_keys: int
    filtered: int


def with_times(rows: pa.RecordBatch, column: str) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """The rows whose event time can be counted with, and the others if there are any.

    A time is set aside when it is null or some thousands of years away: it would move the
    watermark beyond all other rows, and sums of it with a bound would overflow.
    """
    times = rows.column(column)
    nanoseconds = times.type.unit == "ns"
    limit = 2**63 - 1 if nanoseconds else MOST_DISTANT_TIME // _PER_MICRO[times.type.unit]
    raw = times.cast(pa.int64())
    extremes = pc.min_max(raw)
    inside = extremes["min"].as_py() is None or (
        extremes["min"].as_py() >= -limit and extremes["max"].as_py() <= limit
    )
    if inside and not times.null_count:
        return rows, None
    usable = pc.and_(pc.greater_equal(raw, -limit), pc.less_equal(raw, limit)).fill_null(False)
    return rows.filter(usable), rows.filter(pc.invert(usable))


def event_times(array: pa.Array) -> Ints:
    """Event times in microseconds, nanoseconds rounded down; undefined where null."""
    raw = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array)]
    if array.type.unit == "ns":
        return np.floor_divide(raw, 1_000)
    return raw * _PER_MICRO[array.type.unit] if array.type.unit != "us" else raw


class Ingest:
    """Admits the rows of one stream. `books` are shared by the streams of a key class."""

    def __init__(self, query: Query, stream: int, books: Sequence[CodeBook]) -> None:
        self._stream = query.streams[stream]
        self._books = books
        graph = query.graph
        self._keys = {k: graph.classes[k].columns[stream] for k in graph.classes_of(stream)}
        self._filters = [query.residuals[r] for r in on_arrival(query, stream)]
        self.payload = payload_columns(query, stream)

    def admit(self, rows: pa.RecordBatch, watermark: int) -> Admitted:
        """Sort out one batch of rows."""
        rows = self._conform(rows)
        total = rows.num_rows
        late = None
        rows, null_times = with_times(rows, self._stream.time)
        times = event_times(rows.column(self._stream.time))
        newest = int(times.max()) if len(times) else BEFORE_ALL_TIMES
        if len(times) and watermark > BEFORE_ALL_TIMES and times.min() < watermark:
            on_time = times >= watermark
            late = rows.filter(pa.array(~on_time))
            rows, times = rows.filter(pa.array(on_time)), times[on_time]
        before = rows.num_rows
        rows, times = self._filter(rows, times)
        filtered = before - rows.num_rows
        codes, usable = self._encode(rows)
        null_keys = 0
        if usable is not None:
            null_keys = int(len(usable) - usable.sum())
            chosen = usable.view(np.bool_)
            rows, times = rows.filter(pa.array(chosen)), times[chosen]
            codes = {k: c[chosen] for k, c in codes.items()}
        arrivals = self._sorted(times, codes, rows)
        return Admitted(arrivals, total, newest, late, null_times, null_keys, filtered)

    def _filter(self, rows: pa.RecordBatch, times: Ints) -> tuple[pa.RecordBatch, Ints]:
        """The rows that satisfy the conditions on this stream alone."""
        if not self._filters:
            return rows, times
        verdicts = [evaluate(f, lambda c: rows.column(c.name), len(times)) for f in self._filters]
        keep = np.ones(len(times), np.bool_)
        for verdict in verdicts:
            keep &= np.asarray(pc.fill_null(verdict.cast(pa.bool_()), False))
        return (rows, times) if keep.all() else (rows.filter(pa.array(keep)), times[keep])

    def _conform(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The columns the query needs, in the types of its stream."""
        arrays, names = [], []
        for field in self._stream.fields:
            position = rows.schema.get_field_index(field.name)
            if position < 0:
                raise SourceError(
                    f"the rows of stream {self._stream.name!r} lack the column {field.name!r}",
                    remedy=f"they have: {', '.join(rows.schema.names)}",
                )
            array = plain_array(rows.column(position))
            if array.type != stored_type(field.type):
                raise SourceError(
                    f"{self._stream.name}.{field.name} is {array.type} in these rows, "
                    f"but {field.type} in the query",
                    remedy="cast the column or define the query on the new schema",
                )
            arrays.append(array)
            names.append(field.name)
        return pa.RecordBatch.from_arrays(arrays, names=names)

    @property
    def schema(self) -> pa.Schema:
        """The columns of rows that are set aside: those of the stream, plainly encoded."""
        return pa.schema([(f.name, stored_type(f.type)) for f in self._stream.fields])

    def _encode(self, rows: pa.RecordBatch) -> tuple[dict[int, Ints], Bytes | None]:
        """Codes per class; and, if some rows cannot join, one byte per row that is 0 for those."""
        codes: dict[int, Ints] = {}
        usable: Bytes | None = None
        for key_class, columns in self._keys.items():
            for name in columns:
                code, valid = self._books[key_class].encode(rows.column(name))
                if key_class in codes:
                    agree = (codes[key_class] == code).view(np.uint8)
                    usable = agree if usable is None else usable & agree
                codes.setdefault(key_class, code)
                if valid is not None:
                    usable = valid if usable is None else usable & valid
        return codes, None if usable is None or usable.all() else usable

    def _sorted(self, times: Ints, codes: dict[int, Ints], rows: pa.RecordBatch) -> Arrivals:
        payload = {name: rows.column(name) for name in self.payload}
        if len(times) > 1 and np.any(times[1:] < times[:-1]):
            order = np.argsort(times, kind="stable")
            indices = pa.array(order)
            times = times[order]
            codes = {k: c[order] for k, c in codes.items()}
            payload = {name: column.take(indices) for name, column in payload.items()}
        return Arrivals(times, codes, payload)


def payload_columns(query: Query, stream: int) -> tuple[str, ...]:
    """The columns of a stream that results or conditions over several streams read."""
    name = query.streams[stream].name
    arrival = set(on_arrival(query, stream))
    readers = [o.expr for o in query.select]
    readers += [expr for r, expr in enumerate(query.residuals) if r not in arrival]
    read = {c.name for expr in readers for c in columns_of(expr) if c.stream == name}
    return tuple(f.name for f in query.streams[stream].fields if f.name in read)


def derived_from_time(query: Query, column: Column) -> bool:
    """Whether a column is the event time itself, which every window has anyway."""
    stream = query.streams[query.index(column.stream)]
    type_ = stream.type_of(column.name)
    return column.name == stream.time and pt.is_timestamp(type_) and type_.unit == "us"


def derived_from_key(query: Query, column: Column) -> int | None:
    """The key class whose code is the value of this column, if the codes are integers."""
    stream = query.index(column.stream)
    if query.type_of(column) != pa.int64():
        return None
    for k, key_class in enumerate(query.graph.classes):
        if column.name in key_class.columns[stream] and key_class.type == pa.int64():
            return k
    return None
