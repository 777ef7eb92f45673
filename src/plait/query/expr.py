"""Expressions over a result row, for residual conditions and SELECT lists.

An expression is total: where SQL would fail on a row (division by zero, an integer that
overflows, a cast that has no value) it is null. A condition is evaluated as early as its inputs
are there, on combinations that may never become results; if it could fail, the answer would
depend on the plan.

The text of an expression is for people, but it is also what a checkpoint remembers of a condition.
So different expressions have different texts: names are quoted where they are no plain words, and
a constant whose type does not show is written as a cast.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from plait.query.durations import show_micros
from plait.query.names import quoted
from plait.query.values.functions import FUNCTIONS

COMPARISONS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "nseq": "<=>"}
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
LOGIC = {"and": "AND", "or": "OR"}
OTHERS = frozenset({"not", "neg", "is_null", "in", "like", "case", "field", "try"})
OPERATORS = frozenset({*COMPARISONS, *ARITHMETIC, *LOGIC, *FUNCTIONS, *OTHERS})


@dataclass(frozen=True, slots=True)
class Column:
    """The attribute `name` of stream `stream`.

    >>> str(Column("trades", "price"))
    'trades.price'
    """

    stream: str
    name: str

    def __str__(self) -> str:
        return f"{quoted(self.stream)}.{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a type; `Literal(None, pa.null())` is NULL.

    A length of time is a `datetime.timedelta` of type `duration('us')`.
    """

    value: object
    type: pa.DataType

    def __str__(self) -> str:
        text, shown = _constant(self.value)
        return text if shown == self.type else f"CAST({text} AS {self.type})"


def _constant(value: object) -> tuple[str, pa.DataType]:
    """Write a constant as SQL does, with the type that it has when it is read."""
    match value:
        case None:
            return "NULL", pa.null()
        case str():
            return "'" + value.replace("'", "''") + "'", pa.string()
        case bool():
            return str(value).upper(), pa.bool_()
        case bytes():
            return f"X'{value.hex().upper()}'", pa.binary()
        case int():
            return str(value), pa.int64()
        case float():
            # A number without an exponent is a decimal.
            text = str(value)
            return (text if {"e", "n"} & set(text) else f"{text}e0"), pa.float64()
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = -exponent if isinstance(exponent, int) else 0
            precision = min(max(len(digits), scale, 1), 38)
            return f"{value:f}", pa.decimal128(precision, max(scale, 0))
        case dt.timedelta():
            micros = show_micros(value // dt.timedelta(microseconds=1))
            return f"INTERVAL '{micros}'", pa.duration("us")
        case dt.datetime():
            zone = None if value.tzinfo is None else "UTC"
            return f"TIMESTAMP '{value}'", pa.timestamp("us", zone)
        case dt.date():
            return f"DATE '{value}'", pa.date32()
    return str(value), pa.null()


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function of `OPERATORS` applied to arguments.

    `case` takes condition, value, condition, value, ..., default. `in` takes the value and then
    the list. `neg`, `not`, `is_null` take one argument, `like` a value and a literal pattern, and
    perhaps the character that escapes. `field` takes a struct and the literal name of one of its
    fields, `try` an expression that is null where it has no value, whatever the session says.
    Functions are those of the table `FUNCTIONS`.

    >>> double = Call("mul", (Column("q", "bid"), Literal(2, pa.int64())))
    >>> str(Call("gt", (Column("t", "price"), double)))
    't.price > q.bid * 2'
    """

    op: str
    args: tuple[Expr, ...]

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise ValueError(f"unknown operator {self.op!r}")

    def __str__(self) -> str:
        return _text(self)


@dataclass(frozen=True, slots=True)
class Cast:
    """`operand` converted to `type`; null where that has no value."""

    operand: Expr
    type: pa.DataType

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type})"


Expr = Column | Literal | Call | Cast

_BINDING = {"or": 1, "and": 2, "not": 3} | dict.fromkeys(COMPARISONS, 4)
_BINDING |= {
    "in": 4,
    "like": 4,
    "is_null": 4,
    "add": 5,
    "sub": 5,
    "mul": 6,
    "div": 6,
    "mod": 6,
    "neg": 7,
}


def _text(call: Call) -> str:
    binding = _BINDING.get(call.op, 9)

    def inner(arg: Expr, least: int) -> str:
        weak = isinstance(arg, Call) and _BINDING.get(arg.op, 9) < least
        return f"({arg})" if weak else str(arg)

    a = call.args
    infix = COMPARISONS | ARITHMETIC
    if call.op in LOGIC:
        return f" {LOGIC[call.op]} ".join(inner(arg, binding) for arg in a)
    if call.op in infix:
        right = inner(a[1], binding + 1)
        left = inner(a[0], binding + 1 if call.op in COMPARISONS else binding)
        return f"{left} {infix[call.op]} {right}"
    if call.op == "not":
        return f"NOT {inner(a[0], binding)}"
    if call.op == "neg":
        # Two signs would begin a comment, and the sign of a constant is part of it.
        text = inner(a[0], binding)
        return f"-({text})" if isinstance(a[0], Literal) or text.startswith("-") else f"-{text}"
    if call.op == "try":
        return inner(a[0], 9)
    if call.op == "is_null":
        return f"{inner(a[0], binding + 1)} IS NULL"
    if call.op == "in":
        return f"{inner(a[0], binding + 1)} IN ({', '.join(map(str, a[1:]))})"
    if call.op == "like":
        escape = f" ESCAPE {a[2]}" if a[2:] else ""
        return f"{inner(a[0], binding + 1)} LIKE {a[1]}{escape}"
    if call.op == "field":
        name = a[1].value if isinstance(a[1], Literal) else a[1]
        return f"{inner(a[0], 9)}.{quoted(str(name))}"
    if call.op == "case":
        whens = "".join(f" WHEN {c} THEN {v}" for c, v in zip(a[0:-1:2], a[1:-1:2], strict=True))
        return f"CASE{whens} ELSE {a[-1]} END"
    return f"{call.op}({', '.join(map(str, a))})"


def columns_of(expr: Expr) -> Iterator[Column]:
    """List every column that the expression reads, in order of appearance, with repetitions.

    >>> [str(c) for c in columns_of(Call("add", (Column("a", "x"), Column("b", "y"))))]
    ['a.x', 'b.y']
    """
    match expr:
        case Column():
            yield expr
        case Call(_, args):
            for arg in args:
                yield from columns_of(arg)
        case Cast(operand, _):
            yield from columns_of(operand)
        case Literal():
            pass


def streams_of(expr: Expr) -> frozenset[str]:
    """List the streams whose tuples the expression needs."""
    return frozenset(column.stream for column in columns_of(expr))


def conjuncts(expr: Expr) -> Iterator[Expr]:
    """Split a condition at AND.

    >>> yes = Literal(True, pa.bool_())
    >>> len(list(conjuncts(Call("and", (yes, Call("and", (yes, yes)))))))
    3
    """
    if isinstance(expr, Call) and expr.op == "and":
        for arg in expr.args:
            yield from conjuncts(arg)
    else:
        yield expr
