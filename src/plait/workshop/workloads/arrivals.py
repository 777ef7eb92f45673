"""Streams that arrive at random, from a seed: when tuples come, and which keys they have.

>>> rng = np.random.default_rng(1)
>>> len(Poisson(10.0).times(100.0, rng)), len(Regular(10.0).times(100.0, rng))
(1001, 1000)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.query.query import Query

Floats = npt.NDArray[np.float64]
_SECOND = 1_000_000


class ArrivalProcess(Protocol):
    """When the tuples of a stream come."""

    def times(self, seconds: float, rng: np.random.Generator) -> Floats:
        """The times of so many seconds, ascending from 0."""


@dataclass(frozen=True, slots=True)
class Poisson:
    """Exponential gaps: `rate` tuples per second on average."""

    rate: float

    def times(self, seconds: float, rng: np.random.Generator) -> Floats:
        """As many as a Poisson distribution says, anywhere."""
        return np.sort(rng.uniform(0.0, seconds, rng.poisson(self.rate * seconds)))


@dataclass(frozen=True, slots=True)
class Regular:
    """A tuple every `1 / rate` seconds."""

    rate: float

    def times(self, seconds: float, rng: np.random.Generator) -> Floats:
        """The first one after half a gap."""
        return (np.arange(int(seconds * self.rate), dtype=np.float64) + 0.5) / self.rate


@dataclass(frozen=True, slots=True)
class Bursts:
    """Poisson arrivals that come only in the first `share` of each `period`, then silence.

    The average rate is `rate`.
    """

    rate: float
    period: float
    share: float

    def times(self, seconds: float, rng: np.random.Generator) -> Floats:
        """Poisson arrivals, pressed together."""
        even = Poisson(self.rate).times(seconds, rng)
        periods, phases = np.divmod(even, self.period)
        return periods * self.period + phases * self.share


def tables(
    query: Query,
    arrivals: Mapping[str, ArrivalProcess],
    domains: Mapping[str, int],
    seconds: float,
    seed: int,
) -> dict[str, pa.Table]:
    """Rows of every stream in order of time; columns of `domains` have uniform keys below that.

    Streams are drawn apart: the rate of one changes nothing in the others.
    """
    found = {}
    for i, stream in enumerate(query.streams):
        rng = np.random.default_rng([seed, i])
        times = (arrivals[stream.name].times(seconds, rng) * _SECOND).astype(np.int64)
        columns: dict[str, pa.Array] = {}
        for f in stream.fields:
            if f.name == stream.time:
                columns[f.name] = pa.array(times).cast(f.type)
            else:
                values = rng.integers(0, domains.get(f.name, 1 << 40), len(times))
                columns[f.name] = pa.array(values).cast(f.type)
        found[stream.name] = pa.table(columns)
    return found
