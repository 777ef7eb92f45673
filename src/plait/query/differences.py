"""Conditions on event times that are difference bounds.

A comparison whose sides add up to `x.time - y.time <= c` bounds a pair of streams: it becomes a
`Constraint` on event times in microseconds, and needs no evaluation. Every other condition on times
stays an ordinary condition.

*Nanoseconds.* Event times are counted in microseconds, rounded down where the column is finer. The
constraint is then what follows from the condition: if `x - y <= c` then `floor(x) - floor(y) <= c`,
for whole c; and the same follows from `x - y < c`, since x may be just below the next microsecond
and y just above its own. So the constraint loses no result, and the condition is kept beside it, to
be evaluated on the nanoseconds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from plait.query.bounds import Constraint
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Stream, stream_index

_MICROSECOND = dt.timedelta(microseconds=1)
_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


@dataclass(frozen=True, slots=True)
class Difference:
    """`later - earlier <= micros`, between two columns."""

    earlier: Column
    later: Column
    micros: int
    strict: bool = False
    """Whether `later - earlier < micros + 1` was said, which in microseconds is the same."""


def differences(condition: Expr) -> tuple[Difference, ...]:
    """Read a condition as bounds on the difference of two columns; empty if it is anything else.

    >>> import pyarrow as pa
    >>> five = Literal(dt.timedelta(seconds=5), pa.duration("us"))
    >>> late = Call("lt", (Column("b", "ts"), Call("add", (Column("a", "ts"), five))))
    >>> differences(late)[0].micros
    4999999
    """
    match condition:
        case Call("le" | "lt" as op, (Call("abs", (inner,)), limit)) if isinstance(limit, Literal):
            return differences(Call(op, (inner, limit))) + differences(
                Call(_FLIPPED[op], (inner, Call("neg", (limit,))))
            )
        case Call("ge" | "gt" as op, (Literal() as limit, Call("abs") as inner)):
            return differences(Call(_FLIPPED[op], (inner, limit)))
        case Call("lt" | "le" | "gt" | "ge" | "eq" as op, (left, right)):
            a, b = _linear(left), _linear(right)
            if a is None or b is None:
                return ()
            return _bounds(op, _plus(a, b, -1))
    return ()


_Linear = tuple[dict[Column, int], int]


def _linear(expr: Expr) -> _Linear | None:
    """Read an expression as a sum of columns and microseconds, if it is one."""
    match expr:
        case Column():
            return {expr: 1}, 0
        case Literal(dt.timedelta() as length, _):
            return {}, length // _MICROSECOND
        case Call("add" | "sub" as op, (left, right)):
            a, b = _linear(left), _linear(right)
            return None if a is None or b is None else _plus(a, b, 1 if op == "add" else -1)
        case Call("neg", (inner,)):
            a = _linear(inner)
            return None if a is None else _plus(({}, 0), a, -1)
    return None


def _plus(a: _Linear, b: _Linear, sign: int) -> _Linear:
    total = dict(a[0])
    for column, count in b[0].items():
        total[column] = total.get(column, 0) + sign * count
    return {c: n for c, n in total.items() if n}, a[1] + sign * b[1]


def _bounds(op: str, difference: _Linear) -> tuple[Difference, ...]:
    """Turn `difference op 0` into bounds."""
    columns, constant = difference
    if sorted(columns.values()) != [-1, 1]:
        return ()
    plus = next(c for c, n in columns.items() if n == 1)
    minus = next(c for c, n in columns.items() if n == -1)
    if plus.stream == minus.stream:
        return ()
    below = Difference(minus, plus, -constant - (op == "lt"), op == "lt")
    above = Difference(plus, minus, constant - (op == "gt"), op == "gt")
    return {"lt": (below,), "le": (below,), "gt": (above,), "ge": (above,)}.get(op, (below, above))


def constraints(condition: Expr, streams: Sequence[Stream]) -> tuple[Constraint, ...]:
    """Derive the bounds on event times from a condition."""
    return tuple(
        Constraint(
            stream_index(streams, d.earlier.stream),
            stream_index(streams, d.later.stream),
            d.micros + (d.strict and _fine(d, streams)),
            d.strict and _fine(d, streams),
        )
        for d in differences(condition)
        if all(
            streams[stream_index(streams, c.stream)].time == c.name for c in (d.earlier, d.later)
        )
    )


def kept(condition: Expr, streams: Sequence[Stream]) -> tuple[Expr, ...]:
    """Return what must still be evaluated of a condition beside its constraints.

    Plain `a.ts = b.ts` is a join predicate too. Of nanoseconds every comparison is kept, in the
    form `later <= earlier + length`: a difference of two times would be one of microseconds. Every
    other comparison is its constraints.
    """
    match condition:
        case Call("eq", (Column(), Column())):
            return (condition,)
    fine = [d for d in differences(condition) if _fine(d, streams)]
    if isinstance(condition, Call) and condition.op == "eq":
        return tuple(Call("eq", (d.later, _shifted(d.earlier, d.micros))) for d in fine[:1])
    return tuple(
        Call("lt" if d.strict else "le", (d.later, _shifted(d.earlier, d.micros + d.strict)))
        for d in fine
    )


def exactly(windows: Sequence[Constraint], streams: Sequence[Stream]) -> list[Expr]:
    """Return the conditions to evaluate beside windows, where a time has nanoseconds."""
    found: list[Expr] = []
    for window in windows:
        earlier, later = (
            Column(streams[i].name, streams[i].time) for i in (window.earlier, window.later)
        )
        if _fine(Difference(earlier, later, window.micros), streams):
            found.append(Call("le", (later, _shifted(earlier, window.micros))))
    return found


def _shifted(column: Column, micros: int) -> Expr:
    length = Literal(micros * _MICROSECOND, pa.duration("us"))
    return Call("add", (column, length)) if micros else column


def _fine(difference: Difference, streams: Sequence[Stream]) -> bool:
    """Whether one of the columns has nanoseconds."""
    columns = (difference.earlier, difference.later)
    types = [streams[stream_index(streams, c.stream)].type_of(c.name) for c in columns]
    return any(pt.is_timestamp(t) and t.unit == "ns" for t in types)
