"""Small queries that the examples and tests of plans use: one from life, and the usual graphs.

The graphs are the extremes of what a plan may do: in a *clique* every join is legal, in a *chain*
only neighbours may meet, a *star* has one stream in the middle of all, and a *cycle* is a chain
that closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from string import ascii_lowercase

import pyarrow as pa

from plait.query.bounds import global_window
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Field, Output, Query, Stream, make_query

SECOND = 1_000_000


def _stream(name: str, delay: int, **types: pa.DataType) -> Stream:
    fields = [Field("ts", pa.timestamp("us")), *(Field(k, t) for k, t in types.items())]
    return Stream(name, tuple(fields), "ts", delay)


trades_quotes_news = make_query(
    (
        _stream("trades", 2 * SECOND, sym=pa.string(), price=pa.float64(), size=pa.int64()),
        _stream("quotes", 2 * SECOND, sym=pa.string(), bid=pa.float64(), ask=pa.float64()),
        _stream("news", 5 * SECOND, sym=pa.string(), headline=pa.string()),
    ),
    (
        Call("eq", (Column("trades", "sym"), Column("quotes", "sym"))),
        Call("eq", (Column("quotes", "sym"), Column("news", "sym"))),
        Call("gt", (Column("trades", "price"), Column("quotes", "ask"))),
        Call("ge", (Column("trades", "size"), Literal(100, pa.int64()))),
    ),
    global_window(3, 10 * SECOND),
    (
        Output("sym", Column("trades", "sym")),
        Output("price", Column("trades", "price")),
        Output("bid", Column("quotes", "bid")),
        Output("headline", Column("news", "headline")),
    ),
)
"""Three streams that share one key, a residual over two of them and one over a single stream."""


def keyed(*keys: str, width: int = 10 * SECOND) -> Query:
    """A query whose streams a, b, ... have the key columns that the letters of each word name.

    Columns of the same name are equal in all streams that have them.

    >>> keyed("x", "xy", "y").equalities
    (Equality(left=Column(stream='a', name='x'), right=Column(stream='b', name='x')),
     Equality(left=Column(stream='b', name='y'), right=Column(stream='c', name='y')))
    """
    streams = [
        _stream(name, 0, **{k: pa.int64() for k in word})
        for name, word in zip(ascii_lowercase, keys, strict=False)
    ]
    conditions: list[Expr] = []
    for letter in sorted(set("".join(keys))):
        owners = [s.name for s, word in zip(streams, keys, strict=True) if letter in word]
        conditions += [
            Call("eq", (Column(left, letter), Column(right, letter)))
            for left, right in pairwise(owners)
        ]
    return make_query(streams, conditions, global_window(len(keys), width))


def clique(streams: int) -> Query:
    """All streams share one key.

    >>> sorted(clique(4).graph.neighbours(0))
    [1, 2, 3]
    """
    return keyed(*["k"] * streams)


def chain(streams: int) -> Query:
    """Each stream shares a key with the next one.

    >>> sorted(chain(4).graph.neighbours(1))
    [0, 2]
    """
    return _edges(streams, list(pairwise(range(streams))))


def star(streams: int) -> Query:
    """The first stream shares a key with each of the others.

    >>> sorted(star(4).graph.neighbours(0)), sorted(star(4).graph.neighbours(1))
    ([1, 2, 3], [0])
    """
    return _edges(streams, [(0, i) for i in range(1, streams)])


def cycle(streams: int) -> Query:
    """A chain whose last stream shares a key with the first.

    >>> sorted(cycle(4).graph.neighbours(0))
    [1, 3]
    """
    return _edges(streams, [*pairwise(range(streams)), (0, streams - 1)])


def _edges(streams: int, edges: Sequence[tuple[int, int]]) -> Query:
    letters = [
        "".join(ascii_lowercase[e] for e, edge in enumerate(edges) if i in edge)
        for i in range(streams)
    ]
    return keyed(*letters)
