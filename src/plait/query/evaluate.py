"""Evaluate expressions: their types, and their values on Arrow columns.

*Correct output.* Spark SQL's value where there is one, null where Spark would fail on the row
(`plait.query.expr` says why). Truth is three-valued: AND, OR and NOT are Kleene's.

*Cost.* Each operator is one pass over its columns in compiled code; rows are visited one by one
only for casts from strings, for decimals that must be rounded, for rows that overflow, and for
functions that Arrow has no kernel for, which are computed once per distinct value where they can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.errors import TypeMismatch
from plait.query.expr import ARITHMETIC, COMPARISONS, Call, Cast, Column, Expr, Literal
from plait.query.keys import name_of_carried, stored
from plait.query.values import text
from plait.query.values.arithmetic import arithmetic, negate
from plait.query.values.compare import compare, member
from plait.query.values.convert import convert
from plait.query.values.forms import Unfit, Value, as_boolean, decoded, spread
from plait.query.values.functions import FUNCTIONS, apply
from plait.query.values.unify import unify


def type_of(expr: Expr, lookup: Callable[[Column], pa.DataType]) -> pa.DataType:
    """Return the type of an expression, or raise the TypeMismatch that names what does not fit.

    >>> type_of(Call("div", (Column("t", "n"), Literal(2, pa.int64()))), lambda c: pa.int32())
    DataType(double)
    """
    if isinstance(expr, Column):
        return lookup(expr)
    return _value(expr, lambda column: _empty(lookup(column))).type


def evaluate(expr: Expr, columns: Callable[[Column], pa.Array], length: int) -> pa.Array:
    """Compute an expression in each of `length` rows.

    >>> double = Call("mul", (Column("t", "n"), Literal(2, pa.int64())))
    >>> evaluate(double, lambda column: pa.array([1, None, 3]), 3).to_pylist()
    [2, None, 6]
    """
    value = columns(expr) if isinstance(expr, Column) else _value(expr, columns)
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    return spread(value, length)


def _empty(type_: pa.DataType) -> pa.Array:
    return pa.nulls(0, type_)


def _value(expr: Expr, columns: Callable[[Column], pa.Array]) -> Value:
    match expr:
        case Column():
            return decoded(columns(expr))
        case Literal(value, type_):
            # A float is its own key only up to the sign of zero.
            return _scalar(value, type_) if isinstance(value, float) else _constant(value, type_)
        case Cast(operand, type_):
            inner = _value(operand, columns)
            if inner.type != (plain_type := stored(inner.type)):
                inner = _empty(plain_type)  # only types are asked for: rows have stored types
            try:
                return convert(inner, type_)
            except Unfit as unfit:
                raise _mismatch(expr, [(operand, inner)], unfit) from None
        case Call(_, args):
            values = [_value(arg, columns) for arg in args]
            _check_computable(expr, values)
            constant = all(isinstance(v, pa.Scalar) for v in values)
            # Operators expect an array among their operands; a constant becomes one row.
            operands = [pa.repeat(values[0], 1), *values[1:]] if constant else values
            try:
                result = _apply(expr, operands)
            except Unfit as unfit:
                raise _mismatch(expr, list(zip(args, values, strict=True)), unfit) from None
            return result[0] if constant and not isinstance(result, pa.Scalar) else result


def _check_computable(call: Call, values: Sequence[Value]) -> None:
    """Refuse to compute with a column that is only carried, except for its fields and IS NULL."""
    if call.op not in ("field", "is_null"):
        for operand, value in zip(call.args, values, strict=True):
            check_computable(operand, value.type)


def check_computable(expr: Expr, type_: pa.DataType) -> None:
    """Refuse an expression whose values Spark compares by rules that Plait does not have."""
    if name := name_of_carried(type_):
        holds = "holds values" if pt.is_nested(type_) else "is"
        raise TypeMismatch(
            f"{expr} {holds} of type {name}, whose rules of comparison Plait does not have",
            remedy="cast it to STRING before the join, or in a condition that is no join key: "
            "then it is compared byte by byte",
        )


def _scalar(value: object, type_: pa.DataType) -> pa.Scalar:
    return decoded(pa.scalar(value, type_))


_constant = lru_cache(maxsize=1024)(_scalar)


def _mismatch(expr: Expr, operands: Sequence[tuple[Expr, Value]], unfit: Unfit) -> TypeMismatch:
    named = [f"{operand} is {stored(value.type)}" for operand, value in operands]
    listed = " and ".join([", ".join(named[:-1]), named[-1]] if named[1:] else named)
    return TypeMismatch(f"{expr} has no meaning: {listed}", remedy=str(unfit))


def _apply(call: Call, v: list[Value]) -> Value:
    op = call.op
    if op in COMPARISONS:
        return compare(op, v[0], v[1])
    if op in ARITHMETIC:
        return arithmetic(op, v[0], v[1])
    if op in FUNCTIONS:
        return apply(op, v)
    match op:
        case "and":
            return _fold(pc.and_kleene, v)
        case "or":
            return _fold(pc.or_kleene, v)
        case "in":
            return member(v[0], v[1:])
        case "like":
            return text.like(*v)
        case "field":
            return _field(v[0], v[1])
        case "case":
            return _case(v)
        case "not":
            return pc.invert(as_boolean(v[0]))
        case "neg":
            return negate(v[0])
        case "is_null":
            return pc.is_null(v[0])
        case "try":
            return v[0]
    raise AssertionError(f"operator {op} has no meaning")


def _fold(combine: Callable[[Value, Value], Value], values: Sequence[Value]) -> Value:
    result, *rest = (as_boolean(v) for v in values)
    for value in rest:
        result = combine(result, value)
    return result


def _case(values: Sequence[Value]) -> Value:
    conditions = [as_boolean(v) for v in values[:-1:2]]
    branches = [*values[1::2], values[-1]]
    common = unify([b.type for b in branches])
    result = convert(branches[-1], common)
    for condition, branch in zip(reversed(conditions), reversed(branches[:-1]), strict=True):
        result = pc.if_else(pc.fill_null(condition, False), convert(branch, common), result)
    return result


def _field(value: Value, name: Value) -> Value:
    """Read a field of a struct, null where the struct is null."""
    field = name.as_py() if isinstance(name, pa.Scalar) else name[0].as_py()
    if not pt.is_struct(value.type) or value.type.get_field_index(field) < 0:
        raise Unfit(f"only a struct with a field {field!r} has one")
    return decoded(pc.struct_field(value, value.type.get_field_index(field)))
