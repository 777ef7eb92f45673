"""The functions of Spark SQL by name: how many arguments they take, and which expression they are.

sqlglot would give each function a class of its own, with the arguments in an order of its own.
Here a call is a name and its arguments, as in the text (`source.SparkCalls`), and this table says
what it means. What is not in the table is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from sqlglot import exp

from plait.query.expr import Call, Cast, Expr, Literal
from plait.query.values.functions import FUNCTIONS

if TYPE_CHECKING:
    from plait.query.sql.expressions import Translation

NULL = Literal(None, pa.null())
ZERO = Literal(0, pa.int64())

Build = Callable[["Translation", exp.Expr, Sequence[Expr]], Expr]

BEFORE = "compute it with Spark before the join, in a column"
"""The remedy for SQL that Plait does not support."""


@dataclass(frozen=True, slots=True)
class Named:
    """A function of Spark: its expression, and the fewest and most arguments."""

    build: Build
    least: int
    most: float


def _same(op: str) -> Named:
    """Define a function with the same name here, or nearly."""
    function = FUNCTIONS[op]
    return Named(lambda t, node, args: Call(op, tuple(args)), function.least, function.most)


def _operator(op: str, count: int) -> Named:
    return Named(lambda t, node, args: Call(op, tuple(args)), count, count)


def _tried(op: str) -> Named:
    return Named(lambda t, node, args: t.tried(Call(op, tuple(args))), 2, 2)


def _with(op: str, *kinds: str | None, least: int | None = None) -> Named:
    """Define a function whose arguments become dates, instants or local times, by their kinds."""

    def build(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
        padded = (*kinds, *[None] * len(args))
        return Call(op, tuple(t.moment(a, k) if k else a for a, k in zip(args, padded)))  # noqa: B905

    return Named(build, len(kinds) if least is None else least, len(kinds))


def _isnotnull(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    return Call("not", (Call("is_null", tuple(args)),))


def _nvl2(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    return Call("case", (_isnotnull(t, node, args[:1]), args[1], args[2]))


def nullif(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    """NULL where both are equal."""
    return Call("case", (Call("eq", (args[0], args[1])), NULL, args[0]))


def decode(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    """Return the value after the first equal one (NULL equals NULL), or the last one."""
    subject, rest = args[0], args[1:]
    parts: list[Expr] = []
    for i in range(0, len(rest) - 1, 2):
        parts += [Call("nseq", (subject, rest[i])), rest[i + 1]]
    return Call("case", (*parts, rest[-1] if len(rest) % 2 else NULL))


def _concat(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    return Call("concat", t.shown(args))


def _concat_ws(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    return Call("concat_ws", (args[0], *t.shown(args[1:])))


def _like(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    return t.like(node, *args)


def _ilike(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    return t.like(node, *args, folded=True)


def _date_sub(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    return Call("date_add", (t.moment(args[0], "date"), Call("neg", (args[1],))))


def _date_part(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    field = args[0].value if isinstance(args[0], Literal) else None
    if not isinstance(field, str):
        t.source.refuse("a field that is no constant", node, remedy="write for example 'YEAR'")
    return extracted(t, node, field, args[1])


def extracted(t: Translation, node: exp.Expr, field: str, value: Expr) -> Expr:
    """EXTRACT(field FROM value)."""
    name = _FIELDS.get(field.upper())
    if name is None:
        t.source.refuse(f"the field {field.upper()}", node, remedy=BEFORE)
    clock = name in ("hour", "minute", "second_with_fraction")
    part = Call(name, (t.moment(value, "clock" if clock else "date"),))
    if field.upper() in ("DOW_ISO", "DAYOFWEEK_ISO"):
        return Call("add", (part, Literal(1, pa.int64())))
    return part


_FIELDS: Mapping[str, str] = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    "YEAROFWEEK": "yearofweek",
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "weekofyear"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), "weekday"),
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "second_with_fraction"),
}


def _to_date(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    if len(args) == 1:
        return t.moment(args[0], "date")
    return Cast(Call("parse_timestamp", tuple(args)), pa.date32())


def _to_timestamp(zoned: bool | None) -> Build:
    """Build a timestamp with a zone, without one, or as the session has it."""

    def build(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
        zone = t.source.dialect.timestamp_zone if zoned is None else t.source.dialect.zone
        target = pa.timestamp("us", None if zoned is False else zone)
        if len(args) == 1:
            return t.as_type(args[0], target)
        parsed = Call("parse_timestamp", tuple(args))
        return parsed if target.tz is None else Cast(parsed, target)

    return build


def _make_timestamp(zoned: bool | None) -> Build:
    def build(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
        zone = t.source.dialect.timestamp_zone if zoned is None else t.source.dialect.zone
        made = Call("make_timestamp", tuple(args))
        return made if zoned is False or zone is None else Cast(made, pa.timestamp("us", zone))

    return build


def _instant(op: str) -> Named:
    """Build an instant from a number; without a session, the time in UTC."""

    def build(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
        call = Call(op, tuple(args))
        return Cast(call, pa.timestamp("us")) if t.source.dialect.zone is None else call

    return Named(build, 1, 1)


def _from_unixtime(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    instant = _instant("timestamp_seconds").build(t, node, args[:1])
    pattern = args[1] if args[1:] else Literal("yyyy-MM-dd HH:mm:ss", pa.string())
    return Call("date_format", (t.moment(instant, "clock"), pattern))


def _unix_timestamp(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    given = t.kind(args[0])
    if pa.types.is_string(given) or pa.types.is_large_string(given):
        pattern = args[1] if args[1:] else Literal("yyyy-MM-dd HH:mm:ss", pa.string())
        moment = t.moment(Call("parse_timestamp", (args[0], pattern)), "instant")
    else:
        moment = t.moment(args[0], "clock")
    # Cut off, not rounded down.
    return Call("intdiv", (Call("unix_micros", (moment,)), Literal(1_000_000, pa.int64())))


def _cast(name: str) -> Named:
    def build(t: Translation, node: exp.Expr, args: Sequence[Expr]) -> Expr:
        return t.expression(
            exp.Cast(this=node.expressions[0], to=exp.DataType.build(name, dialect="spark"))
        )

    return Named(build, 1, 1)


NAMED: Mapping[str, Named] = {
    **{
        name: _same(name)
        for name in (
            *("coalesce", "greatest", "least", "isnan", "nanvl"),
            *("abs", "bit_count", "bit_get", "bround", "ceil", "degrees", "factorial", "floor"),
            *("pmod", "radians", "rint", "round", "shiftleft", "shiftright", "shiftrightunsigned"),
            *("sign", "sqrt", "width_bucket"),
            *("ascii", "bit_length", "chr", "contains", "endswith", "find_in_set", "initcap"),
            *("length", "levenshtein", "locate", "lower", "lpad", "octet_length", "overlay"),
            *("repeat", "replace", "reverse", "right", "rpad", "split_part", "startswith"),
            *("substring", "substring_index", "translate", "upper"),
            *("base64", "bin", "crc32", "hex", "md5", "sha1", "sha2", "unhex"),
            *("regexp_count", "regexp_extract", "regexp_replace", "regexp_substr", "rlike"),
            *("date_from_unix_date", "make_date", "unix_date"),
        )
    },
    # other names of the same
    "btrim": _same("trim"),
    "ceiling": _same("ceil"),
    "char": _same("chr"),
    "char_length": _same("length"),
    "character_length": _same("length"),
    "getbit": _same("bit_get"),
    "ifnull": Named(_same("coalesce").build, 2, 2),
    "lcase": _same("lower"),
    "len": _same("length"),
    "nvl": Named(_same("coalesce").build, 2, 2),
    "position": _same("locate"),
    "regexp": _same("rlike"),
    "regexp_like": _same("rlike"),
    "sha": _same("sha1"),
    "signum": _same("sign"),
    "substr": _same("substring"),
    "ucase": _same("upper"),
    # operators that have names
    "equal_null": _operator("nseq", 2),
    "isnull": _operator("is_null", 1),
    "mod": _operator("mod", 2),
    "negative": _operator("neg", 1),
    "try_add": _tried("add"),
    "try_divide": _tried("div"),
    "try_mod": _tried("mod"),
    "try_multiply": _tried("mul"),
    "try_subtract": _tried("sub"),
    # what is made of others
    "concat": Named(_concat, 1, math.inf),
    "concat_ws": Named(_concat_ws, 1, math.inf),
    "decode": Named(decode, 3, math.inf),
    "ilike": Named(_ilike, 2, 3),
    "instr": Named(lambda t, node, args: Call("locate", (args[1], args[0])), 2, 2),
    "isnotnull": Named(_isnotnull, 1, 1),
    "left": Named(
        lambda t, node, args: Call("substring", (args[0], Literal(1, pa.int64()), args[1])), 2, 2
    ),
    "like": Named(_like, 2, 3),
    "ltrim": Named(lambda t, node, args: Call("ltrim", tuple(args[::-1])), 1, 2),
    "nullif": Named(nullif, 2, 2),
    "nullifzero": Named(lambda t, node, args: nullif(t, node, (args[0], ZERO)), 1, 1),
    "nvl2": Named(_nvl2, 3, 3),
    "positive": Named(lambda t, node, args: args[0], 1, 1),
    "rtrim": Named(lambda t, node, args: Call("rtrim", tuple(args[::-1])), 1, 2),
    "space": Named(
        lambda t, node, args: Call("repeat", (Literal(" ", pa.string()), args[0])), 1, 1
    ),
    "zeroifnull": Named(lambda t, node, args: Call("coalesce", (args[0], ZERO)), 1, 1),
    # dates and times
    **{
        name: _with(name, "date")
        for name in (
            *("year", "quarter", "month", "day", "dayofyear", "dayofweek", "weekday"),
            *("weekofyear", "dayname", "last_day", "monthname"),
        )
    },
    **{name: _with(name, "clock") for name in ("hour", "minute", "second")},
    "add_months": _with("add_months", "date", None),
    "date_add": _with("date_add", "date", None),
    "date_diff": _with("datediff", "date", "date"),
    "date_format": _with("date_format", "instant", None),
    "date_part": Named(_date_part, 2, 2),
    "date_sub": Named(_date_sub, 2, 2),
    "date_trunc": _with("date_trunc", None, "instant"),
    "dateadd": _with("date_add", "date", None),
    "datediff": _with("datediff", "date", "date"),
    "datepart": Named(_date_part, 2, 2),
    "dayofmonth": _with("day", "date"),
    "from_unixtime": Named(_from_unixtime, 1, 2),
    "make_timestamp": Named(_make_timestamp(None), 6, 6),
    "make_timestamp_ltz": Named(_make_timestamp(True), 6, 6),
    "make_timestamp_ntz": Named(_make_timestamp(False), 6, 6),
    "months_between": _with("months_between", "instant", "instant", None, least=2),
    "next_day": _with("next_day", "date", None),
    "timestamp_micros": _instant("timestamp_micros"),
    "timestamp_millis": _instant("timestamp_millis"),
    "timestamp_seconds": _instant("timestamp_seconds"),
    "to_date": Named(_to_date, 1, 2),
    "to_timestamp": Named(_to_timestamp(None), 1, 2),
    "to_timestamp_ltz": Named(_to_timestamp(True), 1, 2),
    "to_timestamp_ntz": Named(_to_timestamp(False), 1, 2),
    "to_unix_timestamp": Named(_unix_timestamp, 1, 2),
    "trunc": _with("trunc", "date", None),
    "try_to_date": Named(_to_date, 1, 2),
    "try_to_timestamp": Named(_to_timestamp(None), 1, 2),
    "unix_micros": _with("unix_micros", "instant"),
    "unix_millis": _with("unix_millis", "instant"),
    "unix_seconds": _with("unix_seconds", "instant"),
    "unix_timestamp": Named(_unix_timestamp, 1, 2),
    # casts
    **{
        name: _cast(name)
        for name in (
            *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
            *("string", "binary", "date", "timestamp"),
        )
    },
}

INEXACT = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh"),
        *("cot", "csc", "exp", "expm1", "hypot", "ln", "log", "log10", "log1p", "log2", "pow"),
        *("power", "sec", "sin", "sinh", "tan", "tanh"),
    }
)
"""Functions whose last digit depends on the library that computes them."""

AGGREGATES = frozenset(
    name.lower()
    for function in exp.ALL_FUNCTIONS
    if issubclass(function, exp.AggFunc)
    for name in function.sql_names()
) | {"some", "every", "bool_and", "bool_or", "mean", "collect_list", "collect_set"}


def call(t: Translation, node: exp.Expr) -> Expr:
    """Translate a call by name, or raise UnsupportedSql."""
    name = str(node.this).lower()
    found = NAMED.get(name)
    if found is None:
        _refuse(t, node, name)
    for argument in node.expressions:
        if isinstance(argument, exp.Distinct):
            t.source.refuse(f"DISTINCT in {name.upper()}", argument)
    count = len(node.expressions)
    if not found.least <= count <= found.most:
        t.source.refuse(
            f"{name.upper()} with {count} argument{'' if count == 1 else 's'}",
            node,
            remedy=f"it takes {_number(found)}",
        )
    with t.source.placing(node):
        return found.build(t, node, [t.expression(a) for a in node.expressions])


def _number(found: Named) -> str:
    if found.least == found.most:
        return str(found.least)
    if found.most == math.inf:
        return f"{found.least} or more"
    return f"{found.least} to {int(found.most)}"


def _refuse(t: Translation, node: exp.Expr, name: str) -> NoReturn:
    if name in AGGREGATES:
        t.source.refuse(
            f"the aggregate function {name.upper()}",
            node,
            remedy="Plait joins; aggregate the results afterwards",
        )
    if name in INEXACT:
        t.source.refuse(
            f"the function {name.upper()}",
            node,
            remedy=f"its last digit depends on the library that computes it; {BEFORE}",
        )
    import difflib

    near = difflib.get_close_matches(name, NAMED, n=1)
    meant = f"did you mean {near[0]}? If not, " if near else ""
    t.source.refuse(
        f"the function {name.upper()}", node, remedy=f"{meant}{BEFORE}; docs/functions.md lists all"
    )
