"""Write queries as plain data, and read them.

    {
      "version": 1,
      "streams": [{"name": "a", "fields": [{"name": "ts", "type": "timestamp[us]"}, ...],
                   "time": "ts", "delay": 0, "idle": null}, ...],
      "equalities": [{"left": ["a", "k"], "right": ["b", "k"]}],
      "residuals": [{"call": "gt", "args": [{"column": ["a", "v"]},
                                            {"literal": 5, "type": "int64"}]}],
      "bounds": [[0, 5000000], [2000000, 0]],
      "select": [{"name": "v", "expr": {"column": ["a", "v"]}}]
    }

By `"lateness": "least"` rows are late by the least watermark of all streams; without the field, by
that of their own.

Times are microseconds; `bounds[i][j]` is the largest `ts_j - ts_i`. An expression is a `column`, a
`literal`, a `call` or a `cast`. A constant that JSON has no value for is an object that names its
kind: `{"decimal": "1.50"}`, `{"timestamp": "2024-05-01T12:00:00"}`, `{"bytes": "3q0="}`.

What is read is checked in full, also whether the query has a meaning: an error names the place in
the data, or the stream or column. Whatever changes in the format changes the version, and a
version that is not known is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast, get_args

import pyarrow as pa

from plait.errors import QueryError, did_you_mean
from plait.query.bounds import Constraint
from plait.query.constants import constant_from_data, constant_to_data
from plait.query.expr import (
    ARITHMETIC,
    COMPARISONS,
    LOGIC,
    OPERATORS,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
)
from plait.query.query import Equality, Field, Lateness, Output, Query, Stream, make_query
from plait.query.reading import Reader, shown
from plait.query.typenames import type_from_data, type_to_data
from plait.query.values.functions import FUNCTIONS

VERSION = 1
_READ = Reader(QueryError)


def query_to_dict(query: Query) -> dict[str, object]:
    """Write a query with its version, in the types of JSON.

    >>> from plait.testing.examples import trades_quotes_news as query
    >>> query_to_dict(query)["equalities"][0]
    {'left': ['trades', 'sym'], 'right': ['quotes', 'sym']}
    """
    rule = {} if query.lateness == "own" else {"lateness": query.lateness}
    return rule | {
        "version": VERSION,
        "streams": [_stream_to_dict(stream) for stream in query.streams],
        "equalities": [
            {"left": [e.left.stream, e.left.name], "right": [e.right.stream, e.right.name]}
            for e in query.equalities
        ],
        "residuals": [_expr_to_dict(residual) for residual in query.residuals],
        "bounds": [list(row) for row in query.bounds.matrix],
        "select": [{"name": o.name, "expr": _expr_to_dict(o.expr)} for o in query.select],
    }


def query_from_dict(data: object, *, theta: bool = False) -> Query:
    """Read what `query_to_dict` wrote; `theta` as for `make_query`.

    >>> from plait.testing.examples import trades_quotes_news as query
    >>> query_from_dict(query_to_dict(query)) == query
    True
    >>> query_from_dict({"version": 1, "streams": []})
    Traceback (most recent call last):
    plait.errors.QueryError: $ lacks the field 'equalities'
    """
    names = ("version", "streams", "equalities", "residuals", "bounds", "select")
    said = isinstance(data, Mapping) and "lateness" in data
    try:
        _READ.version(data, VERSION, "query")
        fields = _READ.fields(data, "$", (*names, "lateness") if said else names)
        streams = [_stream(*item) for item in _READ.items(fields["streams"], "$.streams")]
        equal = [_equality(*item) for item in _READ.items(fields["equalities"], "$.equalities")]
        residuals = [_expr(*item) for item in _READ.items(fields["residuals"], "$.residuals")]
        select = [_output(*item) for item in _READ.items(fields["select"], "$.select")]
        if not select:
            raise QueryError("$.select is empty", remedy="select at least one column")
        conditions = [*(Call("eq", (e.left, e.right)) for e in equal), *residuals]
        bounds = _constraints(fields["bounds"], len(streams))
        return make_query(streams, conditions, bounds, select, _lateness(fields), theta=theta)
    except RecursionError:
        raise QueryError("an expression of the query is nested too deeply") from None


def _lateness(fields: Mapping[str, object]) -> Lateness:
    given = fields.get("lateness", "own")
    for rule in get_args(Lateness):
        if given == rule:
            return cast(Lateness, rule)
    raise QueryError(f"$.lateness is {shown(given)}", remedy="known: own, least")


def _stream_to_dict(stream: Stream) -> dict[str, object]:
    return {
        "name": stream.name,
        "fields": [{"name": f.name, "type": type_to_data(f.type)} for f in stream.fields],
        "time": stream.time,
        "delay": stream.delay,
        "idle": stream.idle,
        # Only where it is bounded, so that earlier versions can read all other queries.
        **({} if stream.ahead is None else {"ahead": stream.ahead}),
    }


def _stream(data: object, path: str) -> Stream:
    bounded = isinstance(data, Mapping) and "ahead" in data
    parts = ("name", "fields", "time", "delay", "idle", *(["ahead"] if bounded else ()))
    found = _READ.fields(data, path, parts)
    fields = []
    for item, where in _READ.items(found["fields"], f"{path}.fields"):
        field = _READ.fields(item, where, ("name", "type"))
        name = _READ.text(field["name"], f"{where}.name", "the name of a column")
        fields.append(Field(name, type_from_data(field["type"], f"{where}.type")))
    limits = {name: found.get(name) for name in ("idle", "ahead")}
    idle, ahead = (
        None if n is None else _READ.whole(n, f"{path}.{name}", "a number of microseconds")
        for name, n in limits.items()
    )
    return Stream(
        _READ.text(found["name"], f"{path}.name", "the name of a stream"),
        tuple(fields),
        _READ.text(found["time"], f"{path}.time", "the name of a column"),
        _READ.whole(found["delay"], f"{path}.delay", "a number of microseconds"),
        idle,
        ahead,
    )


def _equality(data: object, path: str) -> Equality:
    sides = _READ.fields(data, path, ("left", "right"))
    left, right = (_column(sides[side], f"{path}.{side}") for side in ("left", "right"))
    if left.stream == right.stream:
        raise QueryError(
            f"{path} is between two columns of {left.stream!r}",
            remedy="make it one of the residuals",
        )
    return Equality(left, right)


def _output(data: object, path: str) -> Output:
    fields = _READ.fields(data, path, ("name", "expr"))
    name = _READ.text(fields["name"], f"{path}.name", "the name of a result column")
    return Output(name, _expr(fields["expr"], f"{path}.expr"))


def _constraints(data: object, streams: int) -> list[Constraint]:
    rows = [_READ.items(*row) for row in _READ.items(data, "$.bounds")]
    if len(rows) != streams or any(len(row) != streams for row in rows):
        raise QueryError(
            f"$.bounds is no matrix of {streams} rows and columns",
            remedy="give each stream a row with a bound to every stream",
        )
    found = []
    for i, row in enumerate(rows):
        for j, (bound, where) in enumerate(row):
            micros = _READ.whole(bound, where, "a number of microseconds")
            if i != j:
                found.append(Constraint(i, j, micros))
            elif micros:
                raise QueryError(f"{where} is {micros}, but no stream is apart from itself: give 0")
    return found


# -- expressions


def _expr_to_dict(expr: Expr) -> dict[str, object]:
    match expr:
        case Column(stream, name):
            return {"column": [stream, name]}
        case Literal(value, type_):
            return {"literal": constant_to_data(value), "type": type_to_data(type_)}
        case Call(op, args):
            return {"call": op, "args": [_expr_to_dict(arg) for arg in args]}
        case Cast(operand, type_):
            return {"cast": _expr_to_dict(operand), "type": type_to_data(type_)}


def _expr(data: object, path: str) -> Expr:
    found = _READ.mapping(data, path)
    if "column" in found:
        return _column(_READ.fields(data, path, ("column",))["column"], f"{path}.column")
    if "literal" in found:
        fields = _READ.fields(data, path, ("literal", "type"))
        type_ = type_from_data(fields["type"], f"{path}.type")
        value = constant_from_data(fields["literal"], f"{path}.literal")
        try:
            pa.scalar(value, type_)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            given = shown(fields["literal"])
            raise QueryError(f"{path}.literal is {given}, which is no {type_}") from None
        return Literal(value, type_)
    if "call" in found:
        fields = _READ.fields(data, path, ("call", "args"))
        args = [_expr(*item) for item in _READ.items(fields["args"], f"{path}.args")]
        return _call(_READ.text(fields["call"], f"{path}.call", "an operator"), args, path)
    if "cast" in found:
        fields = _READ.fields(data, path, ("cast", "type"))
        operand = _expr(fields["cast"], f"{path}.cast")
        return Cast(operand, type_from_data(fields["type"], f"{path}.type"))
    raise QueryError(
        f"{path} is no expression: {shown(data)}", remedy="known: column, literal, call, cast"
    )


def _column(data: object, path: str) -> Column:
    parts = _READ.items(data, path)
    if len(parts) != 2:
        raise QueryError(f"{path} is {shown(data)}, not the names of a stream and a column")
    return Column(*(_READ.text(part, where, "a name") for part, where in parts))


_ARGUMENTS: dict[str, tuple[int, float]] = {
    **{name: (function.least, function.most) for name, function in FUNCTIONS.items()},
    **dict.fromkeys(("not", "neg", "is_null", "try"), (1, 1)),
    **dict.fromkeys([*COMPARISONS, *ARITHMETIC, "field"], (2, 2)),
    **dict.fromkeys(LOGIC, (2, math.inf)),
    "in": (2, math.inf),
    "like": (2, 3),
    "case": (3, math.inf),
}
"""The fewest and most arguments of each operator."""


def _call(op: str, args: list[Expr], path: str) -> Call:
    if op not in OPERATORS:
        raise QueryError(
            f"{path}.call is {shown(op)}, no operator", remedy=did_you_mean(op, sorted(OPERATORS))
        )
    least, most = _ARGUMENTS[op]
    if not least <= len(args) <= most or (op == "case" and len(args) % 2 == 0):
        raise QueryError(f"{path}.args are {len(args)}, which is no number of arguments of {op}")
    return Call(op, tuple(args))
