"""The random settings of section 6: rates, joins and selectivities as the paper draws them.

*As in the paper:* rates in [1, 100] tuples per second, joins at random, selectivities in (0, 1),
CPU_avail = 1 s, and the costs of table 3. *The paper does not say* how many joins there are, how
long the window is, or how much memory there is. Here the joins are a random tree and each further
pair with a chance that is drawn per setting. The window is the one at which CPU_avail lies at a
random place (on a logarithmic scale) between the CPU of the mjoin and of a greedily found binary
tree, or somewhat beyond either; the memory lies at another such place between theirs. So each of
the four answers occurs at every number of streams, and most settings are hard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any

from plait.optimize.budget import Budget
from plait.optimize.costs import PAPER
from plait.optimize.model import Model
from plait.optimize.search.binary_greedy import by_pairs
from plait.optimize.search.candidate import Joins, inner
from plait.optimize.statistics import Statistics
from plait.query.bounds import Constraint, global_window
from plait.query.query import Query
from plait_lab.workloads.stationary import natural_join, random_edges

CPU_AVAILABLE = 1.0
_HALVINGS = 20
_BEYOND = 0.3


@dataclass(frozen=True, slots=True)
class QualifiedSetting:
    """One random setting; `to_dict` and `from_dict` make it a fixture."""

    rates: tuple[float, ...]
    edges: tuple[tuple[int, int], ...]
    selectivities: tuple[float, ...]
    window: float
    memory: float

    @property
    def query(self) -> Query:
        """One key per join."""
        width = max(1, round(self.window * 1e6))
        return natural_join(self._keys(), global_window(len(self.rates), width))

    def _keys(self) -> list[list[str]]:
        return [
            [f"k{e:03d}" for e, edge in enumerate(self.edges) if i in edge]
            for i in range(len(self.rates))
        ]

    def with_intervals(self, seed: int) -> Query:
        """The same joins, but every joined pair has bounds of its own about the window."""
        random = Random(f"{seed}/intervals")
        bounds = [
            Constraint(a, b, max(1, round(self.window * 1e6 * random.uniform(0.5, 1.5))))
            for one, other in self.edges
            for a, b in ((one, other), (other, one))
        ]
        return natural_join(self._keys(), bounds)

    @property
    def statistics(self) -> Statistics:
        """The rates and selectivities by name."""
        rates = {f"s{i}": r for i, r in enumerate(self.rates)}
        chances = {
            f"s{a}.k{e:03d} = s{b}.k{e:03d}": s
            for e, ((a, b), s) in enumerate(zip(self.edges, self.selectivities, strict=True))
        }
        return Statistics.of(rates, chances, batch=1.0)

    @property
    def budget(self) -> Budget:
        """CPU_avail and the memory in tuples."""
        return Budget(CPU_AVAILABLE, self.memory, "tuples")

    def joins(self) -> Joins:
        """A fresh search space, with nothing remembered."""
        return Joins(Model(self.query, self.statistics, PAPER))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "rates": list(self.rates),
            "edges": [list(e) for e in self.edges],
            "selectivities": list(self.selectivities),
            "window": self.window,
            "memory": self.memory,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> QualifiedSetting:
        """The setting that `to_dict` wrote."""
        return cls(
            tuple(data["rates"]),
            tuple((a, b) for a, b in data["edges"]),
            tuple(data["selectivities"]),
            data["window"],
            data["memory"],
        )


def draw(streams: int, number: int, seed: int = 1) -> QualifiedSetting:
    """The `number`-th random setting of so many streams.

    >>> setting = draw(4, 0)
    >>> setting == draw(4, 0), setting == QualifiedSetting.from_dict(setting.to_dict())
    (True, True)
    """
    random = Random(f"{seed}/{streams}/{number}")
    rates = tuple(round(random.uniform(1, 100), 2) for _ in range(streams))
    edges = tuple(random_edges(streams, random, random.random()))
    chances = tuple(round(random.uniform(0.001, 0.999), 4) for _ in edges)
    unit = QualifiedSetting(rates, edges, chances, 1.0, 1.0)
    mjoin, tree = _ends(unit.joins())
    place = random.uniform(-_BEYOND, 1 + _BEYOND)
    low, high = -16.0, 10.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        cpus = [math.log(_at(2.0**middle, end.cpu)) for end in (mjoin, tree)]
        if place * cpus[0] + (1 - place) * cpus[1] > math.log(CPU_AVAILABLE):
            high = middle
        else:
            low = middle
    window = round(2.0**low, 6)
    least, most = (_at(window, end.tuples) for end in (mjoin, tree))
    place = random.uniform(-_BEYOND / 2, 1 + _BEYOND)
    memory = round(least * (most / least) ** place, 1)
    return QualifiedSetting(rates, edges, chances, window, memory)


_Polynomial = list[tuple[float, int]]
"""Coefficients with their powers of the window's length."""


@dataclass(frozen=True, slots=True)
class _End:
    cpu: _Polynomial
    tuples: _Polynomial


def _at(window: float, terms: _Polynomial) -> float:
    return sum(factor * window**power for factor, power in terms)


def _ends(joins: Joins) -> tuple[_End, _End]:
    """The mjoin and a greedy binary tree, as functions of the window."""
    model = joins.model
    density = model.density
    keep = PAPER.insert + PAPER.delete
    windows = [(rate, 1) for rate in model.known.rates]
    kept = [(rate * keep, 0) for rate in model.known.rates]
    pairs: _Polynomial = []
    leaves = tuple(1 << i for i in range(model.size))
    for c, order in enumerate(joins.join(leaves).orders):
        gathered = leaves[c]
        for k in order:
            gathered |= leaves[k]
            pairs.append((density(gathered) * PAPER.match, gathered.bit_count() - 1))
    tree = by_pairs(joins)
    states = [state.streams for state in inner(tree)]
    made = [
        (
            density(s) * s.bit_count() * (PAPER.match + (keep if s != model.all else 0)),
            s.bit_count() - 1,
        )
        for s in (*states, model.all)
    ]
    stored = [(density(s), s.bit_count()) for s in states]
    return _End(kept + pairs, windows), _End(kept + made, windows + stored)
