"""Decide which types can be equal, and in which common type they are compared.

Equality must be transitive within a key class, or the answer would depend on the join order. So
types are compared within one family only, in a common type that holds every value of each member
exactly: integers of any width, integers with decimals, floats with floats, strings, binaries,
timestamps of any unit. An integer never meets a float: 2^53 and 2^53 + 1 are equal to the same
double but not to each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

_UNITS = ("s", "ms", "us", "ns")
MAX_DECIMAL_DIGITS = 38
_UNREADABLE = "plait.unreadable"
_CARRIED = "plait.carried"


def plain(type_: pa.DataType) -> pa.DataType:
    """The type of the values, without dictionary or run-end encoding."""
    if pt.is_dictionary(type_) or pt.is_run_end_encoded(type_):
        return plain(type_.value_type)
    return type_


def unreadable(name: str) -> pa.DataType:
    """Make the type of a column that no query can read; `name` is its type in Spark.

    >>> is_unreadable(unreadable("map<string,int>")), is_unreadable(pa.string())
    (True, False)
    """
    return pa.opaque(pa.null(), name, _UNREADABLE)


def is_unreadable(type_: pa.DataType) -> bool:
    """Whether no query can read a column of this type."""
    return isinstance(type_, pa.OpaqueType) and type_.vendor_name == _UNREADABLE


def carried(type_: pa.DataType, name: str) -> pa.DataType:
    """Make the type of a column that results may have, but that no key and no condition can read.

    Spark compares its values by other rules than Plait; `name` is what Spark calls it, and `type_`
    how the values are stored.

    >>> name_of_carried(pa.list_(carried(pa.string(), "string collate UNICODE_CI")))
    'string collate UNICODE_CI'
    """
    return pa.opaque(type_, name, _CARRIED)


def name_of_carried(type_: pa.DataType) -> str | None:
    """Return Spark's name of the first type that is only carried, at any depth, or None."""
    if isinstance(type_, pa.OpaqueType) and type_.vendor_name == _CARRIED:
        return str(type_.type_name)
    if pt.is_nested(type_):
        names = (name_of_carried(type_.field(i).type) for i in range(type_.num_fields))
        return next(filter(None, names), None)
    return None


def stored(type_: pa.DataType) -> pa.DataType:
    """Return the type in which values are stored, also those that are only carried.

    >>> stored(pa.list_(carried(pa.string(), "char(5)")))
    ListType(list<item: string>)
    """
    if name_of_carried(type_) is None:
        return type_
    if pt.is_struct(type_):
        return pa.struct([f.with_type(stored(f.type)) for f in type_])
    if pt.is_list(type_):
        return pa.list_(type_.value_field.with_type(stored(type_.value_type)))
    return type_.storage_type


def common_type(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the type in which values of all `types` can be compared exactly, or None.

    >>> common_type([pa.int32(), pa.int64()]), common_type([pa.int64(), pa.string()])
    (DataType(int64), None)
    >>> common_type([pa.int32(), pa.decimal128(10, 2)])
    Decimal128Type(decimal128(12, 2))
    """
    types = [plain(t) for t in types]
    if all(pt.is_integer(t) and t != pa.uint64() for t in types):
        return pa.int64()
    if all(pt.is_integer(t) or pt.is_decimal(t) for t in types):
        return _common_decimal(types)
    if all(pt.is_timestamp(t) for t in types):
        if len({t.tz is None for t in types}) > 1:
            return None
        finest = max((t.unit for t in types), key=_UNITS.index)
        return pa.timestamp(finest, tz=None if types[0].tz is None else "UTC")
    if all(pt.is_duration(t) for t in types):
        return pa.duration(max((t.unit for t in types), key=_UNITS.index))
    families = (
        (pt.is_boolean, pa.bool_()),
        (pt.is_floating, pa.float64()),
        (pt.is_date, pa.date64() if any(pt.is_date64(t) for t in types) else pa.date32()),
        (pt.is_time, pa.time64("ns")),
        (_is_string, pa.large_string()),
        (_is_binary, pa.large_binary()),
    )
    for belongs, common in families:
        if all(belongs(t) for t in types):
            return common
    return None


def _common_decimal(types: Sequence[pa.DataType]) -> pa.DataType | None:
    scale = max((t.scale for t in types if pt.is_decimal(t)), default=0)
    whole = max(t.precision - t.scale if pt.is_decimal(t) else _digits(t) for t in types)
    if scale < 0 or whole + scale > MAX_DECIMAL_DIGITS:
        return None
    return pa.decimal128(whole + scale, scale)


def _digits(integer: pa.DataType) -> int:
    return {8: 3, 16: 5, 32: 10, 64: 20 if integer == pa.uint64() else 19}[integer.bit_width]


def _is_string(t: pa.DataType) -> bool:
    return bool(pt.is_string(t) or pt.is_large_string(t) or pt.is_string_view(t))


def _is_binary(t: pa.DataType) -> bool:
    return bool(
        pt.is_binary(t)
        or pt.is_large_binary(t)
        or pt.is_binary_view(t)
        or pt.is_fixed_size_binary(t)
    )
