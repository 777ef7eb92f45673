"""Comparisons, as Spark orders values.

NaN equals NaN and is greater than every other number; -0.0 equals 0.0. An integer meets a double
as a double, a decimal exactly; timestamps of different units are compared exactly, a date is its
midnight. A comparison with null is null, except for `nseq`, which treats null as a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.convert import convert, midnight, to_double
from plait.query.values.forms import PER_SECOND, Unfit, Value, is_bytes, is_number, is_text
from plait.query.values.unify import unify

_ORDERED = (
    is_number,
    is_text,
    is_bytes,
    pt.is_boolean,
    pt.is_timestamp,
    pt.is_date,
    pt.is_time,
    pt.is_duration,
    pt.is_null,
)


def compare(op: str, left: Value, right: Value) -> Value:
    """`left op right` for an operator of `expr.COMPARISONS`.

    >>> nan = float("nan")
    >>> compare("gt", pa.array([nan, nan, 1.0]), pa.array([1.0, nan, None])).to_pylist()
    [True, False, None]
    """
    for side in (left, right):
        if not any(belongs(side.type) for belongs in _ORDERED):
            raise Unfit(f"values of type {side.type} have no order; compare a part of them")
    a, b = _meet(left, right)
    if op == "nseq":
        return _null_safe(a, b)
    if pt.is_floating(a.type) and (_has_nan(a) or _has_nan(b)):
        return _with_nan(op, a, b)
    return _PLAIN[op](a, b)


_PLAIN = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}


def _meet(left: Value, right: Value) -> tuple[Value, Value]:
    if left.type == right.type and not pt.is_null(left.type) and not pt.is_float16(left.type):
        return left, right
    common = unify([left.type, right.type])
    if pt.is_null(common):
        common = pa.bool_()
    elif pt.is_floating(common):
        return _double(left), _double(right)
    if pt.is_timestamp(common) or pt.is_duration(common):
        return _meet_in_time(left, right, common)
    return convert(left, common), convert(right, common)


def _double(value: Value) -> Value:
    return pc.cast(value, pa.float64()) if pt.is_null(value.type) else to_double(value)


def _meet_in_time(left: Value, right: Value, common: pa.DataType) -> tuple[Value, Value]:
    """Both in the finer unit; as decimals if that unit does not reach as far."""
    both = [
        midnight(v) if pt.is_date(v.type) else convert(v, common) if pt.is_null(v.type) else v
        for v in (left, right)
    ]
    try:
        return pc.cast(both[0], common), pc.cast(both[1], common)
    except pa.ArrowInvalid:
        a, b = (_nanos(v) for v in both)
        return a, b


def _nanos(value: Value) -> Value:
    number = pc.cast(pc.cast(value, pa.int64()), pa.decimal128(19, 0))
    factor = Decimal(PER_SECOND["ns"] // PER_SECOND[value.type.unit])
    return pc.multiply(number, pa.scalar(factor, pa.decimal128(10, 0)))


def _has_nan(value: Value) -> bool:
    if isinstance(value, pa.Scalar):
        return bool(value.is_valid and math.isnan(value.as_py()))
    return bool(pc.any(pc.is_nan(value)).as_py())


def _with_nan(op: str, a: Value, b: Value) -> Value:
    if op == "eq":
        return pc.or_kleene(pc.equal(a, b), pc.and_kleene(pc.is_nan(a), pc.is_nan(b)))
    if op == "lt":
        above = pc.and_kleene(pc.is_nan(b), pc.invert(pc.is_nan(a)))
        return pc.or_kleene(pc.less(a, b), above)
    if op == "gt":
        return _with_nan("lt", b, a)
    opposite = {"ne": "eq", "ge": "lt", "le": "gt"}[op]
    return pc.invert(_with_nan(opposite, a, b))


def _null_safe(a: Value, b: Value) -> Value:
    same = pc.fill_null(compare("eq", a, b), False)
    return pc.or_(same, pc.and_(pc.is_null(a), pc.is_null(b)))


def member(value: Value, candidates: Sequence[Value]) -> Value:
    """`value IN (candidates)`: null if it is null, or is not found where a candidate is null.

    >>> member(pa.array([1, 2, None]), [pa.scalar(1), pa.scalar(None, pa.int64())]).to_pylist()
    [True, None, None]
    """
    common = unify([value.type, *(c.type for c in candidates)])
    constant = all(isinstance(c, pa.Scalar) for c in candidates)
    if constant and (common == pa.int64() or is_text(common)):
        value = convert(value, common)
        present = [convert(c, common).as_py() for c in candidates if c.is_valid]
        found = pc.is_in(value, value_set=pa.array(present, common))
        unknown = pc.is_null(value)
        if len(present) < len(candidates):
            unknown = pc.or_(unknown, pc.invert(found))
        return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)
    result = compare("eq", value, candidates[0])
    for candidate in candidates[1:]:
        result = pc.or_kleene(result, compare("eq", value, candidate))
    return result


def extreme(op: str, values: Sequence[Value]) -> Value:
    """The `greatest` or `least` of the values of a row that are not null.

    >>> extreme("greatest", [pa.array([1, None]), pa.array([5, 6])]).to_pylist()
    [5, 6]
    """
    common = unify([v.type for v in values])
    best, *rest = (convert(v, common) for v in values)
    for value in rest:
        better = compare("gt" if op == "greatest" else "lt", value, best)
        best = pc.if_else(pc.fill_null(better, pc.is_null(best)), value, best)
    return best
