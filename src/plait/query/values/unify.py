"""Find the common type of several types: for the sides of `=` or the branches of a CASE."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from plait.query.keys import plain
from plait.query.values.forms import UNITS, Unfit, is_bytes, is_number, is_text


def unify(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the common type of these types, for branches of a CASE or sides of `=`.

    >>> unify([pa.int32(), pa.float32()]), unify([pa.null(), pa.string()])
    (DataType(double), DataType(string))
    """
    kinds = [plain(t) for t in types if not pt.is_null(t)]
    if not kinds:
        return pa.null()
    if len(set(kinds)) == 1:
        return kinds[0]
    if all(is_number(t) for t in kinds):
        if any(pt.is_floating(t) for t in kinds):
            return pa.float64()
        if all(pt.is_integer(t) and t != pa.uint64() for t in kinds):
            return pa.int64()
        return common_decimal(kinds)
    if all(is_text(t) for t in kinds):
        return pa.large_string() if pa.large_string() in kinds else pa.string()
    if all(is_bytes(t) for t in kinds):
        return pa.large_binary() if pa.large_binary() in kinds else pa.binary()
    if all(pt.is_date(t) for t in kinds):
        return pa.date64()
    if all(pt.is_time(t) for t in kinds):
        return pa.time64("ns")
    if all(pt.is_duration(t) for t in kinds):
        return pa.duration(finest(kinds))
    if all(pt.is_timestamp(t) or pt.is_date(t) for t in kinds):
        zones = {t.tz if pt.is_timestamp(t) else None for t in kinds}
        if None in zones and len(zones) > 1:
            raise Unfit("one has a time zone and the other has none; cast one of them")
        unit = finest([t for t in kinds if pt.is_timestamp(t)])
        return pa.timestamp(unit, zones.pop() if len(zones) == 1 else "UTC")
    raise Unfit("they have no common type; cast one to the type of the other")


def finest(types: Sequence[pa.DataType]) -> str:
    """The finest unit of time among the types."""
    return str(max((t.unit for t in types), key=UNITS.index))


def common_decimal(types: Sequence[pa.DataType]) -> pa.DataType:
    """A decimal type that holds every value of these integer and decimal types."""
    scale = max((t.scale for t in types if pt.is_decimal(t)), default=0)
    whole = max(t.precision - t.scale if pt.is_decimal(t) else integer_digits(t) for t in types)
    if whole + scale > 76:
        raise Unfit("no decimal has enough digits for both; cast one of them")
    return decimal_type(whole + scale, scale)


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """The decimal type of 38 digits, or the wider one if they do not suffice."""
    return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)


def integer_digits(type_: pa.DataType) -> int:
    """The digits that Spark gives the numbers of an integer type as decimals."""
    return {8: 3, 16: 5, 32: 10, 64: 20}[type_.bit_width]
