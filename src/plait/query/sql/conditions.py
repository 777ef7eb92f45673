"""Boolean SQL over streams, split into conditions and bounds on event times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from plait.errors import QueryError, WindowError
from plait.query.bounds import Constraint
from plait.query.dialect import PLAIN, Dialect
from plait.query.differences import constraints, kept
from plait.query.evaluate import evaluate, type_of
from plait.query.expr import Call, Column, Expr, conjuncts, streams_of
from plait.query.query import Stream, as_equality, check_condition
from plait.query.sql.expressions import Translation, type_in
from plait.query.sql.on_spark import on_spark
from plait.query.sql.source import SqlText, refusing_endless_nesting


@dataclass(frozen=True, slots=True)
class Part:
    """One of the conditions joined by AND, and its position."""

    expr: Expr
    place: int
    between: bool = False

    @property
    def conjuncts(self) -> tuple[Expr, ...]:
        """BETWEEN is two conditions, everything else one."""
        return tuple(conjuncts(self.expr))


@refusing_endless_nesting
def parse_condition(
    text: str, streams: Sequence[Stream], dialect: Dialect = PLAIN
) -> tuple[list[Expr], list[Constraint]]:
    """The conditions of a boolean text, and its bounds on the streams' event times.

    >>> import pyarrow as pa
    >>> from plait.query.query import Field
    >>> fields = (Field("k", pa.int64()), Field("ts", pa.timestamp("us")))
    >>> streams = [Stream("a", fields, "ts"), Stream("b", fields, "ts")]
    >>> kept, bounds = parse_condition("a.k = b.k AND b.ts <= a.ts + INTERVAL 5 SECONDS", streams)
    >>> [str(k) for k in kept], [(b.earlier, b.later, b.micros) for b in bounds]
    (['a.k = b.k'], [(0, 1, 5000000)])
    """
    source = SqlText(text, dialect=dialect)
    return split(source, condition_parts(source, streams), streams)


def condition_parts(source: SqlText, streams: Sequence[Stream]) -> list[Part]:
    """The conditions of a text that is one boolean expression."""
    statements = source.parse()
    if not statements:
        raise QueryError("the condition is empty", remedy="write for example a.key = b.key")
    if len(statements) > 1:
        source.refuse("a second statement", statements[1], remedy="leave out the semicolon")
    return list(parts_of(Translation(source, streams), statements[0]))


def parts_of(translation: Translation, node: exp.Expr) -> Iterator[Part]:
    """Split a syntax tree at AND; leave out conditions that are always true."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        for side in node.flatten():
            yield from parts_of(translation, side)
        return
    expr = translation.expression(node)
    if not streams_of(expr):
        with translation.source.placing(node):
            type_of(expr, _no_column)
        if evaluate(expr, _no_column, 1)[0].as_py() is True:
            return
    yield Part(expr, translation.source.offset(node), isinstance(node, exp.Between))


def _no_column(column: Column) -> object:
    raise AssertionError(f"{column} in a constant")


def split(
    source: SqlText, parts: Sequence[Part], streams: Sequence[Stream]
) -> tuple[list[Expr], list[Constraint]]:
    """Separate conditions to evaluate from bounds on event times; errors name the position."""
    conditions: list[Expr] = []
    bounds: list[Constraint] = []

    for part in parts:
        with source.placing(part.place):
            if as_equality(streams, part.expr) is None:
                check_condition(streams, part.expr)
            if part.between:
                _refuse_empty(part.expr, streams)
            for expr in part.conjuncts:
                implied = constraints(expr, streams)
                bounds += implied
                conditions += (
                    kept(expr, streams)
                    if implied
                    else (on_spark(expr, lambda c: type_in(streams, c), source.dialect),)
                )
    return conditions, bounds


def _refuse_empty(between: Expr, streams: Sequence[Stream]) -> None:
    assert isinstance(between, Call)
    match [c for expr in between.args for c in constraints(expr, streams)]:
        case [low, high] if (low.earlier, low.later) == (high.later, high.earlier):
            if low.micros + high.micros < 0:
                raise WindowError(
                    f"the interval {between} is empty: its lower end is above its upper end",
                    remedy="exchange the ends of BETWEEN",
                )
