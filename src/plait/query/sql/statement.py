"""Parse whole queries: SELECT ... FROM ... JOIN ... ON ... WHERE ... WITHIN ...

`WITHIN 10 SECONDS`, the last clause, is Plait's own: all tuples of a result are within that time
of each other, besides what the interval conditions say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from sqlglot import Token, TokenType, exp

from plait.errors import (
    DuplicateName,
    UnknownColumn,
    UnknownStream,
    UnsupportedSql,
    did_you_mean,
)
from plait.query.bounds import global_window
from plait.query.dialect import PLAIN, Dialect
from plait.query.differences import exactly
from plait.query.durations import Duration, positive
from plait.query.expr import Call, Column, Expr
from plait.query.query import Field, Lateness, Query, Stream, make_query
from plait.query.sql.conditions import Part, parts_of, split
from plait.query.sql.expressions import Translation
from plait.query.sql.outputs import items_of, name_items
from plait.query.sql.source import SqlText, refusing_endless_nesting
from plait.query.streams import delays_of, fields_of, time_columns

T = TypeVar("T")
Catalog = Mapping[str, "pa.Schema | Sequence[Field]"]

_CLAUSES = {
    "with_": ("WITH (a common table expression)", "WITH"),
    "hint": ("a hint (/*+ ... */)", "/*+"),
    "distinct": ("DISTINCT", "DISTINCT"),
    "group": ("GROUP BY", "GROUP"),
    "having": ("HAVING", "HAVING"),
    "order": ("ORDER BY", "ORDER"),
    "sort": ("SORT BY", "SORT"),
    "cluster": ("CLUSTER BY", "CLUSTER"),
    "distribute": ("DISTRIBUTE BY", "DISTRIBUTE"),
    "limit": ("LIMIT", "LIMIT"),
    "offset": ("OFFSET", "OFFSET"),
    "qualify": ("QUALIFY", "QUALIFY"),
    "windows": ("WINDOW", "WINDOW"),
    "laterals": ("LATERAL VIEW", "LATERAL"),
    "pivots": ("PIVOT", "PIVOT"),
    "sample": ("TABLESAMPLE", "TABLESAMPLE"),
    "into": ("INTO", "INTO"),
    "locks": ("FOR UPDATE", "FOR"),
}
_JOIN_WORDS = {
    "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL", "ASOF",
    "LATERAL", "STRAIGHT_JOIN",
}  # fmt: skip
_AFTERWARDS = "Plait joins; do it with the results"


@dataclass(frozen=True, slots=True)
class FromTable:
    """A table of the FROM clause under its name in the query."""

    name: str
    table: str
    fields: tuple[Field, ...]
    place: int


def parse_query(
    text: str,
    catalog: Catalog,
    time: Mapping[str, str] | None = None,
    watermark: Duration | Mapping[str, Duration] | None = None,
) -> Query:
    """Parse a SELECT statement over tables whose columns `catalog` lists.

    `time` names the event-time column and `watermark` the delay, by stream or by table.

    >>> row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    >>> query = parse_query("SELECT a.k FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS",
    ...                     {"a": row, "b": row})
    >>> query.names, query.bounds.uniform
    (('a', 'b'), 5000000)
    """
    return parse_statement(text, catalog, time, watermark)[0]


@refusing_endless_nesting
def parse_statement(
    text: str,
    catalog: Catalog,
    time: Mapping[str, str] | None = None,
    watermark: Duration | Mapping[str, Duration] | None = None,
    lateness: Lateness = "own",
    dialect: Dialect = PLAIN,
) -> tuple[Query, dict[str, str]]:
    """Parse a SELECT statement; return the query and the table of each stream."""
    source = SqlText(text, dialect=dialect)
    within, body = _within(source)
    select = _select(source, body)
    tables = list(_tables(source, select, catalog))
    loose = [Stream(t.name, t.fields, "") for t in tables]
    merged, parts = _conditions(source, select, loose)
    columns = time_columns(
        [(t.name, t.fields) for t in tables],
        _by_stream(tables, time or {}),
        [expr for part in parts for expr in part.conjuncts],
    )
    shared = watermark if not isinstance(watermark, Mapping) else _by_stream(tables, watermark)
    delays = delays_of([t.name for t in tables], shared)
    streams = [
        Stream(t.name, t.fields, column, delays[t.name])
        for t, column in zip(tables, columns, strict=True)
    ]
    conditions, bounds = split(source, parts, streams)
    if within is not None:
        windows = global_window(len(streams), within)
        bounds += windows
        conditions += exactly(windows, streams)
    translation = Translation(source, streams, merged)
    items = [item for node in select.expressions for item in items_of(translation, node)]
    query = make_query(streams, conditions, bounds, name_items(items), lateness)
    return query, {t.name: t.table for t in tables}


def _within(source: SqlText) -> tuple[int | None, str]:
    """Split off the WITHIN clause: its width, and the text without it."""
    tokens = list(source.outside())
    for i, token in enumerate(tokens[:-1]):
        if token.text.upper() == "WITHIN" and token.token_type == TokenType.VAR:
            following = tokens[i + 1]
            if following.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH) or (
                following.text.upper() == "INTERVAL"
            ):
                return _width(source, token, tokens[i + 1 :]), source.text[: token.start]
    return None, source.text


def _width(source: SqlText, within: Token, tokens: Sequence[Token]) -> int:
    for token in tokens:
        if token.token_type in (TokenType.WHERE, TokenType.JOIN, TokenType.ON) or any(
            token.text.upper().startswith(word) for _, word in _CLAUSES.values()
        ):
            source.refuse(
                f"{token.text.upper()} after WITHIN",
                token.start,
                remedy="WITHIN is the last clause",
            )
    written = source.text[within.end + 1 :]
    written = re.sub(r"--[^\n]*|/\*.*?\*/", " ", written, flags=re.DOTALL).strip().rstrip("; \n\t")
    written = re.sub(r"(?i)^interval\b", "", written).replace("'", " ").replace('"', " ")
    with source.placing(within.start):
        return positive(re.sub(r"^-\s*", "-", written.strip()), what="WITHIN")


def _select(source: SqlText, body: str) -> exp.Select:
    if not source.tokens:
        raise UnsupportedSql(
            "the query is empty", line=1, column=1, remedy="write SELECT ... FROM ... JOIN ..."
        )
    first = source.tokens[0]
    if first.token_type == TokenType.WITH:
        source.refuse("WITH (a common table expression)", first.start, remedy="join tables only")
    if first.token_type == TokenType.L_PAREN:
        source.refuse("a query in parentheses", first.start, remedy="leave them out")
    if first.token_type != TokenType.SELECT:
        source.refuse(f"{first.text.upper()}", first.start, remedy="write a SELECT statement")
    for token, following in zip(source.tokens, source.tokens[1:], strict=False):
        if token.token_type == TokenType.SEMICOLON and following.token_type != TokenType.SEMICOLON:
            source.refuse("a second statement", following.start, remedy="run them one by one")
    select = source.parse(body)[0]
    if isinstance(select, exp.SetOperation):
        word = type(select).__name__.upper()
        source.refuse(word, source.keyword(word) or 0, remedy="run the queries one by one")
    if not isinstance(select, exp.Select):
        source.refuse(select.key.upper(), select, remedy="write a SELECT statement")
    for name, argument in select.args.items():
        if argument and name not in ("expressions", "from_", "joins", "where"):
            spoken, word = _CLAUSES.get(name, (name.strip("_").upper(), name.strip("_").upper()))
            remedy = "leave it out" if name == "hint" else _AFTERWARDS
            source.refuse(spoken, _clause_place(source, word), remedy=remedy)
    if not select.expressions:
        source.refuse("SELECT without columns", first.start, remedy="write SELECT *")
    if select.args.get("from_") is None:
        source.refuse("SELECT without FROM", first.start, remedy="name the tables to join")
    return select


def _clause_place(source: SqlText, word: str) -> int:
    place = source.keyword(word)
    return place if place is not None else max(source.text.upper().find(word), 0)


def _tables(source: SqlText, select: exp.Select, catalog: Catalog) -> Iterator[FromTable]:
    seen: dict[str, FromTable] = {}
    nodes = [select.args["from_"].this]
    for join in select.args.get("joins") or []:
        _check_join(source, join)
        nodes.append(join.this)
    for node in nodes:
        table = _table(source, node, catalog)
        if table.name in seen:
            with source.placing(table.place):
                raise DuplicateName(
                    f"two tables are called {table.name!r}",
                    remedy=f"give one an alias: {table.table} AS {table.name}2",
                )
        seen[table.name] = table
        yield table


def _check_join(source: SqlText, join: exp.Expr) -> None:
    first, words = _join_words(source, source.offset(join.this))
    spoken = " ".join(words) if words and words != [","] else "JOIN"
    plain = words in ([","], ["JOIN"], ["INNER", "JOIN"])
    kind = join.args.get("kind") or ""
    if not plain or join.args.get("side") or join.args.get("method"):
        if isinstance(join.this, exp.Lateral | exp.Unnest):
            source.refuse(f"{join.this.key.upper()}", first)
        source.refuse(
            spoken if not plain else f"{kind} JOIN".strip(),
            first,
            remedy="only inner joins: JOIN ... ON, or a comma with WHERE",
        )
    for name, argument in join.args.items():
        if argument and name not in ("this", "on", "using", "kind"):
            source.refuse(f"{spoken} with {name.strip('_').upper()}", first)


def _join_words(source: SqlText, place: int) -> tuple[int, list[str]]:
    """Read the words before a joined table, and where they begin."""
    end = source.token_at(place)
    while end > 0 and source.tokens[end - 1].token_type == TokenType.L_PAREN:
        end -= 1
    begin = end
    while begin > 0 and source.tokens[begin - 1].text.upper() in _JOIN_WORDS:
        begin -= 1
    if begin == end and end > 0 and source.tokens[end - 1].token_type == TokenType.COMMA:
        begin -= 1
    words = [t.text.upper() for t in source.tokens[begin:end]]
    return source.tokens[begin].start, words


def _table(source: SqlText, node: exp.Expr, catalog: Catalog) -> FromTable:
    place = source.offset(node)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
        source.refuse("a join in parentheses", place, remedy="leave the parentheses out")
    if isinstance(node, exp.Subquery | exp.Select):
        source.refuse("a subquery", place, remedy="join tables only")
    if isinstance(node, exp.Lateral | exp.Unnest | exp.Values):
        source.refuse(node.key.upper(), place, remedy="join tables only")
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        source.refuse("a table function", place, remedy="join tables only")
    for name, argument in node.args.items():
        if argument and name not in ("this", "alias", "db", "catalog"):
            spoken, word = _CLAUSES.get(name, (name.strip("_").upper(), name.strip("_").upper()))
            found = source.keyword(word)
            source.refuse(spoken, place if found is None else found)
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        source.refuse("an alias with column names", alias, remedy="rename the columns with AS")
    written = ".".join(part.name for part in node.parts)
    known = [k for k in catalog if k.lower() == written.lower()]
    table = written if written in catalog else known[0] if len(known) == 1 else None
    if table is None:
        with source.placing(place):
            raise UnknownStream(
                f"there is no table {written!r}", remedy=did_you_mean(written, catalog)
            )
    name = alias.name if alias is not None else node.name
    return FromTable(name or node.name, table, fields_of(catalog[table]), place)


def _conditions(
    source: SqlText, select: exp.Select, streams: Sequence[Stream]
) -> tuple[dict[str, str], list[Part]]:
    """Collect the columns of USING with their stream, and every condition."""
    merged: dict[str, str] = {}
    parts: list[Part] = []
    for i, join in enumerate(select.args.get("joins") or [], start=1):
        for column in join.args.get("using") or []:
            name, place = column.name, source.offset(column)
            with source.placing(place):
                first = merged.get(name) or _owner(streams[:i], name)
                streams[i].type_of(name)
            merged[name] = first
            equal: Expr = Call("eq", (Column(first, name), Column(streams[i].name, name)))
            parts.append(Part(equal, place))
        condition = join.args.get("on")
        if condition is not None:
            # ON sees the tables up to its own, but a bare name may not mean another one later.
            parts += parts_of(Translation(source, streams, merged), condition)
    where = select.args.get("where")
    if where is not None:
        parts += parts_of(Translation(source, streams, merged), where.this)
    return merged, parts


def _owner(streams: Sequence[Stream], name: str) -> str:
    for stream in streams:
        if any(f.name == name for f in stream.fields):
            return stream.name
    known = dict.fromkeys(f.name for s in streams for f in s.fields)
    raise UnknownColumn(
        f"no table before JOIN has a column {name!r}", remedy=did_you_mean(name, known)
    )


def _by_stream(tables: Sequence[FromTable], given: Mapping[str, T]) -> dict[str, T]:
    """Return settings by stream; one given for a table holds for each of its streams."""
    names = [t.name for t in tables]
    for name in given:
        if name not in names and all(t.table != name for t in tables):
            raise UnknownStream(
                f"there is no stream {name!r} in the query", remedy=did_you_mean(name, names)
            )
    by_table = {t.name: given[t.table] for t in tables if t.table in given}
    return by_table | {name: value for name, value in given.items() if name in names}
