"""Random stationary workloads: a query, what is true of its streams, and their rows.

The truth is known because the rows are drawn from it: Poisson arrivals, uniform keys. Graphs are
chains, stars, cycles, cliques over one key, and random ones; bounds are global windows, a window
per stream, or an interval per pair. How many partners a tuple has is drawn too, and reduced until
the work stays within a limit, so that every setting can be run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa

from plait.kernels.jit import Ints
from plait.optimize.costs import DEFAULT
from plait.optimize.model import Model
from plait.optimize.statistics import Statistics
from plait.plan.jtree import mjoin
from plait.query.bounds import Constraint, global_window, stream_windows
from plait.query.query import Field, Query, Stream, make_query
from plait_lab.workloads.drawing import (
    MICROS,
    drawn_tables,
    equal_keys,
    owners,
    uniform_times,
)

GRAPHS = ("chain", "star", "cycle", "clique", "random")
WINDOWS = ("global", "per stream", "intervals")
_FEWEST_PARTNERS = 0.1


@dataclass(frozen=True, slots=True)
class StationarySetting:
    """A query with the truth about its streams."""

    label: str
    query: Query
    rates: tuple[float, ...]
    domains: Mapping[str, int]
    """The number of keys of each key column; columns of one name are one key."""
    batch: float

    @property
    def statistics(self) -> Statistics:
        """What is true."""
        selectivities = {str(e): 1 / self.domains[e.left.name] for e in self.query.equalities}
        rates = dict(zip(self.query.names, self.rates, strict=True))
        return Statistics.of(rates, selectivities, batch=self.batch)

    @property
    def window(self) -> float:
        """The longest bound in seconds."""
        return self.query.bounds.widest / MICROS

    def tables(self, seconds: float, seed: int) -> dict[str, pa.Table]:
        """Rows for so many seconds, in order of time."""

        def draw(i: int, stream: Stream, rng: np.random.Generator) -> dict[str, Ints]:
            rows = int(rng.poisson(self.rates[i] * seconds))
            columns = {"ts": uniform_times(rows, int(seconds * MICROS), rng)}
            for name in stream.schema.names[1:]:
                columns[name] = rng.integers(0, self.domains[name], rows)
            return columns

        return drawn_tables(self.query, [seed], draw)


def key_columns(graph: str, streams: int, random: Random) -> list[list[str]]:
    """The key columns of each stream; equal names join.

    >>> key_columns("chain", 3, Random(1)), key_columns("clique", 3, Random(1))
    ([['k0'], ['k0', 'k1'], ['k1']], [['k0'], ['k0'], ['k0']])
    """
    if graph == "clique":
        return [["k0"] for _ in range(streams)]
    edges = {
        "chain": list(pairwise(range(streams))),
        "star": [(0, i) for i in range(1, streams)],
        "cycle": [*pairwise(range(streams)), (0, streams - 1)],
        "random": random_edges(streams, random, 0.2),
    }[graph]
    return [[f"k{e}" for e, edge in enumerate(edges) if i in edge] for i in range(streams)]


def random_edges(streams: int, random: Random, density: float) -> list[tuple[int, int]]:
    """A random tree, and each further pair with the chance `density`."""
    edges = {(random.randrange(i), i) for i in range(1, streams)}
    edges |= {(i, j) for j in range(streams) for i in range(j) if random.random() < density}
    return sorted(edges)


def natural_join(
    keys: Sequence[Sequence[str]], constraints: Sequence[Constraint], names: Sequence[str] = ()
) -> Query:
    """Streams s0, s1, ... that join naturally over their key columns."""
    called = names or [f"s{i}" for i in range(len(keys))]
    streams = [
        Stream(name, (Field("ts", pa.timestamp("us")), *(Field(k, pa.int64()) for k in own)), "ts")
        for name, own in zip(called, keys, strict=True)
    ]
    having = sorted(owners(called, keys).items())
    conditions = [c for k, streams_of in having for c in equal_keys(k, streams_of)]
    return make_query(streams, conditions, constraints)


def _constraints(kind: str, streams: int, random: Random) -> list[Constraint]:
    if kind == "global":
        return list(global_window(streams, 10 * MICROS))
    if kind == "per stream":
        widths = [random.randint(4, 10) * MICROS for _ in range(streams)]
        return list(stream_windows(widths))
    found = []
    for j in range(1, streams):
        i = random.randrange(j)
        found.append(Constraint(i, j, random.randint(1, 6) * MICROS))
        found.append(Constraint(j, i, random.randint(0, 6) * MICROS))
    return found


def random_setting(
    random: Random, streams: int, *, graph: str = "", window: str = "", work: float = 1e6
) -> StationarySetting:
    """A setting whose mjoin does at most `work` operations in one window's time.

    Most settings come near it, since partners are drawn plentiful and made fewer until they fit.
    """
    shape = graph or random.choice(GRAPHS)
    kind = window or random.choice(WINDOWS)
    keys = key_columns(shape, streams, random)
    query = natural_join(keys, _constraints(kind, streams, random))
    rates = tuple(round(10 ** random.uniform(1.3, 2.5), 1) for _ in range(streams))
    names = sorted({k for own in keys for k in own})
    partners = {k: 10 ** random.uniform(-0.5, 1.0) for k in names}
    seconds = query.bounds.widest / MICROS
    usual = float(np.mean(rates)) * seconds
    while True:
        domains = {k: max(2, round(usual / partners[k])) for k in names}
        setting = StationarySetting(
            f"{shape} of {streams}, {kind}", query, rates, domains, seconds / 5
        )
        model = Model(query, setting.statistics, DEFAULT, draws=256)
        if model.operations(mjoin(query)).counted * seconds <= work:
            return setting
        partners = {k: p * 0.8 for k, p in partners.items()}
        if max(partners.values()) < _FEWEST_PARTNERS:
            rates = tuple(r * 0.8 for r in rates)
            usual *= 0.8
