"""What all random workloads share: a generator for each stream, and tables of what was drawn.

Streams are drawn apart: whatever one draws changes nothing in the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from plait.kernels.jit import Ints
from plait.query.expr import Call, Column, Expr
from plait.query.query import Query, Stream

MICROS = 1_000_000
"""In a second."""
VALUES = 1 << 40
"""Values that no key is joined by are drawn below this."""

Draw = Callable[[int, Stream, np.random.Generator], Mapping[str, Ints]]
"""From the number of a stream, the stream and its generator to its columns; times in microseconds.
"""


def drawn_tables(query: Query, seed: Sequence[int], draw: Draw) -> dict[str, pa.Table]:
    """A table for each stream, from a generator that is seeded with `seed` and its number.

    >>> from plait.testing.examples import clique
    >>> found = drawn_tables(clique(2), [1], lambda _, stream, rng: {
    ...     f.name: rng.integers(0, 9, 3) for f in stream.fields})
    >>> [table.num_rows for table in found.values()], found["a"].equals(found["b"])
    ([3, 3], False)
    """
    found = {}
    for i, stream in enumerate(query.streams):
        columns = draw(i, stream, np.random.default_rng([*seed, i]))
        arrays = [pa.array(columns[f.name]).cast(f.type) for f in stream.fields]
        found[stream.name] = pa.table(arrays, schema=stream.schema)
    return found


def uniform_times(rows: int, length: int, rng: np.random.Generator) -> Ints:
    """So many event times below `length` microseconds, ascending."""
    return np.sort(rng.integers(0, length, rows))


def owners(names: Iterable[str], keys: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """The streams that have each key column, in the order in which the columns appear.

    >>> owners("ab", [["k"], ["l", "k"]])
    {'k': ['a', 'b'], 'l': ['b']}
    """
    found: dict[str, list[str]] = {}
    for name, own in zip(names, keys, strict=True):
        for key in own:
            found.setdefault(key, []).append(name)
    return found


def equal_keys(key: str, streams: Sequence[str]) -> list[Expr]:
    """That a key column is the same in all streams that have it.

    >>> [str(condition) for condition in equal_keys("k", "abc")]
    ['a.k = b.k', 'b.k = c.k']
    """
    return [
        Call("eq", (Column(left, key), Column(right, key))) for left, right in pairwise(streams)
    ]
