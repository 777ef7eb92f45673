"""Queries over a few streams, and rows for them, for the rounds of a campaign on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random

import pyarrow as pa

from plait.query.bounds import Constraint, global_window, stream_windows
from plait.query.expr import Call, Column, Expr
from plait.query.query import Field, Output, Query, Stream, make_query

Row = dict[str, object]
Batch = Mapping[str, Sequence[Row]]

SECOND = 1_000_000
STEP = 10 * SECOND
"""How far event time gets in a batch."""

_EMPTY = 0.15
"""The share of batches in which no stream has a row."""

_ROWS = {2: 120, 3: 60, 4: 24}
"""The most rows of a stream in a batch, by the number of streams: results multiply."""

_KEY_TYPES: tuple[pa.DataType, ...] = (
    *[pa.string()] * 6,
    *[pa.int64()] * 2,
    pa.int32(),
    pa.float64(),
    pa.decimal128(12, 2),
    pa.date32(),
    pa.binary(),
    pa.timestamp("us"),
)
"""What keys are; mostly strings, which are encoded and forgotten again."""


def drawn_query(chance: Random, size: int) -> Query:
    """Streams that share one key, or a chain of them, or a star, within windows of any kind."""
    names = "abcd"[:size]
    shape = chance.choice(("one", "one", "chain", "star"))
    keys: dict[str, dict[str, pa.DataType]] = {name: {} for name in names}
    equal: list[Expr] = []
    type_ = chance.choice(_KEY_TYPES)
    for i, right in enumerate(names[1:], 1):
        left = names[0] if shape in ("one", "star") else names[i - 1]
        column = "k" if shape == "one" else f"k{i}"
        if shape != "one":
            type_ = chance.choice(_KEY_TYPES)
        keys[left][column] = keys[right][column] = type_
        equal.append(Call("eq", (Column(left, column), Column(right, column))))
    zone = chance.choice((None, None, "UTC"))
    streams = []
    for name in names:
        fields = [Field("ts", pa.timestamp("us", zone)), Field("id", pa.int64())]
        fields += [Field(k, t) for k, t in keys[name].items()] + [Field("v", pa.int64())]
        streams.append(Stream(name, tuple(fields), "ts", chance.choice((0, 2, 5, 12)) * SECOND))
    if chance.random() < 0.4:
        compare = chance.choice(("le", "ne", "gt"))
        equal.append(Call(compare, (Column(names[0], "v"), Column(names[-1], "v"))))
    select = [Output(f"{name}_id", Column(name, "id")) for name in names]
    select += [Output("ts", Column(names[0], "ts"))]
    select += [Output(f"key_{k}", Column(names[0], k)) for k in keys[names[0]]]
    return make_query(streams, equal, _bounds(chance, size), select)


def _bounds(chance: Random, size: int) -> tuple[Constraint, ...]:
    def width() -> int:
        return chance.choice((2, 5, 8, 15)) * SECOND

    kind = chance.choice(("global", "global", "streams", "intervals"))
    if kind == "global":
        return global_window(size, width())
    if kind == "streams":
        return stream_windows([width() for _ in range(size)])
    pairs = [(chance.randrange(j), j) for j in range(1, size)]
    return tuple(
        c for i, j in pairs for c in (Constraint(i, j, width()), Constraint(j, i, width()))
    )


def drawn_batches(chance: Random, query: Query, count_: int) -> list[Batch]:
    """Rows out of order, some too late, with keys that come and go, ties, nulls and silence."""
    tick = chance.choice((1, SECOND // 10, SECOND))
    domain, drift = chance.choice((1, 3, 8, 20)), chance.choice((0, 1, 5, 20))
    most = _ROWS[len(query.streams)] if domain > 1 else 12
    hot, nulls = chance.choice((0.0, 0.3)), chance.choice((0.0, 0.04))
    disorder = chance.choice((0, 3, 8, 25)) * SECOND
    ids = dict.fromkeys(query.names, 0)
    found: list[Batch] = []
    for b in range(count_):
        batch: dict[str, list[Row]] = {}
        for stream in query.streams:
            silent = chance.random() < 0.08
            rows = batch[stream.name] = []
            for _ in range(0 if silent else chance.randint(0, most)):
                moment = b * STEP + chance.randint(-disorder, STEP)
                row: Row = {"ts": moment // tick * tick, "id": ids[stream.name]}
                ids[stream.name] += 1
                for f in stream.fields[2:]:
                    number = b * drift + (0 if chance.random() < hot else chance.randrange(domain))
                    row[f.name] = _value(chance, f.type, number) if f.name != "v" else number % 5
                for name in row:
                    if name != "id" and chance.random() < nulls:
                        row[name] = None
                rows.append(row)
        found.append(batch)
    return found


def _value(chance: Random, type_: pa.DataType, number: int) -> object:
    """The key with this number."""
    if type_ == pa.string():
        return f"kéy-{number}" if number % 3 else "" if number == 0 else f"k{number}"
    if type_ == pa.binary():
        return number.to_bytes(3, "big")
    if type_ == pa.float64():
        return {0: chance.choice((0.0, -0.0)), 1: float("nan")}.get(number, number / 4)
    if pa.types.is_decimal(type_):
        return Decimal(number) / 4
    return number * SECOND if pa.types.is_timestamp(type_) else number


def with_empty_batches(batches: Sequence[Batch], chance: Random) -> list[Batch]:
    """The same batches; now and then there is one more, in which no stream has a row."""
    found: list[Batch] = []
    for batch in batches:
        while chance.random() < _EMPTY:
            found.append(dict.fromkeys(batch, ()))
        found.append(batch)
    return found
