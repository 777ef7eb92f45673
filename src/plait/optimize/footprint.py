"""The bytes that a state takes: columns, index nodes, buckets, and the room a ring has to spare.

This mirrors how windows are laid out: an index keeps three words and a rank per row, and at least
as many buckets as rows; a base window also keeps the columns that results read; a combination
keeps an id per stream and its earliest time.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from plait.plan.steps import on_arrival
from plait.query.expr import columns_of
from plait.query.query import Query

_NODE = 25
_BUCKET = 4
_WORD = 8
_ID = 4
_FEWEST_BUCKETS = 64
_FEWEST_ROWS = 64
_SPARE = 1 + 1 / 16
STRING_BYTES = 16
"""What a string is taken to hold, beside its offset and length."""


def value_bytes(type_: pa.DataType) -> int:
    """Bytes that a window keeps for one value.

    >>> value_bytes(pa.int32()), value_bytes(pa.bool_()), value_bytes(pa.string())
    (4, 1, 32)
    """
    if pt.is_boolean(type_):
        return 1
    try:
        return int(type_.bit_width) // 8
    except ValueError:
        return 2 * _WORD + STRING_BYTES


def payload_bytes(query: Query, stream: int) -> int:
    """Bytes of the columns that a base window keeps beside times and keys.

    >>> from plait.testing.examples import trades_quotes_news as query
    >>> payload_bytes(query, 0)
    40
    """
    own = query.streams[stream]
    arrival = set(on_arrival(query, stream))
    readers = [o.expr for o in query.select]
    readers += [expr for r, expr in enumerate(query.residuals) if r not in arrival]
    read = {c.name for expr in readers for c in columns_of(expr) if c.stream == own.name}
    words = {
        name for c in query.graph.classes if c.type == pa.int64() for name in c.columns[stream]
    }
    total = 0
    for f in own.fields:
        key = f.name in words
        time = f.name == own.time and pt.is_timestamp(f.type) and f.type.unit == "us"
        if f.name in read and not time and not (key and f.type == pa.int64()):
            total += value_bytes(f.type)
    return total


def base_bytes(payload: int, keys: int, rows: float, indexes: int, single: int) -> float:
    """Bytes of the window of a stream when it holds `rows`.

    `keys` counts the keys of the stream, of which `single` have an index of their own.
    """
    return _allocated(rows, payload + _WORD * (keys - single) + _NODE * indexes, indexes)


def combined_bytes(streams: int, rows: float, indexes: int) -> float:
    """Bytes of a state that holds `rows` combinations of `streams` streams."""
    return _allocated(rows, _WORD + _ID * streams + _NODE * indexes, indexes)


def _allocated(rows: float, width: int, indexes: int) -> float:
    capacity = max(_FEWEST_ROWS, rows * _SPARE)
    buckets = max(_FEWEST_BUCKETS, 1 << max(0, int(capacity) - 1).bit_length())
    return capacity * width + _BUCKET * buckets * indexes
