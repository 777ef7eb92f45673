"""Constants of SQL: numbers, typed strings, lengths of time, and the names of types."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from plait.errors import WindowError
from plait.query.durations import LONGEST, micros, unit_micros
from plait.query.evaluate import type_of
from plait.query.expr import Cast, Column, Expr, Literal
from plait.query.sql.source import SqlText
from plait.query.values.convert import convert, has_zone
from plait.query.values.forms import Unfit, is_bytes, is_number, is_text
from plait.query.values.java import text_of

_D = exp.DataType.Type
_TYPES = {
    _D.BOOLEAN: pa.bool_(),
    _D.TINYINT: pa.int8(),
    _D.SMALLINT: pa.int16(),
    _D.INT: pa.int32(),
    _D.BIGINT: pa.int64(),
    _D.FLOAT: pa.float32(),
    _D.DOUBLE: pa.float64(),
    _D.TEXT: pa.string(),
    _D.BINARY: pa.binary(),
    _D.VARBINARY: pa.binary(),
    _D.DATE: pa.date32(),
    _D.TIMESTAMP: pa.timestamp("us"),
    _D.TIMESTAMPTZ: pa.timestamp("us"),
    _D.TIMESTAMPNTZ: pa.timestamp("us"),
    _D.TIMESTAMPLTZ: pa.timestamp("us", "UTC"),
}
"""TIMESTAMP has no zone where there is no session: on Spark it has that of the session."""

_SPARKS_TIMESTAMPS = (_D.TIMESTAMP, _D.TIMESTAMPTZ, _D.TIMESTAMPLTZ)

BYTES = "bytes that are no UTF-8 would be lost; use hex(), base64(), or a cast before the join"

_INSTANT = pa.timestamp("us", "UTC")
_SPAN = ("DAY", "HOUR", "MINUTE", "SECOND")
_LONG_UNITS = {"MONTH": "days", "YEAR": "days", "QUARTER": "days"}


def number(source: SqlText, node: exp.Literal) -> Literal:
    """Read a number as Spark does: an integer, a decimal with its digits, or with `e` a double."""
    text = node.name.replace("_", "")
    if "e" in text.lower():
        return Literal(float(text), pa.float64())
    value = Decimal(text)
    if "." not in text and -(2**63) <= value < 2**63:
        return Literal(int(value), pa.int64())
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = -exponent
    precision = max(len(digits), scale)
    if precision > 38:
        source.refuse(f"a number of {precision} digits", node, remedy="38 are the most; add an e0")
    return Literal(value, pa.decimal128(precision, scale))


def sql_type(source: SqlText, node: exp.DataType, within: exp.Expr) -> pa.DataType:
    """Return the Arrow type of a type named in SQL."""
    if node.this == _D.DECIMAL:
        given = [int(p.name) for p in node.expressions]
        precision, scale = (*given, 0)[:2] if given else (10, 0)
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            source.refuse(f"DECIMAL({precision}, {scale})", within, remedy="1 to 38 digits")
        return pa.decimal128(precision, scale)
    if node.expressions or node.args.get("collate"):
        remedy = "compute it with Spark before the join, in a column"
        source.refuse(f"the type {node.sql('spark')}", within, remedy=remedy)
    if node.this == _D.TEXT and source.dialect.lengths and _names_char(source):
        remedy = "write STRING, or turn spark.sql.preserveCharVarcharTypeInfo off"
        source.refuse("a cast to CHAR or VARCHAR with a length that counts", within, remedy=remedy)
    if node.this in _SPARKS_TIMESTAMPS and source.dialect.zone is not None:
        always = node.this == _D.TIMESTAMPLTZ
        zone = source.dialect.zone if always else source.dialect.timestamp_zone
        return pa.timestamp("us", zone)
    if node.this not in _TYPES:
        names = "BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL, STRING, BINARY, DATE, TIMESTAMP"
        source.refuse(f"the type {node.sql('spark')}", within, remedy=f"there are {names}, ...")
    return _TYPES[node.this]


def _names_char(source: SqlText) -> bool:
    """Whether the text has one of these types; sqlglot takes them for STRING."""
    return any(t.text.upper() in ("CHAR", "CHARACTER", "VARCHAR") for t in source.tokens)


def cast(
    source: SqlText, node: exp.Cast, operand: Expr, lookup: Callable[[Column], pa.DataType]
) -> Expr:
    """Translate a cast; compute that of a constant at once.

    `DATE '...'` and `TIMESTAMP '...'` are constants too, and must have a value. A timestamp whose
    text names a zone is an instant (UTC).
    """
    target = sql_type(source, node.to, node)
    zone = source.dialect.zone
    given = type_of(operand, lookup)
    if zone is not None and is_bytes(given) and is_text(target):
        source.refuse("a cast of BINARY to STRING", node, remedy=BYTES)
    if zone is not None and _clock_and_number(given, target):
        source.refuse(
            "a cast between TIMESTAMP_NTZ and a number",
            node,
            remedy="go through TIMESTAMP, as on Spark",
        )
    operand = in_zone(operand, given, target, zone)
    if zone is not None and isinstance(operand, Literal) and given == target == pa.int64():
        # On Spark 1 is an INT and 1L a BIGINT.
        return Cast(operand, target)
    if not isinstance(operand, Literal):
        return Cast(operand, target)
    typed = not isinstance(node, exp.TryCast) and pa.types.is_temporal(target)
    if typed and zone is None and isinstance(operand.value, str) and has_zone(operand.value):
        target = pa.timestamp("us", "UTC") if pa.types.is_timestamp(target) else target
    try:
        value = convert(_constant(operand, target, source.dialect.shortest), target)
    except Unfit:
        return Cast(operand, target)
    if typed and not value.is_valid and operand.value is not None:
        source.refuse(
            f"{node.to.sql('spark')} {operand}",
            node,
            verdict="has no value",
            remedy="write for example DATE '2024-12-31' or TIMESTAMP '2024-12-31 23:59:59'",
        )
    if pa.types.is_timestamp(target) and target.tz is not None:
        value, target = convert(value, _INSTANT), _INSTANT
    return Literal(value.as_py(), target)


def _constant(operand: Literal, target: pa.DataType, shortest: bool) -> pa.Scalar:
    """Cast a constant, through the digits of an older Java for a text or a decimal."""
    value = pa.scalar(operand.value, operand.type)
    written = is_text(target) or pa.types.is_decimal(target)
    if shortest or not written or not pa.types.is_floating(operand.type):
        return value
    return text_of(value if is_text(target) else convert(value, pa.float64()))


def _clock_and_number(*types: pa.DataType) -> bool:
    clock = any(pa.types.is_timestamp(t) and t.tz is None for t in types)
    return clock and any(map(is_number, types))


def in_zone(operand: Expr, type_: pa.DataType, target: pa.DataType, zone: str | None) -> Expr:
    """Convert an instant to the session's zone before it becomes a date, a time or a text.

    The zone is part of the expression, so a checkpoint knows by which one its rows were chosen.

    >>> from plait.query.expr import Column
    >>> print(in_zone(Column("a", "ts"), _INSTANT, pa.date32(), "Europe/Berlin"))
    CAST(a.ts AS timestamp[us, tz=Europe/Berlin])
    """
    if zone is None or not pa.types.is_timestamp(type_) or type_.tz in (None, zone):
        return operand
    if pa.types.is_timestamp(target) and target.tz is not None:
        return operand
    return Cast(operand, pa.timestamp("us", zone))


def interval(source: SqlText, node: exp.Interval) -> Literal:
    """Read a duration: `INTERVAL 10 SECONDS`, `INTERVAL '1 minute 30 seconds'`, ..."""
    amount, unit = node.this, node.args.get("unit")
    if not isinstance(amount, exp.Literal):
        source.refuse("an INTERVAL that is not a constant", node, remedy="write a number in it")
    with source.placing(node):
        if isinstance(unit, exp.IntervalSpan):
            total = _span(source, node, amount.name, unit)
        else:
            text = f"{amount.name} {unit.name}" if unit is not None else amount.name
            for word in re.findall(r"[a-zA-Z]+", text):
                if word.upper().removesuffix("S") in _LONG_UNITS:
                    source.refuse(
                        f"an INTERVAL of {word.upper()}",
                        node,
                        remedy="it has no fixed length; write it in days",
                    )
                if unit_micros(word) is None:
                    source.refuse(f"the unit {word.upper()} of INTERVAL", node)
            total = micros(text, what="INTERVAL")
    return length(total)


def length(total: int) -> Literal:
    """Make a constant of a duration.

    >>> str(length(1_500_000).value)
    '0:00:01.500000'
    """
    return Literal(dt.timedelta(microseconds=total), pa.duration("us"))


def _span(source: SqlText, node: exp.Interval, text: str, unit: exp.IntervalSpan) -> int:
    """`INTERVAL '1 10:30:00' DAY TO SECOND`."""
    first, last = unit.this.name.upper(), unit.expression.name.upper()
    if first not in _SPAN or last not in _SPAN or _SPAN.index(first) >= _SPAN.index(last):
        source.refuse(f"INTERVAL {first} TO {last}", node, remedy="write it in days and seconds")
    units = _SPAN[_SPAN.index(first) : _SPAN.index(last) + 1]
    match = re.fullmatch(r"\s*([+-]?)\s*([\d .:]+?)\s*", text)
    parts = re.split(r"[ :]", match[2]) if match else []
    if match is None or len(parts) != len(units) or not all(parts):
        raise WindowError(
            f"{text!r} is not a length of time from {first} to {last}",
            remedy="write for example INTERVAL '1 10:30:00' DAY TO SECOND",
        )
    total = sum(micros(f"{p} {u}", what="INTERVAL") for p, u in zip(parts, units, strict=True))
    if total > LONGEST:
        raise WindowError(f"INTERVAL {text!r} is longer than a century")
    return -total if match[1] == "-" else total


_LEAST = {_D.TINYINT: 2**7, _D.SMALLINT: 2**15, _D.INT: 2**31, _D.BIGINT: 2**63}


def least_of_type(node: exp.Expr) -> Literal | None:
    """Read the least number of a type, if the node is what `-128Y` has after its sign.

    It is read as a cast of 128, which the type does not have.
    """
    if not (isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)):
        return None
    type_ = node.to.this
    if node.this.is_string or node.this.name != str(_LEAST.get(type_)):
        return None
    return Literal(-_LEAST[type_], _TYPES[type_])


def negated(literal: Literal) -> Literal | None:
    """Negate a constant, if it is a number or a duration."""
    match literal.value:
        case bool():
            return None
        case int() as whole:
            # The one integer that has a sign of its own: -(2**63) fits, 2**63 does not.
            return Literal(-whole, pa.int64())
        case Decimal() as exact if exact == 2**63 and exact.as_tuple().exponent == 0:
            return Literal(-(2**63), pa.int64())
        case float() | Decimal() | dt.timedelta() as other:
            return Literal(-other, literal.type)
    return None
