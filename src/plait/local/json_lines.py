"""Write rows as JSON lines, a column at a time.

Timestamps, dates and times are strings in ISO 8601; decimals are strings, since readers of JSON
would round them; binaries are strings in base 64. NaN and the infinities, which JSON does not
have, are the strings "NaN", "Infinity" and "-Infinity", as Spark writes them.
"""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt


def json_lines(rows: pa.RecordBatch) -> bytes:
    """Write one JSON object per row, each on a line.

    >>> json_lines(pa.RecordBatch.from_pydict({"k": [1, None], "s": ['a"b', "ü"]})).decode()
    '{"k": 1, "s": "a\\\\"b"}\\n{"k": null, "s": "ü"}\\n'
    """
    if not rows.num_rows:
        return b""
    pieces = []
    for i, (name, column) in enumerate(zip(rows.schema.names, rows.columns, strict=True)):
        opening = "{" if i == 0 else ", "
        pieces.append(_large(f"{opening}{json.dumps(name, ensure_ascii=False)}: "))
        pieces.append(pc.fill_null(_texts(column), "null").cast(pa.large_string()))
    lines = pc.binary_join_element_wise(*pieces, _large("}\n"), _large(""))
    # Values lie one after the other in the array's last buffer: that is the text already.
    end = pc.sum(pc.binary_length(lines)).as_py()
    return bytes(lines.buffers()[2].slice(0, end))


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _texts(column: pa.Array) -> pa.Array:
    """The JSON of each value, null where it is null."""
    type_ = column.type
    if pt.is_dictionary(type_):
        return _texts(column.dictionary_decode())
    if pt.is_boolean(type_) or pt.is_integer(type_):
        return column.cast(pa.string())
    if pt.is_floating(type_):
        return _floats(column)
    if pt.is_timestamp(type_):
        return _quoted(pc.replace_substring(column.cast(pa.string()), " ", "T"))
    if pt.is_date(type_) or pt.is_time(type_) or pt.is_decimal(type_):
        return _quoted(column.cast(pa.string()))
    # Strings and the rest: each distinct string is escaped once.
    if pt.is_string(type_) or pt.is_large_string(type_):
        coded = column.dictionary_encode()
        escaped = [json.dumps(value, ensure_ascii=False) for value in coded.dictionary.to_pylist()]
        return pa.array(escaped, pa.string()).take(coded.indices)
    texts = [None if value is None else _dumps(value) for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def _floats(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    finite = pc.is_finite(column)
    if pc.all(finite).as_py() in (True, None):
        return texts
    words = pc.if_else(pc.is_nan(column), '"NaN"', '"Infinity"')
    words = pc.if_else(pc.less(column, 0), '"-Infinity"', words)
    return pc.if_else(finite, texts, words)


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat() if isoformat else value)
