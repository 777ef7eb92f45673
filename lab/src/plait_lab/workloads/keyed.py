"""Streams and queries that several benchmarks share: integer keys, steady Poisson arrivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from plait.kernels.jit import Ints
from plait.query.bounds import global_window
from plait.query.expr import Column
from plait.query.query import Field, Output, Query, Stream, make_query
from plait_lab.workloads.drawing import (
    MICROS,
    VALUES,
    drawn_tables,
    equal_keys,
    owners,
    uniform_times,
)

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
    having = owners([stream.name for stream in streams], keys)
    conditions = [c for k, names in having.items() for c in equal_keys(k, names)]
    select = [Output(k, Column(names[0], k)) for k, names in having.items()]
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

    def draw(_: int, stream: Stream, rng: np.random.Generator) -> dict[str, Ints]:
        times = uniform_times(rows, rows * MICROS // RATE, rng)
        if share:
            delays = np.where(rng.random(rows) < share, rng.integers(0, disorder, rows), 0)
            times = times[np.argsort(times + delays, kind="stable")]
        names = stream.schema.names
        sizes = domain if isinstance(domain, Mapping) else dict.fromkeys(names, domain)
        # All columns are drawn as keys, also those that are none: the same seed, the same rows.
        columns = {name: rng.integers(0, sizes.get(name, 1), rows) for name in names}
        return columns | {"ts": times, "v": rng.integers(0, VALUES, rows)}

    return drawn_tables(query, [seed], draw)
