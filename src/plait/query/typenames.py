"""Write Arrow types as plain data: by name where that is complete, else in Arrow's encoding.

>>> type_to_data(pa.timestamp("us", "Europe/Berlin"))
'timestamp[us, tz=Europe/Berlin]'
>>> sorted(type_to_data(pa.list_(pa.int64())))
['encoded', 'name']

Names of nested types do not say all (what their fields are called may look like anything), so
these are kept as Arrow writes a schema, with the name beside it for readers.
"""

from __future__ import annotations

import base64
import binascii
import re

import pyarrow as pa

from plait.errors import QueryError, did_you_mean
from plait.query.reading import Reader

_READ = Reader(QueryError)
_UNITS = ("s", "ms", "us", "ns")
_NAMED = {
    str(type_): type_
    for type_ in (
        *(pa.null(), pa.bool_(), pa.date32(), pa.date64(), pa.month_day_nano_interval()),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64()),
        *(pa.string(), pa.large_string(), pa.string_view()),
        *(pa.binary(), pa.large_binary(), pa.binary_view()),
        *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.timestamp(unit) for unit in _UNITS),
        *(pa.duration(unit) for unit in _UNITS),
    )
}
_DECIMALS = {
    "decimal32": pa.decimal32,
    "decimal64": pa.decimal64,
    "decimal128": pa.decimal128,
    "decimal256": pa.decimal256,
}


def type_to_data(type_: pa.DataType) -> object:
    """Write a type in the types of JSON."""
    name = str(type_)
    if _by_name(name) == type_:
        return name
    encoded = pa.schema([("", type_)]).serialize().to_pybytes()
    return {"name": name, "encoded": base64.b64encode(encoded).decode("ascii")}


def type_from_data(data: object, path: str) -> pa.DataType:
    """Read what `type_to_data` wrote.

    >>> type_from_data("decimal128(10, 2)", "$")
    Decimal128Type(decimal128(10, 2))
    >>> type_from_data("int46", "$.type")
    Traceback (most recent call last):
    plait.errors.QueryError: $.type is no type: 'int46'; did you mean 'int64'? ...
    """
    if isinstance(data, str):
        if (named := _by_name(data)) is None:
            known = [*_NAMED, *(f"{d}(precision, scale)" for d in _DECIMALS)]
            known += ["timestamp[us, tz=zone]", "fixed_size_binary[bytes]"]
            raise QueryError(f"{path} is no type: {data!r}", remedy=did_you_mean(data, known))
        return named
    fields = _READ.fields(data, path, ("name", "encoded"))
    text = _READ.text(fields["encoded"], f"{path}.encoded")
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    except (binascii.Error, ValueError, OSError, pa.ArrowException):
        raise QueryError(f"{path}.encoded is no schema of Arrow") from None
    if len(schema) != 1 or str(schema.field(0).type) != fields["name"]:
        raise QueryError(
            f"{path}.encoded is not the type that {path}.name says",
            remedy="both are written by Plait; edit neither",
        )
    return schema.field(0).type


def _by_name(name: str) -> pa.DataType | None:
    if name in _NAMED:
        return _NAMED[name]
    try:
        if match := re.fullmatch(r"(decimal\d+)\((\d+), (-?\d+)\)", name):
            make = _DECIMALS.get(match[1])
            return None if make is None else make(int(match[2]), int(match[3]))
        if match := re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=(.+)\]", name):
            return pa.timestamp(match[1], match[2])
        if match := re.fullmatch(r"fixed_size_binary\[(\d+)\]", name):
            return pa.binary(int(match[1]))
    except (ValueError, OverflowError):
        pass
    return None
