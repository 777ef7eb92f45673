"""Read SELECT lists: the selected expressions, and the names of the result's columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from plait.errors import QueryError
from plait.query.dialect import PLAIN, Dialect
from plait.query.evaluate import type_of
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Output, Stream, stream_index
from plait.query.sql.expressions import Translation, spelled
from plait.query.sql.on_spark import on_spark
from plait.query.sql.source import SqlText, refusing_endless_nesting

_LEAD = "SELECT "


@dataclass(frozen=True, slots=True)
class Item:
    """A selected expression, with its alias if it has one, and as Spark computes it."""

    expr: Expr
    alias: str | None
    meant: Expr


def parse_output(text: str, streams: Sequence[Stream], dialect: Dialect = PLAIN) -> list[Output]:
    """Read the result columns of a select list.

    >>> import pyarrow as pa
    >>> from plait.query.query import Field
    >>> fields = (Field("k", pa.int64()), Field("ts", pa.timestamp("us")))
    >>> streams = [Stream("a", fields, "ts"), Stream("b", fields, "ts")]
    >>> [str(o) for o in parse_output("a.ts, b.ts, a.k * 2 AS double", streams)]
    ['a.ts AS a_ts', 'b.ts AS b_ts', 'a.k * 2 AS double']
    """
    return parse_select([text], streams, dialect)


@refusing_endless_nesting
def parse_select(
    texts: Sequence[str], streams: Sequence[Stream], dialect: Dialect = PLAIN
) -> list[Output]:
    """Read the result columns of several select lists, one after the other."""
    return name_items([item for text in texts for item in _items(text, streams, dialect)])


def _items(text: str, streams: Sequence[Stream], dialect: Dialect) -> Iterator[Item]:
    source = SqlText(text, lead=_LEAD, dialect=dialect)
    statements = source.parse()
    select = statements[0] if statements else None
    if len(statements) > 1:
        source.refuse("a second statement", statements[1], remedy="leave out the semicolon")
    if not isinstance(select, exp.Select) or not select.expressions:
        raise QueryError(f"{text!r} selects nothing", remedy="write for example 'trades.price'")
    for name, argument in select.args.items():
        if name != "expressions" and argument:
            source.refuse(
                f"{name.strip('_').upper()} in a select list",
                source.keyword(name.strip("_").upper()) or 0,
                remedy="list columns and expressions only",
            )
    translation = Translation(source, streams)
    for node in select.expressions:
        yield from items_of(translation, node)


def items_of(translation: Translation, node: exp.Expr) -> Iterator[Item]:
    """Expand one entry of a select list: a star is several columns."""
    source = translation.source
    alias = None
    if isinstance(node, exp.Alias):
        node, alias = node.this, node.alias
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star):
        translation.only(star)
        owner = node.args.get("table") if isinstance(node, exp.Column) else None
        if alias is not None:
            source.refuse("an alias for *", node, remedy="name the columns one by one")
        yield from _star(translation, owner)
        return
    expr = translation.expression(node)
    with source.placing(node):
        type_of(expr, translation.type_of)
        meant = on_spark(expr, translation.type_of, source.dialect)
    yield Item(expr, alias, meant)


def _star(translation: Translation, owner: exp.Expr | None) -> Iterator[Item]:
    streams = translation.streams
    if owner is not None:
        with translation.source.placing(owner):
            name = spelled(owner.name, [s.name for s in streams])
            streams = [streams[stream_index(streams, name)]]
    for stream in streams:
        for field in stream.fields:
            # SELECT * shows a column of JOIN ... USING once.
            if owner is None and translation.merged.get(field.name, stream.name) != stream.name:
                continue
            column = Column(stream.name, field.name)
            yield Item(column, None, column)


def name_items(items: Sequence[Item]) -> list[Output]:
    """Name the items: by alias, column name, or the expression's text.

    Columns that would share a name with another result column are called `stream_column`.
    """
    taken = Counter(_first_name(item) for item in items)
    return [
        Output(f"{item.expr.stream}_{item.expr.name}", item.meant)
        if isinstance(item.expr, Column) and item.alias is None and taken[item.expr.name] > 1
        else Output(_first_name(item), item.meant)
        for item in items
    ]


def _first_name(item: Item) -> str:
    if item.alias is not None:
        return item.alias
    match item.expr:
        case Column(_, name):
            return name
        case Call("field", (_, Literal(str() as name, _))):
            return name
    return str(item.expr)
