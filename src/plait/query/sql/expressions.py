"""Syntax trees of SQL expressions, translated into `plait.query.expr`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from plait.errors import TypeMismatch, UnknownColumn, did_you_mean
from plait.query.evaluate import type_of
from plait.query.expr import Call, Cast, Column, Expr, Literal
from plait.query.query import Stream, resolve, stream_index
from plait.query.sql import functions
from plait.query.sql.functions import NULL
from plait.query.sql.literals import BYTES, cast, in_zone, interval, least_of_type, negated, number
from plait.query.sql.source import SqlText
from plait.query.values.forms import is_bytes

_BINARY: Mapping[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "nseq",
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.Mod: "mod",
    exp.And: "and",
    exp.Or: "or",
}
_BITS: Mapping[type[exp.Expr], str] = {
    exp.BitwiseAnd: "and_bits",
    exp.BitwiseOr: "or_bits",
    exp.BitwiseXor: "xor_bits",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
}
_FLAGS = frozenset(
    # How sqlglot would write the node in other dialects; the meaning here is Spark's.
    {"safe", "coalesce", "ignore_nulls", "typed"}
)
_SPOKEN: Mapping[type[exp.Expr], str] = {
    exp.Subquery: "a subquery",
    exp.Select: "a subquery",
    exp.Exists: "EXISTS",
    exp.Window: "a window function (OVER)",
    exp.Placeholder: "a parameter",
    exp.Parameter: "a parameter",
    exp.SessionParameter: "a parameter",
    exp.Bracket: "an element of an array or map ([...])",
    exp.Tuple: "a list of values in parentheses",
    exp.Star: "*",
    exp.QueryTransform: "TRANSFORM",
    exp.WithinGroup: "WITHIN GROUP",
    exp.Alias: "AS within an expression",
    exp.Aliases: "AS within an expression",
    exp.Lambda: "a lambda",
    exp.Collate: "COLLATE",
    exp.Any: "ANY",
    exp.All: "ALL",
    exp.Explode: "EXPLODE",
    exp.Unnest: "UNNEST",
}
_PARTS = ("catalog", "db", "table", "this")
"""The parts of a name with dots, as sqlglot calls them, from the left."""


class Translation:
    """Expressions over some streams, from one text.

    `merged` maps the columns of JOIN ... USING to the stream that a bare name means.
    """

    def __init__(
        self, source: SqlText, streams: Sequence[Stream], merged: Mapping[str, str] | None = None
    ) -> None:
        self.source = source
        self.streams = streams
        self.merged = merged or {}

    def expression(self, node: exp.Expr) -> Expr:
        """Translate a node into `plait.query.expr`."""
        kind = type(node)
        if kind in _BINARY:
            self.only(node, "this", "expression")
            pair = (self.part(node, "this"), self.part(node, "expression"))
            if self.source.dialect.zone is not None and kind in (exp.Add, exp.Sub):
                self._check_dates(node, pair)
            return Call(_BINARY[kind], pair)
        if kind is exp.Anonymous:
            self.only(node, "this", "expressions")
            return functions.call(self, node)
        if kind in _BITS:
            return self.bits(node)
        if kind in _SPECIAL:
            return _SPECIAL[kind](self, node)
        self.refuse(node)
        raise AssertionError

    def shown(self, args: Sequence[Expr]) -> tuple[Expr, ...]:
        """Prepare values for text: convert instants to the session's zone."""
        zone = self.source.dialect.zone
        if zone is None:
            return tuple(args)
        types = [type_of(arg, self.type_of) for arg in args]
        if any(map(is_bytes, types)) and not all(is_bytes(t) or pa.types.is_null(t) for t in types):
            self.source.refuse("a BINARY among strings", 0, remedy=BYTES)
        return tuple(
            in_zone(a, type_, pa.string(), zone) for a, type_ in zip(args, types, strict=True)
        )

    def tried(self, expr: Expr) -> Expr:
        """Make an expression null where it has no value, also where ANSI is off."""
        dialect = self.source.dialect
        return expr if dialect.ansi or dialect.zone is None else Call("try", (expr,))

    def kind(self, expr: Expr) -> pa.DataType:
        """The type of an expression."""
        return type_of(expr, self.type_of)

    def as_type(self, expr: Expr, target: pa.DataType) -> Expr:
        """Cast an expression to a type, in the session's zone; unchanged if it has the type."""
        type_ = self.kind(expr)
        if type_ == target:
            return expr
        return Cast(in_zone(expr, type_, target, self.source.dialect.zone), target)

    def moment(self, expr: Expr, kind: str) -> Expr:
        """Convert a value to a `date`, to an `instant`, or to local time (`clock`).

        Without a session there is no zone in which a clock's time would be an instant.
        """
        if kind == "date":
            return self.as_type(expr, pa.date32())
        zone, type_ = self.source.dialect.zone, self.kind(expr)
        if pa.types.is_timestamp(type_) and (zone is None or (kind == "clock" and not type_.tz)):
            return expr
        return self.as_type(expr, pa.timestamp("us", zone))

    def like(
        self, node: exp.Expr, value: Expr, pattern: Expr, *escape: Expr, folded: bool = False
    ) -> Expr:
        """LIKE, or ILIKE if the case of letters does not count."""
        if not isinstance(pattern, Literal) or not all(isinstance(e, Literal) for e in escape):
            self.source.refuse(
                "LIKE with a pattern that is no constant", node, remedy="quote the pattern"
            )
        if folded:
            value = Call("lower", (value,))
            if isinstance(pattern.value, str):
                pattern = Literal(pattern.value.lower(), pattern.type)
        return Call("like", (value, pattern, *escape))

    def bits(self, node: exp.Expr) -> Expr:
        """Translate `&`, `|`, `^` and shifts; several in a row need parentheses."""
        self.only(node, "this", "expression")
        for side in (node.this, node.args["expression"]):
            if type(side) in _BITS and type(side) is not type(node):
                self.source.refuse(
                    "a mixture of &, |, ^ and shifts", node, remedy="use parentheses"
                )
        return Call(_BITS[type(node)], (self.part(node, "this"), self.part(node, "expression")))

    def _check_dates(self, node: exp.Expr, pair: Sequence[Expr]) -> None:
        """Refuse DATE plus INTERVAL, which on Spark is a DATE or a TIMESTAMP."""
        types = [type_of(side, self.type_of) for side in pair]
        if any(map(pa.types.is_date, types)) and any(map(pa.types.is_duration, types)):
            self.source.refuse(
                "a DATE with an INTERVAL", node, remedy="cast the DATE to a TIMESTAMP first"
            )

    def adjacent(self, node: exp.Expr) -> Literal:
        """String literals side by side: `'a' 'b'` is ab, `'a''b'` is a'b, as since Spark 4."""
        texts = [text.name for text in node.expressions]
        readings = set(self.source.adjacent(texts))
        if len(readings) != 1:
            self.source.refuse("a row of strings", node, remedy="write it as one string")
        return Literal(readings.pop(), pa.string())

    def part(self, node: exp.Expr, name: str) -> Expr:
        """The argument `name` of a node, translated."""
        return self.expression(node.args[name])

    def only(self, node: exp.Expr, *known: str) -> None:
        """Refuse a node with other arguments than the named ones: nothing is ignored."""
        for name, argument in node.args.items():
            if name not in known and name not in _FLAGS and argument not in (None, False, []):
                self.source.refuse(
                    f"{spoken(self.source, node)} with {name.strip('_').upper()}", node
                )

    def refuse(self, node: exp.Expr) -> None:
        """Refuse a node by its name."""
        if isinstance(node, exp.AggFunc):
            self.source.refuse(
                f"the aggregate function {spoken(self.source, node)}",
                node,
                remedy="Plait joins; aggregate the results afterwards",
            )
        if isinstance(node, exp.Func) and type(node) not in _SPOKEN:
            self.source.refuse(
                f"the function {spoken(self.source, node)}", node, remedy=functions.BEFORE
            )
        self.source.refuse(spoken(self.source, node), node)

    def column(self, node: exp.Expr) -> Expr:
        """A column; names are found in other cases too, as in Spark, if only one matches."""
        self.only(node, "this", "table", "db", "catalog")
        if isinstance(node.this, exp.Star):
            self.source.refuse("* within an expression", node)
        parts = [part.name for part in (node.args.get(a) for a in _PARTS) if part is not None]
        with self.source.placing(node):
            if len(parts) == 1:
                return self._bare(parts[0])
            owner = spelled(parts[0], [s.name for s in self.streams])
            if owner not in [s.name for s in self.streams] and self._is_struct(parts[0]):
                return self._field(self._bare(parts[0]), parts[1:])
            fields = [f.name for s in self.streams if s.name == owner for f in s.fields]
            found = resolve(self.streams, spelled(parts[1], fields), owner)
            return self._field(found, parts[2:])

    def dot(self, node: exp.Expr) -> Expr:
        """Translate a field of a struct that sqlglot does not read as part of a column's name."""
        self.only(node, "this", "expression")
        if not isinstance(node.args["expression"], exp.Identifier):
            self.refuse(node)
        with self.source.placing(node):
            return self._field(self.part(node, "this"), [node.args["expression"].name])

    def _field(self, expr: Expr, names: Sequence[str]) -> Expr:
        for name in names:
            type_ = type_of(expr, self.type_of)
            if not pa.types.is_struct(type_):
                raise TypeMismatch(
                    f"{expr} is {type_} and has no field {name!r}",
                    remedy="only structs have fields",
                )
            known = [type_.field(i).name for i in range(type_.num_fields)]
            exact = spelled(name, known)
            if exact not in known:
                raise UnknownColumn(
                    f"{expr} has no field {name!r}", remedy=did_you_mean(name, known)
                )
            expr = Call("field", (expr, Literal(exact, pa.string())))
        return expr

    def _is_struct(self, name: str) -> bool:
        exact = spelled(name, [f.name for s in self.streams for f in s.fields])
        return any(
            f.name == exact and pa.types.is_struct(f.type) for s in self.streams for f in s.fields
        )

    def type_of(self, column: Column) -> pa.DataType:
        """The type of a column."""
        return type_in(self.streams, column)

    def _bare(self, name: str) -> Column:
        every = list(dict.fromkeys(f.name for s in self.streams for f in s.fields))
        exact = spelled(name, every)
        return resolve(self.streams, exact, self.merged.get(exact))


def type_in(streams: Sequence[Stream], column: Column) -> pa.DataType:
    """The type of a column of one of the streams."""
    return streams[stream_index(streams, column.stream)].type_of(column.name)


def spelled(name: str, known: Sequence[str]) -> str:
    """Find a known name: exactly, or the only one that differs in case alone."""
    if name in known:
        return name
    matches = [k for k in known if k.lower() == name.lower()]
    return matches[0] if len(matches) == 1 else name


def spoken(source: SqlText, node: exp.Expr) -> str:
    """Name a node for people."""
    if type(node) in _SPOKEN:
        return _SPOKEN[type(node)]
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    if isinstance(node, exp.Func):
        start = node.meta.get("start")
        if start is not None:
            token = source.tokens[source.token_at(start - len(source.lead))]
            return token.text.upper()
        return node.sql_name()
    return node.key.upper()


def _literal(t: Translation, node: exp.Expr) -> Expr:
    assert isinstance(node, exp.Literal)
    return Literal(node.this, pa.string()) if node.is_string else number(t.source, node)


def _hex(t: Translation, node: exp.Expr) -> Expr:
    digits = node.name.zfill(len(node.name) + len(node.name) % 2)
    return Literal(bytes.fromhex(digits), pa.binary())


def _negation(t: Translation, node: exp.Expr) -> Expr:
    if (least := least_of_type(node.this)) is not None:
        return least
    inner = t.part(node, "this")
    folded = negated(inner) if isinstance(inner, Literal) else None
    return folded or Call("neg", (inner,))


def _is(t: Translation, node: exp.Expr) -> Expr:
    t.only(node, "this", "expression")
    other = node.args["expression"]
    if isinstance(other, exp.Null):
        return Call("is_null", (t.part(node, "this"),))
    if isinstance(other, exp.Boolean):
        return Call("nseq", (t.part(node, "this"), t.expression(other)))
    t.source.refuse(f"IS {other.sql('spark')}", node)


def _in(t: Translation, node: exp.Expr) -> Expr:
    if node.args.get("query") is not None:
        t.source.refuse("a subquery", node, remedy="IN takes a list of constants")
    t.only(node, "this", "expressions")
    if not node.expressions:
        t.source.refuse("IN without a list", node, remedy="write IN (1, 2)")
    listed = [_constant(t.expression(item)) for item in node.expressions]
    for item, place in zip(listed, node.expressions, strict=True):
        if not isinstance(item, Literal):
            t.source.refuse(f"{item} in the list of IN", place, remedy="it takes constants only")
    return Call("in", (t.part(node, "this"), *listed))


def _constant(expr: Expr) -> Expr:
    """Whether a node is a constant, also with a type suffix as in 1L."""
    match expr:
        case Cast(Literal() as inner, type_) if type_ == inner.type:
            return inner
    return expr


def _like(t: Translation, node: exp.Expr) -> Expr:
    t.only(node, "this", "expression", "negate")
    folded = isinstance(node, exp.ILike)
    like = t.like(node, t.part(node, "this"), t.part(node, "expression"), folded=folded)
    return Call("not", (like,)) if node.args.get("negate") else like


def _escape(t: Translation, node: exp.Expr) -> Expr:
    inner = node.this
    if not isinstance(inner, exp.Like | exp.ILike):
        t.refuse(node)
    t.only(inner, "this", "expression", "negate")
    parts = (t.part(inner, "this"), t.part(inner, "expression"), t.part(node, "expression"))
    like = t.like(inner, *parts, folded=isinstance(inner, exp.ILike))
    return Call("not", (like,)) if inner.args.get("negate") else like


def _pair(op: str) -> Callable[[Translation, exp.Expr], Expr]:
    def build(t: Translation, node: exp.Expr) -> Expr:
        t.only(node, "this", "expression")
        return Call(op, (t.part(node, "this"), t.part(node, "expression")))

    return build


def _between(t: Translation, node: exp.Expr) -> Expr:
    t.only(node, "this", "low", "high")
    value = t.part(node, "this")
    low, high = t.part(node, "low"), t.part(node, "high")
    return Call("and", (Call("ge", (value, low)), Call("le", (value, high))))


def _case(t: Translation, node: exp.Expr) -> Expr:
    t.only(node, "this", "ifs", "default")
    subject = t.part(node, "this") if node.args.get("this") is not None else None
    args: list[Expr] = []
    for when in node.args["ifs"]:
        condition = t.part(when, "this")
        args += [condition if subject is None else Call("eq", (subject, condition))]
        args += [t.part(when, "true")]
    default = node.args.get("default")
    return Call("case", (*args, NULL if default is None else t.expression(default)))


def _if(t: Translation, node: exp.Expr) -> Expr:
    t.only(node, "this", "true", "false")
    other = NULL if node.args.get("false") is None else t.part(node, "false")
    return Call("case", (t.part(node, "this"), t.part(node, "true"), other))


def _cast(t: Translation, node: exp.Expr) -> Expr:
    t.only(node, "this", "to")
    assert isinstance(node, exp.Cast)
    made = cast(t.source, node, t.part(node, "this"), t.type_of)
    # sqlglot has one class for CAST and TRY_CAST of Spark, and this mark.
    tried = bool(node.args.get("safe")) and not isinstance(made, Literal)
    return t.tried(made) if tried else made


def _substring(t: Translation, node: exp.Expr) -> Expr:
    t.only(node, "this", "start", "length")
    if node.args.get("start") is None:
        t.source.refuse("SUBSTRING without a start", node)
    count = () if node.args.get("length") is None else (t.part(node, "length"),)
    return Call("substring", (t.part(node, "this"), t.part(node, "start"), *count))


def _parts(op: str, *names: str, optional: int = 0) -> Callable[[Translation, exp.Expr], Expr]:
    """Define a function that sqlglot parses specially, by the names of its arguments."""

    def build(t: Translation, node: exp.Expr) -> Expr:
        t.only(node, *names)
        given = [name for name in names if node.args.get(name) is not None]
        if len(given) < len(names) - optional:
            t.source.refuse(f"{spoken(t.source, node)} with {len(given)} arguments", node)
        return Call(op, tuple(t.part(node, name) for name in given))

    return build


def _trim(t: Translation, node: exp.Expr) -> Expr:
    t.only(node, "this", "expression", "position")
    side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
    signs = (t.part(node, "expression"),) if node.args.get("expression") is not None else ()
    return Call(side, (t.part(node, "this"), *signs))


def _extract(t: Translation, node: exp.Expr) -> Expr:
    t.only(node, "this", "expression")
    with t.source.placing(node):
        return functions.extracted(t, node, node.this.name, t.part(node, "expression"))


def _interval(t: Translation, node: exp.Expr) -> Expr:
    assert isinstance(node, exp.Interval)
    return interval(t.source, node)


def _distinct_from(t: Translation, node: exp.Expr) -> Expr:
    return Call("not", (Call("nseq", (t.part(node, "this"), t.part(node, "expression"))),))


_SPECIAL: Mapping[type[exp.Expr], Callable[[Translation, exp.Expr], Expr]] = {
    exp.Between: _between,
    exp.BitwiseNot: _parts("not_bits", "this"),
    exp.Boolean: lambda t, node: Literal(bool(node.this), pa.bool_()),
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Column: Translation.column,
    exp.Concat: Translation.adjacent,
    exp.Dot: Translation.dot,
    exp.DPipe: lambda t, node: Call(
        "concat", t.shown((t.part(node, "this"), t.part(node, "expression")))
    ),
    exp.Escape: _escape,
    exp.Extract: _extract,
    exp.HexString: _hex,
    exp.If: _if,
    exp.ILike: _like,
    exp.In: _in,
    exp.IntDiv: _pair("intdiv"),
    exp.Interval: _interval,
    exp.Is: _is,
    exp.Like: _like,
    exp.Literal: _literal,
    exp.Neg: _negation,
    exp.Not: lambda t, node: Call("not", (t.part(node, "this"),)),
    exp.Null: lambda t, node: NULL,
    exp.NullSafeNEQ: _distinct_from,
    exp.Overlay: _parts("overlay", "this", "expression", "from_", "for_", optional=1),
    exp.Paren: lambda t, node: t.part(node, "this"),
    exp.RawString: lambda t, node: Literal(node.this, pa.string()),
    exp.RegexpLike: _pair("rlike"),
    exp.StrPosition: _parts("locate", "substr", "this", "position", optional=1),
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.TryCast: _cast,
}
