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

from plait.kernels.jit import Ints
from plait.query.query import Query, Stream
from plait_lab.workloads.drawing import MICROS, VALUES, drawn_tables

Floats = npt.NDArray[np.float64]


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
    """Rows of every stream in order of time; columns of `domains` have uniform keys below that."""

    def draw(_: int, stream: Stream, rng: np.random.Generator) -> dict[str, Ints]:
        times = (arrivals[stream.name].times(seconds, rng) * MICROS).astype(np.int64)
        return {
            f.name: times
            if f.name == stream.time
            else rng.integers(0, domains.get(f.name, VALUES), len(times))
            for f in stream.fields
        }

    return drawn_tables(query, [seed], draw)
