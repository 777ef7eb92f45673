"""Payload columns of a window: Arrow values in, kept in rings, gathered back as Arrow arrays.

Only the columns that the query selects or its conditions read are kept. Three kinds: values of a
fixed width (the usual case, one gather), byte strings (offsets in the ring, bytes in a heap that
slides along with it), and everything else (nested types) as the Arrow arrays they came in.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.kernels.gather import copy_bytes, lengths_to_offsets, take, take_bytes
from plait.kernels.jit import Array, Bytes, Ints, Positions
from plait.kernels.memory import Saved
from plait.kernels.ring import Ring, ids_of


class TooManyBytes(Exception):
    """Gathered strings do not fit into one Arrow array: gather fewer rows at a time."""


class PayloadColumn(Protocol):
    """A column of a window, stored beside its times and codes."""

    def write(self, values: pa.Array, runs: tuple[slice, slice]) -> None:
        """Store the values of the rows just appended, at the positions of `runs`."""

    def drop(self) -> None:
        """Drop the values of rows that left the front of the ring."""

    def gather(self, positions: Positions) -> pa.Array:
        """Gather the values at some positions."""

    @property
    def nbytes(self) -> int:
        """Bytes kept outside of the ring."""

    def to_state(self) -> Saved:
        """What is kept outside of the ring."""

    def set_state(self, saved: Saved) -> None:
        """Keep what another column kept."""


def payload_column(ring: Ring, name: str, type_: pa.DataType) -> PayloadColumn:
    """Make an empty column of a type in `ring`."""
    if pt.is_boolean(type_) or (pt.is_primitive(type_) and not pt.is_null(type_)):
        return FixedColumn(ring, name, type_)
    if pt.is_decimal128(type_):
        return FixedColumn(ring, name, type_)
    if pt.is_string(type_) or pt.is_large_string(type_):
        return BytesColumn(ring, name, type_)
    if pt.is_binary(type_) or pt.is_large_binary(type_):
        return BytesColumn(ring, name, type_)
    return ArrowColumn(ring, name, type_)


def fixed_values(array: pa.Array) -> Array:
    """Convert a fixed-width array to numpy, undefined where null; decimals as two words."""
    if pt.is_boolean(array.type):
        return np.asarray(array.fill_null(False).cast(pa.uint8()).to_numpy(), np.uint8)
    words = array.type.bit_width // 8
    if words == 16:
        raw = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    else:
        raw = np.frombuffer(array.buffers()[1], np.dtype(f"i{words}"))
    return raw[array.offset : array.offset + len(array)]


def validity(array: pa.Array) -> Bytes | None:
    """Return one byte per value, 0 where null; None without nulls."""
    if array.null_count == 0:
        return None
    return np.asarray(array.is_valid().cast(pa.uint8()).to_numpy(), np.uint8)


def validity_buffer(valid: Bytes) -> pa.Buffer:
    """Make an Arrow validity bitmap."""
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def fixed_array(type_: pa.DataType, values: Array, valid: Bytes | None = None) -> pa.Array:
    """Make an Arrow array over numpy values; the inverse of `fixed_values`."""
    bitmap = None if valid is None else validity_buffer(valid)
    if pt.is_boolean(type_):
        data = pa.py_buffer(np.packbits(values, bitorder="little"))
    else:
        data = pa.py_buffer(values)
    return pa.Array.from_buffers(type_, len(values), [bitmap, data])


class _Nullable:
    """Validity bytes in the ring, from the first null on."""

    def __init__(self, ring: Ring, name: str) -> None:
        self._ring = ring
        self._valid = f"valid:{name}"

    def write_validity(self, values: pa.Array, runs: tuple[slice, slice]) -> None:
        columns = self._ring.columns
        valid = validity(values)
        if valid is None and self._valid not in columns:
            return
        if self._valid not in columns:
            self._ring.add_column(self._valid, np.uint8, value=1)
        first = runs[0].stop - runs[0].start
        columns[self._valid][runs[0]] = 1 if valid is None else valid[:first]
        columns[self._valid][runs[1]] = 1 if valid is None else valid[first:]

    def gather_validity(self, positions: Positions) -> Bytes | None:
        column = self._ring.columns.get(self._valid)
        return None if column is None else take(column, positions)


class FixedColumn(_Nullable):
    """Values of 1, 2, 4, 8 or 16 bytes."""

    def __init__(self, ring: Ring, name: str, type_: pa.DataType) -> None:
        super().__init__(ring, name)
        self._name = f"value:{name}"
        self._type = type_
        width = 1 if pt.is_boolean(type_) else type_.bit_width // 8
        if width == 16:
            ring.add_column(self._name, np.int64, words=2)
        else:
            ring.add_column(self._name, np.uint8 if pt.is_boolean(type_) else np.dtype(f"i{width}"))

    def write(self, values: pa.Array, runs: tuple[slice, slice]) -> None:
        column, raw = self._ring.columns[self._name], fixed_values(values)
        first = runs[0].stop - runs[0].start
        column[runs[0]] = raw[:first]
        column[runs[1]] = raw[first:]
        self.write_validity(values, runs)

    def drop(self) -> None:
        pass

    def gather(self, positions: Positions) -> pa.Array:
        column = self._ring.columns[self._name]
        values = take(column, positions) if column.ndim == 1 else column[positions]
        return fixed_array(self._type, values, self.gather_validity(positions))

    @property
    def nbytes(self) -> int:
        return 0

    def to_state(self) -> Saved:
        return {}

    def set_state(self, saved: Saved) -> None:
        pass


class BytesColumn(_Nullable):
    """Strings and binaries: where each begins and how long it is, and a heap of their bytes.

    Offsets count all bytes ever written; the heap keeps those from `_base` on. Rows come and go in
    order, so the live bytes are one run, moved to the front when the heap is full.
    """

    def __init__(self, ring: Ring, name: str, type_: pa.DataType) -> None:
        super().__init__(ring, name)
        self._starts = f"start:{name}"
        self._lengths = f"length:{name}"
        self._type = type_
        ring.add_column(self._starts, np.int64)
        ring.add_column(self._lengths, np.int64)
        self._heap: Bytes = ring.memory.empty((ring.tuning.heap_bytes,), np.uint8)
        self._base = 0
        self._end = 0

    def write(self, values: pa.Array, runs: tuple[slice, slice]) -> None:
        data, starts, lengths = byte_strings(values)
        total = int(lengths.sum())
        first = runs[0].stop - runs[0].start
        self._make_room(total, live_rows=len(self._ring) - len(values))
        where = copy_bytes(data, starts, lengths, self._heap, self._end - self._base)
        where += self._base
        self._end += total
        for name, column in ((self._starts, where), (self._lengths, lengths)):
            target = self._ring.columns[name]
            target[runs[0]] = column[:first]
            target[runs[1]] = column[first:]
        self.write_validity(values, runs)

    def _make_room(self, more: int, live_rows: int) -> None:
        if self._end - self._base + more <= len(self._heap):
            return
        oldest = self._ring.columns[self._starts][self._ring.header[1]] if live_rows else self._end
        live = self._heap[oldest - self._base : self._end - self._base]
        need = len(live) + more
        fits = 3 * need <= 2 * len(self._heap)
        memory = self._ring.memory
        heap = self._heap if fits else memory.empty((need + need // 2,), np.uint8)
        heap[: len(live)] = live
        if not fits:
            memory.free(self._heap)
        self._heap, self._base = heap, int(oldest)

    def drop(self) -> None:
        pass

    def gather(self, positions: Positions) -> pa.Array:
        columns = self._ring.columns
        offsets = lengths_to_offsets(columns[self._lengths], positions)
        large = pt.is_large_string(self._type) or pt.is_large_binary(self._type)
        if not large and offsets[-1] > self._ring.tuning.string_bytes:
            raise TooManyBytes
        data = take_bytes(self._heap, columns[self._starts], self._base, positions, offsets)
        valid = self.gather_validity(positions)
        return pa.Array.from_buffers(
            self._type,
            len(positions),
            [
                None if valid is None else validity_buffer(valid),
                pa.py_buffer(offsets if large else offsets.astype(np.int32)),
                pa.py_buffer(data),
            ],
        )

    @property
    def nbytes(self) -> int:
        return self._heap.nbytes

    def to_state(self) -> Saved:
        return {"heap": self._heap, "base": self._base, "end": self._end}

    def set_state(self, saved: Saved) -> None:
        heap: Bytes = saved["heap"]
        base, end = int(saved["base"]), int(saved["end"])
        if heap.dtype != np.uint8 or heap.ndim != 1 or not 0 <= end - base <= len(heap):
            raise ValueError(f"a heap of {len(heap)} bytes cannot hold {base} to {end}")
        self._ring.memory.free(self._heap)
        self._heap, self._base, self._end = heap, base, end


def byte_strings(array: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """Return the bytes of a string or binary array, and the start and length of each value."""
    large = pt.is_large_string(array.type) or pt.is_large_binary(array.type)
    _, offsets_buffer, data_buffer = array.buffers()
    if len(array) == 0 or data_buffer is None:
        nothing = np.zeros(len(array), np.int64)
        return np.zeros(1, np.uint8), nothing, nothing
    raw: Array = np.frombuffer(offsets_buffer, np.int64 if large else np.int32)
    offsets: Ints = raw[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer.size else np.zeros(1, np.uint8)
    return data, offsets[:-1], np.diff(offsets)


class ArrowColumn:
    """Any other type, kept as the Arrow arrays that arrived; Arrow gathers them."""

    def __init__(self, ring: Ring, name: str, type_: pa.DataType) -> None:
        del name
        self._ring = ring
        self._type = type_
        self._chunks: list[pa.Array] = []

    def write(self, values: pa.Array, runs: tuple[slice, slice]) -> None:
        del runs
        self._chunks.append(values)

    def drop(self) -> None:
        while self._chunks and self._kept - len(self._chunks[0]) >= len(self._ring):
            self._chunks.pop(0)

    @property
    def _kept(self) -> int:
        return sum(map(len, self._chunks))

    def gather(self, positions: Positions) -> pa.Array:
        header = self._ring.header
        distances = (ids_of(header, positions).astype(np.int64) - header[0]) & 0xFFFF_FFFF
        rows = pa.array(distances + (self._kept - len(self._ring)))
        taken = pc.take(pa.chunked_array(self._chunks, self._type), rows)
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks)

    def to_state(self) -> Saved:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("", self._type)])) as writer:
            for chunk in self._chunks:
                writer.write_batch(pa.record_batch([chunk], [""]))
        return {"chunks": np.frombuffer(sink.getvalue(), np.uint8)}

    def set_state(self, saved: Saved) -> None:
        with pa.ipc.open_stream(pa.py_buffer(saved["chunks"])) as reader:
            if reader.schema.types != [self._type]:
                raise ValueError(f"{reader.schema.types} are no {self._type}")
            self._chunks = [batch.column(0) for batch in reader]
