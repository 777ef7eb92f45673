"""Rows on their way between sites, without their schema: it follows from the question.

All sites know the question. So a shipment only says which streams its tuples are made of, and in
which narrow types its integers are written (`plait.groups.routing.rows`). What has another schema
than that, as results with types of their own may have, takes it along.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from plait.engine.intake.codes import plain_array, stored_type
from plait.groups.routing.rows import decode_columns, decode_rows, encode_columns, encode_rows
from plait.query.query import Query
from plait.sites.site.one_way import STAMP, shipped_column
from plait.sites.site.packets import Shipment

RowsAbout: TypeAlias = list[Any] | None
"""The streams in composite tuples and the least integers of columns; None with a schema."""


class ShippedRows:
    """Writes and reads the rows of shipments; `query` is what the sites join, without more.

    >>> from plait.sites.site.packets import LegKey
    >>> from plait.testing.examples import clique
    >>> rows = pa.record_batch({"ts": pa.array([7, 9], pa.timestamp("us")), "k": [1, 2]})
    >>> given = Shipment("stream", LegKey(0, "a", 0), rows)
    >>> shipped = ShippedRows(clique(2))
    >>> about, body = shipped.encode(given)
    >>> shipped.decode("stream", "a", about, body) == rows
    True
    >>> len(body) < len(encode_rows(rows)) / 2
    True
    """

    def __init__(self, query: Query) -> None:
        self._query = query
        self._schemas: dict[tuple[str, tuple[int, ...]], pa.Schema] = {}

    def encode(self, shipment: Shipment) -> tuple[RowsAbout, bytes]:
        """The rows of a shipment, and what must be known to read them."""
        rows, streams = shipment.rows, _streams_in(shipment)
        schema = self._schema(shipment.kind, shipment.leg.head, streams)
        if shipment.kind != "results":
            arrays = [plain_array(column) for column in rows.columns]
            rows = pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)
        if not rows.schema.equals(schema):
            return None, encode_rows(shipment.rows)
        least, body = encode_columns(rows)
        return [list(streams), least], body

    def decode(self, kind: str, head: str, about: RowsAbout, body: bytes) -> pa.RecordBatch:
        """The inverse of `encode`."""
        if about is None:
            (rows,) = decode_rows(body)
            return rows
        streams, least = about
        return decode_columns(least, body, self._schema(kind, head, tuple(streams)))

    def _schema(self, kind: str, head: str, streams: tuple[int, ...]) -> pa.Schema:
        key = (head if kind == "stream" else kind, streams)
        if key not in self._schemas:
            self._schemas[key] = self._made(kind, head, streams)
        return self._schemas[key]

    def _made(self, kind: str, head: str, streams: tuple[int, ...]) -> pa.Schema:
        query = self._query
        if kind == "results":
            return pa.schema([(field.name, field.type) for field in query.schema])
        if kind == "stream":
            fields = query.streams[query.index(head)].fields
            return pa.schema([(field.name, stored_type(field.type)) for field in fields])
        columns = [
            (shipped_column(stream, field.name), stored_type(field.type))
            for stream in streams
            for field in query.streams[stream].fields
        ]
        return pa.schema([*columns, (STAMP, pa.int64())])


def _streams_in(shipment: Shipment) -> tuple[int, ...]:
    """The streams that composite tuples are made of, in the order of their columns."""
    if shipment.kind not in ("tuples", "window"):
        return ()
    names = (name for name in shipment.rows.schema.names if name != STAMP)
    return tuple(dict.fromkeys(int(name.partition(".")[0]) for name in names))


def value_bytes(values: pa.Array) -> int:
    """Bytes of values, whatever their layout is.

    `nbytes` counts a bitmap of nulls also where there are none, which depends on how the rows were
    divided; what sites measure must not.

    >>> bits = pa.array([None, "ab", "c"]).slice(1)
    >>> value_bytes(bits), value_bytes(pa.array(["c", "ab"]))
    (11, 11)
    """
    count, kind = len(values), values.type
    nulls = -(-count // 8) if values.null_count else 0
    if pa.types.is_struct(kind):
        return nulls + sum(map(value_bytes, values.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return nulls + 4 * count + value_bytes(values.flatten())
    try:
        return nulls + -(-count * int(kind.bit_width) // 8)
    except ValueError:  # texts have no width
        texts = values.cast(pa.large_binary())
        return nulls + 4 * count + (pc.sum(pc.binary_length(texts)).as_py() or 0)
