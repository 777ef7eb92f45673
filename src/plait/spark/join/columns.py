"""Write Spark's Columns as SQL text: `F.col("trades.sym") == F.col("quotes.sym")`.

A Column of a classic session is a tree in the JVM. It is written as SQL here, and parsed like any
other SQL. A Column without such a form is refused, and so are those of Spark Connect, whose tree is
not public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from plait.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import Column

_INFIX = {
    "=": "=",
    "==": "=",
    "<=>": "<=>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "and": "AND",
    "or": "OR",
    "+": "+",
    "-": "-",
    "*": "*",
    "/": "/",
    "%": "%",
    "&": "&",
    "|": "|",
    "^": "^",
    "like": "LIKE",
    "ilike": "ILIKE",
    "rlike": "RLIKE",
    "||": "||",
}
_PREFIX = {"not": "NOT", "!": "NOT", "negative": "-", "~": "~"}
_SUFFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_REMEDY = 'write it as text, for example "trades.sym = quotes.sym"'


def column_text(column: Column) -> str:
    """Write the expression of a Column as SQL, or raise QueryError."""
    tree = getattr(column, "_jc", None)
    if tree is None:
        raise QueryError("a Column of Spark Connect cannot be read", remedy=_REMEDY)
    return _text(tree.node())


def _text(node: Any) -> str:
    kind = node.getClass().getSimpleName()
    if kind == "ExpressionColumnNode":  # of a DataFrame
        raise QueryError(
            f"the column {node.sql()} does not say of which stream it is",
            remedy='write F.col("stream.column") instead of a column of a DataFrame',
        )
    write = _KINDS.get(kind)
    if write is None:
        raise QueryError(
            f"{node.sql()} is a {kind} of Spark, which Plait cannot read", remedy=_REMEDY
        )
    return write(node)


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]


def _name(part: object) -> str:
    """A name in backquotes, which may be a word of SQL."""
    return "`" + str(part).replace("`", "``") + "`"


def _attribute(node: Any) -> str:
    return ".".join(_name(part) for part in _listed(node.nameParts()))


def _literal(node: Any) -> str:
    value, known = node.value(), node.dataType()
    if value is None:
        return "NULL"
    text = _constant(value)
    if text is None:
        raise QueryError(f"the constant {node.sql()} cannot be read", remedy=_REMEDY)
    return f"CAST({text} AS {known.get().sql()})" if known.isDefined() else text


def _constant(value: object) -> str | None:
    match value:
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
    return None


def _function(node: Any) -> str:
    name, arguments = str(node.functionName()), [_text(a) for a in _listed(node.arguments())]
    low = name.lower()
    if low in _INFIX and len(arguments) == 2:
        return f"({arguments[0]} {_INFIX[low]} {arguments[1]})"
    if low in _PREFIX and len(arguments) == 1:
        return f"({_PREFIX[low]} {arguments[0]})"
    if low in _SUFFIX and len(arguments) == 1:
        return f"({arguments[0]} {_SUFFIX[low]})"
    if low == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    if not name.replace("_", "").isalnum():
        raise QueryError(f"the function {name} of Spark cannot be read", remedy=_REMEDY)
    return f"{name}({', '.join(arguments)})"


def _case(node: Any) -> str:
    whens = "".join(
        f" WHEN {_text(branch._1())} THEN {_text(branch._2())}"
        for branch in _listed(node.branches())
    )
    other = node.otherwise()
    return f"CASE{whens}" + (f" ELSE {_text(other.get())}" if other.isDefined() else "") + " END"


def _alias(node: Any) -> str:
    return f"{_text(node.child())} AS {_name(node.name().apply(0))}"


_KINDS: Mapping[str, Callable[[Any], str]] = {
    "Alias": _alias,
    "CaseWhenOtherwise": _case,
    "Cast": lambda node: f"CAST({_text(node.child())} AS {node.dataType().sql()})",
    "Literal": _literal,
    "SqlExpression": lambda node: f"({node.expression()})",
    "UnresolvedAttribute": _attribute,
    "UnresolvedFunction": _function,
}
