"""Streams and queries that several benchmarks share: integer keys, steady Poisson arrivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from plait.query.bounds import global_window
from plait.query.expr import Call, Column, Expr
from plait.query.query import Field, Output, Query, Stream, make_query

RATE = 1_000
"""Rows per second of each stream."""


def keyed_query(keys: Sequence[Sequence[str]], window: int, delay: int = 0) -> Query:
    """Streams s0, s1, ... joined naturally over the key columns they share.

    `keys[i]` names the key columns of stream i. Results have each key once, and the time and value
    of every stream.
    """
    streams = [
        Stream(
            f"s{i}",
            (
                *(Field(k, pa.int64()) for k in own),
                Field("ts", pa.timestamp("us")),
                Field("v", pa.int64()),
            ),
            "ts",
            delay,
        )
        for i, own in enumerate(keys)
    ]
    owners: dict[str, list[str]] = {}
    for stream, own in zip(streams, keys, strict=True):
        for k in own:
            owners.setdefault(k, []).append(stream.name)
    conditions: list[Expr] = [
        Call("eq", (Column(left, k), Column(right, k)))
        for k, names in owners.items()
        for left, right in pairwise(names)
    ]
    select = [Output(k, Column(names[0], k)) for k, names in owners.items()]
    for stream in streams:
        select += [Output(f"{stream.name}_{c}", Column(stream.name, c)) for c in ("ts", "v")]
    return make_query(streams, conditions, global_window(len(streams), window), select)


def keyed_tables(
    query: Query,
    rows: int,
    domain: int | Mapping[str, int],
    seed: int,
    *,
    disorder: int = 0,
    share: float = 0.0,
) -> dict[str, pa.Table]:
    """`rows` rows a stream at `RATE`, keys uniform over `domain`, in order of arrival.

    The domain may differ from key column to key column. A `share` of the rows arrives up to
    `disorder` microseconds after its event time.
    """
    tables = {}
    for i, stream in enumerate(query.streams):
        rng = np.random.default_rng([seed, i])
        times = np.sort(rng.integers(0, rows * 1_000_000 // RATE, rows))
        if share:
            delays = np.where(rng.random(rows) < share, rng.integers(0, disorder, rows), 0)
            times = times[np.argsort(times + delays, kind="stable")]
        sizes = (
            domain if isinstance(domain, Mapping) else dict.fromkeys(stream.schema.names, domain)
        )
        columns: dict[str, pa.Array] = {
            f.name: pa.array(rng.integers(0, sizes.get(f.name, 1), rows)) for f in stream.fields
        }
        columns["ts"] = pa.array(times).cast(pa.timestamp("us"))
        columns["v"] = pa.array(rng.integers(0, 1 << 40, rows))
        tables[stream.name] = pa.table(columns)
    return tables
