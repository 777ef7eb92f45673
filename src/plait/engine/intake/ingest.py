"""Turn Arrow rows into what the engine joins: sorted times, key codes and payload columns.

Rows that can never be in a result are set aside, each kind counted: `plait.engine.intake.admission`
says which they are and in which order that is decided. What is left is sorted by time; rows within
a batch have no order of their own, so nothing may depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from plait.engine.intake.admission import Admission, are_late
from plait.engine.intake.codes import CodeBook, plain_array, stored_type
from plait.engine.intake.times import event_times
from plait.errors import SourceError
from plait.kernels.jit import Ints
from plait.plan.steps import on_arrival
from plait.query.expr import Column, columns_of
from plait.query.query import Query, Stream


@dataclass(slots=True, eq=False, weakref_slot=True)
class Arrivals:
    """New tuples of one stream, sorted by time: times, a code per key class, payload columns."""

    times: Ints
    codes: dict[int, Ints]
    payload: dict[str, pa.Array]
    whole: Arrivals | None = None
    """The arrivals that these are a part of, whose codes stay in use until all parts are stored."""
    flags: Ints | None = None
    """For each tuple, the move by which it is flagged, 0 for none; None without flags."""

    def __len__(self) -> int:
        return len(self.times)

    def part(self, start: int, stop: int) -> Arrivals:
        """Some of them."""
        codes = {k: c[start:stop] for k, c in self.codes.items()}
        payload = {n: p.slice(start, stop - start) for n, p in self.payload.items()}
        return Arrivals(
            self.times[start:stop],
            codes,
            payload,
            self if self.whole is None else self.whole,
            None if self.flags is None else self.flags[start:stop],
        )


@dataclass(slots=True)
class Admitted:
    """The outcome of admitting a batch of rows."""

    arrivals: Arrivals
    rows: int
    newest: int
    no_time: pa.RecordBatch | None
    ahead: pa.RecordBatch | None
    no_key: pa.RecordBatch | None
    filtered: int
    late: pa.RecordBatch | None
    is_late: npt.NDArray[np.bool_] | None
    """For each row that could be in a result, whether it is late; None without late rows."""


class Ingest:
    """Admits the rows of one stream. `books` are shared by the streams of a key class."""

    def __init__(self, query: Query, stream: int, books: Sequence[CodeBook]) -> None:
        self._stream = query.streams[stream]
        self._books = books
        self._admission = Admission(query, stream)
        graph = query.graph
        self._keys = {k: graph.classes[k].columns[stream][0] for k in graph.classes_of(stream)}
        self.payload = payload_columns(query, stream)

    def admit(
        self,
        rows: pa.RecordBatch,
        watermark: int,
        flags: Ints | None = None,
        clock: int | None = None,
    ) -> Admitted:
        """Admit one batch of rows; if rows are flagged, all of them can be in a result."""
        rows = conformed(self._stream, rows)
        total, late = rows.num_rows, None
        found = self._admission.sort_out(rows, clock)
        rows = found.rows
        assert flags is None or len(flags) == rows.num_rows, "flagged rows were sorted out before"
        times = event_times(rows.column(self._stream.time))
        is_late = are_late(times, watermark)
        if is_late is not None:
            late = rows.filter(pa.array(is_late))
            rows = rows.filter(pa.array(~is_late))
            flags = None if flags is None else flags[~is_late]
        arrivals = self._sorted(self.encoded(rows), flags)
        return Admitted(
            arrivals,
            total,
            found.newest,
            found.no_time,
            found.ahead,
            found.no_key,
            found.filtered,
            late,
            is_late,
        )

    def encoded(self, rows: pa.RecordBatch) -> Arrivals:
        """Encode rows that can all be in a result, in their order."""
        codes = {k: self._books[k].encode(rows.column(name))[0] for k, name in self._keys.items()}
        payload = {name: rows.column(name) for name in self.payload}
        return Arrivals(event_times(rows.column(self._stream.time)), codes, payload)

    @property
    def schema(self) -> pa.Schema:
        """The columns of rows that are set aside: those of the stream, decoded."""
        return pa.schema([(f.name, stored_type(f.type)) for f in self._stream.fields])

    def _sorted(self, arrivals: Arrivals, flags: Ints | None) -> Arrivals:
        times, codes, payload = arrivals.times, arrivals.codes, arrivals.payload
        if len(times) > 1 and np.any(times[1:] < times[:-1]):
            order = np.argsort(times, kind="stable")
            indices = pa.array(order)
            times = times[order]
            codes = {k: c[order] for k, c in codes.items()}
            payload = {name: column.take(indices) for name, column in payload.items()}
            flags = None if flags is None else flags[order]
        return Arrivals(times, codes, payload, flags=flags)


def conformed(stream: Stream, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Select and decode the columns of a stream; refuse missing columns and other types.

    >>> from plait.testing.examples import clique
    >>> conformed(clique(2).streams[0], pa.record_batch({"k": [1]}))
    Traceback (most recent call last):
    plait.errors.SourceError: the rows of stream 'a' lack the column 'ts'; they have: k
    """
    arrays, names = [], []
    for field in stream.fields:
        position = rows.schema.get_field_index(field.name)
        if position < 0:
            raise SourceError(
                f"the rows of stream {stream.name!r} lack the column {field.name!r}",
                remedy=f"they have: {', '.join(rows.schema.names)}",
            )
        array = plain_array(rows.column(position))
        if array.type != stored_type(field.type):
            raise SourceError(
                f"{stream.name}.{field.name} is {array.type} in these rows, "
                f"but {field.type} in the query",
                remedy="cast the column or define the query on the new schema",
            )
        arrays.append(array)
        names.append(field.name)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def payload_columns(query: Query, stream: int) -> tuple[str, ...]:
    """List the columns of a stream that results or conditions over several streams read."""
    name = query.streams[stream].name
    arrival = set(on_arrival(query, stream))
    readers = [o.expr for o in query.select]
    readers += [expr for r, expr in enumerate(query.residuals) if r not in arrival]
    read = {c.name for expr in readers for c in columns_of(expr) if c.stream == name}
    return tuple(f.name for f in query.streams[stream].fields if f.name in read)


def derived_from_time(query: Query, column: Column) -> bool:
    """Whether a column is the event time itself, which every window has."""
    stream = query.streams[query.index(column.stream)]
    type_ = stream.type_of(column.name)
    return column.name == stream.time and pt.is_timestamp(type_) and type_.unit == "us"


def derived_from_key(query: Query, column: Column) -> int | None:
    """Find the key class whose integer code is the value of this column, if there is one."""
    stream = query.index(column.stream)
    if query.type_of(column) != pa.int64():
        return None
    for k, key_class in enumerate(query.graph.classes):
        if column.name in key_class.columns[stream] and key_class.type == pa.int64():
            return k
    return None
