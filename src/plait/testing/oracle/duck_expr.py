"""Expressions in DuckDB's SQL, where they mean there what they mean here.

DuckDB agrees that NaN equals NaN and is the greatest number, and that -0.0 equals 0.0. Where it
differs, the translation mends it: integers are computed in 64 bits and are null on overflow
(`TRY`), a zero divisor gives null, `concat` is null if a part is, a cast to integers cuts off.
Lengths of time are integers of microseconds. What cannot be mended is `Untranslatable`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.types as pt

from plait.errors import PlaitError
from plait.query.evaluate import type_of
from plait.query.expr import ARITHMETIC, COMPARISONS, LOGIC, Call, Cast, Column, Expr, Literal
from plait.query.keys import plain

Lookup = Callable[[Column], pa.DataType]


class Untranslatable(PlaitError):
    """An expression that DuckDB computes differently."""


def quoted(name: str) -> str:
    """An identifier of SQL.

    >>> quoted('odd"name')
    '"odd""name"'
    """
    return '"' + name.replace('"', '""') + '"'


def duck_type(type_: pa.DataType) -> str:
    """DuckDB's name of a type."""
    type_ = plain(type_)
    names = {
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.uint8(): "UTINYINT",
        pa.uint16(): "USMALLINT",
        pa.uint32(): "UINTEGER",
        pa.uint64(): "UBIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.string(): "VARCHAR",
        pa.large_string(): "VARCHAR",
        pa.binary(): "BLOB",
        pa.large_binary(): "BLOB",
        pa.date32(): "DATE",
        pa.date64(): "DATE",
        pa.duration("us"): "BIGINT",
    }
    if pt.is_decimal(type_) and type_.precision <= 38:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pt.is_timestamp(type_):
        if type_.tz is not None:
            return "TIMESTAMPTZ_NS" if type_.unit == "ns" else "TIMESTAMPTZ"
        return {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}[
            type_.unit
        ]
    if type_ not in names:
        raise Untranslatable(f"DuckDB has no type {type_}")
    return names[type_]


def micros_sql(column: Column, type_: pa.DataType) -> str:
    """Microseconds since 1970 of a timestamp, rounded down.

    >>> micros_sql(Column("t", "ts"), pa.timestamp("us"))
    'epoch_us("t"."ts")'
    """
    name = f"{quoted(column.stream)}.{quoted(column.name)}"
    if plain(type_).unit != "ns":
        return f"epoch_us({name})"
    nanos = f"epoch_ns({name})"
    return f"(({nanos} - (({nanos} % 1000) + 1000) % 1000) // 1000)"


def expr_sql(expr: Expr, lookup: Lookup) -> str:
    """The expression in DuckDB's SQL, or Untranslatable.

    >>> expr_sql(Call("add", (Column("t", "n"), Literal(1, pa.int64()))), lambda _: pa.int32())
    'TRY(CAST("t"."n" AS BIGINT) + CAST(CAST(1 AS BIGINT) AS BIGINT))'
    """
    match expr:
        case Column(stream, name):
            return f"{quoted(stream)}.{quoted(name)}"
        case Literal():
            return _literal(expr)
        case Cast(operand, target):
            return _cast(expr_sql(operand, lookup), type_of(operand, lookup), target)
    return _call(expr, lookup)


def _literal(literal: Literal) -> str:
    value, type_ = literal.value, plain(literal.type)
    if value is None:
        return "NULL" if pt.is_null(type_) else f"CAST(NULL AS {duck_type(type_)})"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"from_hex('{value.hex()}')"
    if isinstance(value, dt.timedelta):
        return f"CAST({value // dt.timedelta(microseconds=1)} AS BIGINT)"
    if pt.is_timestamp(type_):
        micros = pa.scalar(value, type_).cast(pa.timestamp("us", type_.tz)).value
        return f"CAST(make_timestamp(CAST({micros} AS BIGINT)) AS {duck_type(type_)})"
    if pt.is_integer(type_) or pt.is_boolean(type_):
        return f"CAST({value} AS {duck_type(type_)})"
    return f"CAST('{value}' AS {duck_type(type_)})"


def _call(call: Call, lookup: Lookup) -> str:
    args = [expr_sql(arg, lookup) for arg in call.args]
    types = [plain(type_of(arg, lookup)) for arg in call.args]
    result = plain(type_of(call, lookup))
    op = call.op
    if op in LOGIC:
        return "(" + f" {LOGIC[op]} ".join(args) + ")"
    if op == "nseq":
        a, b = _met(args, types)
        return f"({a} IS NOT DISTINCT FROM {b})"
    if op in COMPARISONS:
        a, b = _met(args, types)
        return f"({a} {COMPARISONS[op]} {b})"
    if op in ARITHMETIC:
        return _arithmetic(op, args, types, result)
    if op == "in":
        others = zip(args[1:], types[1:], strict=True)
        pairs = (_met([args[0], a], [types[0], t]) for a, t in others)
        return "(" + " OR ".join(f"{a} = {b}" for a, b in pairs) + ")"
    if op in ("coalesce", "greatest", "least"):
        return f"{op}({', '.join(_as(args, types, result))})"
    if op == "case":
        values = _as([*args[1::2], args[-1]], [*types[1::2], types[-1]], result)
        whens = (f"WHEN {c} THEN {v}" for c, v in zip(args[:-1:2], values, strict=False))
        return f"CASE {' '.join(whens)} ELSE {values[-1]} END"
    if op in ("neg", "abs") and pt.is_integer(types[0]):
        return f"TRY({'-' if op == 'neg' else 'abs'}(CAST({args[0]} AS BIGINT)))"
    if op in ("floor", "ceil") and pt.is_floating(types[0]):
        return f"TRY_CAST({op}({args[0]}) AS BIGINT)"
    if op == "concat" and all(map(pt.is_string, types)):
        return "(" + " || ".join(args) + ")"
    if op == "like":
        return f"({args[0]} LIKE {args[1]} ESCAPE '\\')"
    if op == "unix_micros" and isinstance(column := call.args[0], Column):
        return micros_sql(column, types[0])
    simple = {
        "not": "(NOT {0})",
        "is_null": "({0} IS NULL)",
        "neg": "(-{0})",
        "abs": "abs({0})",
        "length": "length({0})",
        "lower": "lower({0})",
        "upper": "upper({0})",
        "trim": "trim({0}, ' ')",
    }
    if op in simple and not pt.is_decimal(types[0]) and not pt.is_binary(types[0]):
        return simple[op].format(*args)
    raise Untranslatable(f"DuckDB computes {op} differently: {call}")


def _met(args: Sequence[str], types: Sequence[pa.DataType]) -> list[str]:
    """Both sides in one type where DuckDB would choose another one."""
    if any(map(pt.is_floating, types)):
        return [f"CAST({a} AS DOUBLE)" for a in args]
    if any(map(pt.is_decimal, types)):
        scale = max(t.scale for t in types if pt.is_decimal(t))
        return [f"CAST({a} AS DECIMAL(38, {scale}))" for a in args]
    return list(args)


def _as(args: Sequence[str], types: Sequence[pa.DataType], result: pa.DataType) -> list[str]:
    return [a if t == result else _cast(a, t, result) for a, t in zip(args, types, strict=True)]


def _arithmetic(
    op: str, args: Sequence[str], types: Sequence[pa.DataType], result: pa.DataType
) -> str:
    if pt.is_floating(result):
        a, b = (f"CAST({x} AS DOUBLE)" for x in args)
        return f"({a} {ARITHMETIC[op]} {f'NULLIF({b}, 0)' if op in ('div', 'mod') else b})"
    a, b = (f"CAST({x} AS BIGINT)" for x in args)
    if pt.is_integer(result):
        if op == "mod":
            return f"TRY({a} % NULLIF({b}, 0))"
        return f"TRY({a} {ARITHMETIC[op]} {b})"
    if pt.is_decimal(result) and op in ("add", "sub", "mul"):
        return f"CAST({args[0]} {ARITHMETIC[op]} {args[1]} AS {duck_type(result)})"
    micros = pa.timestamp("us")
    if op == "sub" and list(types) == [micros, micros]:
        return f"TRY(epoch_us({args[0]}) - epoch_us({args[1]}))"
    if op in ("add", "sub") and list(types) == [micros, pa.duration("us")]:
        return f"TRY(make_timestamp(epoch_us({args[0]}) {ARITHMETIC[op]} {args[1]}))"
    if op in ("add", "sub") and set(types) == {pa.duration("us")}:
        return f"TRY({args[0]} {ARITHMETIC[op]} {args[1]})"
    raise Untranslatable(f"DuckDB computes {types[0]} {ARITHMETIC[op]} {types[1]} differently")


def _cast(sql: str, source: pa.DataType, target: pa.DataType) -> str:
    source, target = plain(source), plain(target)
    name = duck_type(target)
    if source == target or pt.is_null(source):
        return f"CAST({sql} AS {name})"
    exact = pt.is_integer(source) or pt.is_boolean(source)
    if exact and (pt.is_integer(target) or pt.is_floating(target) or pt.is_string(target)):
        return f"TRY_CAST({sql} AS {name})"
    if pt.is_integer(source) and (pt.is_decimal(target) or pt.is_boolean(target)):
        return f"TRY_CAST({sql} AS {name})"
    if (pt.is_floating(source) or pt.is_decimal(source)) and pt.is_integer(target):
        return f"TRY_CAST(trunc({sql}) AS {name})"
    if pt.is_decimal(source) and (pt.is_floating(target) or pt.is_decimal(target)):
        return f"TRY_CAST({sql} AS {name})"
    if source == pa.float32() and target == pa.float64():
        return f"CAST({sql} AS DOUBLE)"
    if pt.is_large_string(target) or pt.is_large_binary(target):
        return _cast(sql, source, pa.string() if pt.is_large_string(target) else pa.binary())
    raise Untranslatable(f"DuckDB casts {source} to {target} differently")
