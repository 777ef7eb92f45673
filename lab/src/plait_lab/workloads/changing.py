"""Streams whose statistics are known at every instant, and change as a benchmark says.

A *regime* is what is true of the streams for a while: how many rows a second each has (Poisson
arrivals) and how each key column is drawn. A feed has one regime per batch, so streams run on
without a gap while regimes change: a flip is two regimes one after the other, a drift is one regime
per batch. Rows are drawn anew for every batch and stream from the seed, so a batch does not depend
on the regimes before it.

Keys are drawn in one of three ways, which can be combined:

- from a domain, all values equally often or low ones more often (`power`);
- a `share` of the rows from the domain, the others with keys that no other row has. The columns of
  a row toss one coin if the regime says `together`: then the rows that match one neighbour are the
  rows that match the other;
- as a function of another column of the row (`of`): the two conditions look like two, and are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from plait.kernels.jit import Ints
from plait.optimize.statistics import Statistics
from plait.query.query import Query, Stream
from plait_lab.workloads.drawing import MICROS, VALUES, drawn_tables, uniform_times

Batches = list[dict[str, pa.Table]]

_OWN_KEYS = 1 << 40


@dataclass(frozen=True, slots=True)
class Key:
    """How a stream draws one of its key columns."""

    domain: int
    """Distinct values that are shared with other streams."""
    share: float = 1.0
    """How many rows have such a value; the others match nothing."""
    power: float = 1.0
    """1 is uniform; with more, low values are more frequent."""
    of: str = ""
    """The column that this one is a function of: its value modulo the domain."""

    def probabilities(self) -> np.ndarray:
        """Of each shared value, among the rows that have one."""
        edges = (np.arange(self.domain + 1) / self.domain) ** (1 / self.power)
        return np.diff(edges)


def agreement(left: Key, right: Key) -> float:
    """The probability that a row of one stream and a row of another have the same value.

    >>> agreement(Key(100), Key(50)), agreement(Key(10, share=0.5), Key(10))
    (0.01, 0.05)
    """
    both = min(left.domain, right.domain)
    equal = float(left.probabilities()[:both] @ right.probabilities()[:both])
    return round(left.share * right.share * equal, 15)


@dataclass(frozen=True, slots=True)
class Regime:
    """What is true for a while.

    `keys` is by column name; an entry for `stream.column` goes before one for the column alone.
    """

    rates: tuple[float, ...]
    """Rows per second of each stream."""
    keys: Mapping[str, Key]
    together: bool = False
    """Whether the key columns of a row have shared values all at once or not at all."""

    def key(self, stream: str, column: str) -> Key:
        """How a stream draws a column."""
        return self.keys.get(f"{stream}.{column}") or self.keys[column]

    def statistics(self, query: Query, batch: float) -> Statistics:
        """The truth about single streams and pairs, which is what planners are told."""
        selectivities = {
            str(e): agreement(
                self.key(e.left.stream, e.left.name), self.key(e.right.stream, e.right.name)
            )
            for e in query.equalities
        }
        return Statistics.of(
            dict(zip(query.names, self.rates, strict=True)), selectivities, batch=batch
        )


def between(first: Regime, last: Regime, part: float) -> Regime:
    """The regime on the way from one to another; rates and domains change by constant factors.

    >>> a, b = Regime((100.0,), {"k": Key(1000)}), Regime((400.0,), {"k": Key(10)})
    >>> middle = between(a, b, 0.5)
    >>> middle.rates, middle.keys["k"].domain
    ((200.0,), 100)
    """
    keys = {
        name: replace(key, domain=max(1, round(_along(key.domain, last.keys[name].domain, part))))
        for name, key in first.keys.items()
    }
    rates = tuple(_along(a, b, part) for a, b in zip(first.rates, last.rates, strict=True))
    return replace(first, rates=rates, keys=keys)


def _along(first: float, last: float, part: float) -> float:
    return round(float(first ** (1 - part) * last**part), 9)


def mean(regimes: Sequence[Regime], query: Query, batch: float) -> Statistics:
    """What is true on average: the means of rates and selectivities."""
    known = [regime.statistics(query, batch) for regime in regimes]

    def average(values: Sequence[float]) -> float:
        return float(np.mean(values))

    return Statistics.of(
        {n: average([s.rates[n].value for s in known]) for n in query.names},
        {t: average([s.selectivities[t].value for s in known]) for t in known[0].selectivities},
        batch=batch,
    )


def make_batches(
    query: Query, regimes: Sequence[Regime], seconds: float, seed: int, start: int = 0
) -> Batches:
    """One batch per regime, each of so many seconds of event time, from `start` microseconds on."""
    length = round(seconds * MICROS)
    return [
        drawn_tables(query, [seed, b], partial(_rows, regime, start + b * length, length))
        for b, regime in enumerate(regimes)
    ]


def _rows(
    regime: Regime, start: int, length: int, number: int, stream: Stream, rng: np.random.Generator
) -> dict[str, Ints]:
    rows = int(rng.poisson(regime.rates[number] * length / MICROS))
    coin = rng.random(rows)
    columns: dict[str, Ints] = {}
    for name in stream.schema.names:
        if name == stream.time:
            columns[name] = start + uniform_times(rows, length, rng)
        elif name == "v":
            columns[name] = rng.integers(0, VALUES, rows)
        else:
            key = regime.key(stream.name, name)
            columns[name] = _draw(key, columns, coin, regime.together, rng)
    return columns


def _draw(
    key: Key,
    columns: Mapping[str, Ints],
    coin: np.ndarray,
    together: bool,
    rng: np.random.Generator,
) -> Ints:
    rows = len(coin)
    if key.of:
        return columns[key.of] % key.domain
    if key.power == 1:
        values = rng.integers(0, key.domain, rows)
    else:
        values = (key.domain * rng.random(rows) ** key.power).astype(np.int64)
    if key.share < 1:
        alone = (coin if together else rng.random(rows)) >= key.share
        values[alone] = _OWN_KEYS + rng.integers(0, _OWN_KEYS, int(alone.sum()))
    return values
