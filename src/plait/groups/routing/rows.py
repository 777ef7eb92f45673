"""Rows as bytes, for packets and segments: Arrow IPC streams with narrow integers.

Times and keys within a packet are near each other, so 64-bit integers and timestamps are written as
their distance from the smallest one, in as few bytes as that takes. Everything is moved, sorted,
stored and compressed several times on its way through Spark, so fewer bytes count more than the two
passes over a column that this costs.

Streams may be put one after the other: packets become a segment as they are.

Also: many small batches as few large ones, for what costs the same whatever the size of a batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.tuning import USUAL

_SCHEMA, _LEAST = b"plait.schema", b"plait.least"
_NARROW = ((1 << 8, pa.uint8()), (1 << 16, pa.uint16()), (1 << 32, pa.uint32()))
_WIDTHS = {type_.bit_width // 8: type_ for _, type_ in _NARROW}


def encode_rows(rows: pa.RecordBatch) -> bytes:
    """Rows as an Arrow IPC stream."""
    arrays, least = list(rows.columns), {}
    for i, array in enumerate(arrays):
        narrow = _narrowed(array)
        if narrow is not None:
            arrays[i], least[rows.schema.names[i]] = narrow
    if least:
        metadata = {
            _SCHEMA: rows.schema.serialize().to_pybytes(),
            _LEAST: json.dumps(least).encode(),
        }
        rows = pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)
        rows = rows.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue().to_pybytes())


def decode_rows(body: bytes) -> list[pa.RecordBatch]:
    """The inverse of `encode_rows`, for any number of streams one after the other.

    >>> a = pa.record_batch({"k": [10**15, None, 10**15 + 300]})
    >>> b = pa.record_batch({"k": [2**62, -(2**62)]})
    >>> decode_rows(encode_rows(a) + encode_rows(b)) == [a, b]
    True
    """
    source, found = pa.BufferReader(body), []
    while source.tell() < len(body):
        with pa.ipc.open_stream(source) as reader:
            found.append(_widened(reader.read_next_batch()))
            for _ in reader:
                raise AssertionError("a stream of rows has one batch")
    return found


def encode_columns(rows: pa.RecordBatch) -> tuple[list[list[int] | None], bytes]:
    """Rows without their schema, and for each column that is narrow: its bytes and least value."""
    arrays: list[pa.Array] = []
    about: list[list[int] | None] = []
    for array in rows.columns:
        narrow, least = _narrowed(array) or (array, None)
        arrays.append(narrow)
        about.append(None if least is None else [narrow.type.bit_width // 8, least])
    narrowed = pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)
    return about, bytes(narrowed.serialize().to_pybytes())


def decode_columns(
    about: Sequence[Sequence[int] | None], body: bytes, schema: pa.Schema
) -> pa.RecordBatch:
    """The inverse of `encode_columns`, for who knows the schema.

    >>> rows = pa.record_batch({"k": [10**15, None, 10**15 + 300], "v": ["x", "y", None]})
    >>> decode_columns(*encode_columns(rows), rows.schema) == rows
    True
    """
    types = [field.type if n is None else _WIDTHS[n[0]]
             for field, n in zip(schema, about, strict=True)]  # fmt: skip
    written = pa.schema([(field.name, t) for field, t in zip(schema, types, strict=True)])
    arrays = pa.ipc.read_record_batch(pa.py_buffer(body), written).columns
    wide = [
        array if narrow is None else _wide(array, narrow[1], field.type)
        for array, narrow, field in zip(arrays, about, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(wide, schema=schema)


def gathered(
    batches: Iterable[pa.RecordBatch], enough: int, most_bytes: int = USUAL.gathered_bytes
) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, in batches of `enough` rows or more; the last may have less.

    What has more than `most_bytes` is not put together with anything.

    >>> small = [pa.record_batch({"k": [i]}) for i in range(5)]
    >>> [batch.num_rows for batch in gathered(small, 3)]
    [3, 2]
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting and size + batch.nbytes > most_bytes:
            yield _one(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= enough:
            yield _one(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _narrowed(array: pa.Array) -> tuple[pa.Array, int] | None:
    """A column in fewer bytes, and its smallest value; None where that is of no use."""
    if not (pt.is_int64(array.type) or pt.is_timestamp(array.type)) or not len(array):
        return None
    plain = array.view(pa.int64())
    extremes = pc.min_max(plain)
    least, most = extremes["min"].as_py(), extremes["max"].as_py()
    if least is None:
        return None
    for limit, type_ in _NARROW:
        if most - least < limit:
            return pc.subtract(plain, pa.scalar(least, pa.int64())).cast(type_, safe=False), least
    return None


def _widened(rows: pa.RecordBatch) -> pa.RecordBatch:
    metadata = rows.schema.metadata or {}
    if _LEAST not in metadata:
        return rows
    schema = pa.ipc.read_schema(pa.py_buffer(metadata[_SCHEMA]))
    arrays = list(rows.columns)
    for name, least in json.loads(metadata[_LEAST]).items():
        i = schema.get_field_index(name)
        arrays[i] = _wide(arrays[i], least, schema.field(i).type)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _wide(array: pa.Array, least: int, type_: pa.DataType) -> pa.Array:
    return pc.add(array.cast(pa.int64()), pa.scalar(least, pa.int64())).view(type_)
