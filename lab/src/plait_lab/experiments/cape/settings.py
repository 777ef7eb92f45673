"""Table 2 of seed 000, the query of figure 4, and runs of it in virtual time.

*As in the paper:* a chain of four streams A, B, C, D with Poisson arrivals for 50 seconds, a global
window, reduction factors by uniform keys; the old plan ((A B) C) D and the new plan A ((B C) D),
whose states BC and BCD the old one does not have; purging by lemma 2.2; joins by nested loops,
charged by pairs compared.

*Otherwise:* the paper tells neither T_j nor T_s. Here they are the C_j and C_i that the same group
reports for a later version of its engine (`PAPER` in `optimize/costs.py`), and the query gets only
a share of the processor (`speed`), since the paper's engine runs background queries beside it. One
share serves all of section 6: sets 1 and 2 of section 6.2 leave the machine time, and the old plan
of set 2 of section 6.3 is twice what it can do, as the paper says of them.

*Hash joins beside it:* the same machine and the same prices, but only the pairs that match are
paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import pyarrow as pa

from plait.optimize.costs import DEFAULT, PAPER, Costs
from plait.optimize.migration_cost import JoinKind, Prediction, predict, terms_of
from plait.optimize.model import Model
from plait.optimize.statistics import Statistics
from plait.plan.jtree import Node
from plait.plan.migration import ResultOrder, Strategy
from plait.plan.text import read_tree
from plait.query.bounds import global_window
from plait.query.query import Query
from plait_lab.engine.lemma import PurgeByLemma
from plait_lab.virtual.accounting import Account
from plait_lab.virtual.host import Clean, VirtualRun
from plait_lab.virtual.machines import Machine
from plait_lab.virtual.trace import Trace
from plait_lab.workloads.arrivals import Poisson, tables
from plait_lab.workloads.stationary import key_columns, natural_join

NAMES = "ABCD"
OLD, NEW, FLAT = "(((A B) C) D)", "(A ((B C) D))", "(A B C D)"
"""Figure 4, and a plan whose joins have no join below them."""

START = 10.0
"""When migrations begin, in seconds."""
SPEED = 0.08
"""The share of the processor that the query gets."""


@dataclass(frozen=True)
class CapeSetting:
    """One column of table 2: inter-arrival times in milliseconds, reduction factors, the window."""

    gaps: tuple[float, float, float, float]
    sigmas: tuple[float, float, float]
    window: float

    @property
    def rates(self) -> tuple[float, ...]:
        """Tuples per second."""
        return tuple(1000 / gap for gap in self.gaps)

    @cached_property
    def query(self) -> Query:
        """The chain A - B - C - D."""
        keys = key_columns("chain", len(NAMES), Random(0))
        return natural_join(keys, global_window(len(NAMES), round(self.window * 1e6)), NAMES)

    def plan(self, shape: str) -> Node:
        """A plan by its shape."""
        return read_tree(self.query, shape)

    def tables(self, seconds: float, seed: int) -> dict[str, pa.Table]:
        """The streams."""
        arrivals = {name: Poisson(rate) for name, rate in zip(NAMES, self.rates, strict=True)}
        domains = {f"k{i}": round(1 / sigma) for i, sigma in enumerate(self.sigmas)}
        return tables(self.query, arrivals, domains, seconds, seed)

    def predicted(
        self, kind: JoinKind, costs: Costs = PAPER, speed: float = SPEED, old: str = OLD
    ) -> Prediction:
        """What the cost models say of the migration."""
        rates = dict(zip(NAMES, self.rates, strict=True))
        chances = zip(map(str, self.query.equalities), self.sigmas, strict=True)
        # With a price for calls, the model knows that windows wait for the next tuple.
        model = Model(self.query, Statistics.of(rates, dict(chances)), DEFAULT)
        terms = terms_of(costs, kind)
        return predict(model, self.plan(old), self.plan(NEW), terms, speed)


def set_1(window: float) -> CapeSetting:
    """Section 6.2, set 1: W varies, all else is low."""
    return CapeSetting((100, 100, 100, 100), (0.1, 0.05, 0.02), window)


def set_2(gap_b: float) -> CapeSetting:
    """Section 6.2, set 2: the rate of B varies."""
    return CapeSetting((50, gap_b, 50, 50), (0.1, 0.05, 0.02), 1.0)


def set_3(window: float) -> CapeSetting:
    """Section 6.2, set 3: W varies, the rates are high."""
    return CapeSetting((100, 12, 12, 12), (0.1, 0.1, 0.1), window)


LOW = CapeSetting((100, 100, 100, 100), (0.1, 0.02, 0.02), 1.0)
"""Section 6.3, set 1: enough of everything."""
HIGH = CapeSetting((50, 50, 50, 50), (0.2, 0.05, 0.05), 2.0)
"""Section 6.3, set 2: too little power for the old plan."""


def virtual(
    setting: CapeSetting,
    shape: str,
    streams: dict[str, pa.Table],
    account: Account,
    slices: int,
    speed: float = SPEED,
) -> VirtualRun:
    """A run that is about to begin, with so many slices per window."""
    return VirtualRun(
        setting.query,
        setting.plan(shape),
        streams,
        machine=Machine(speed),
        account=account,
        costs=PAPER,
        purge=PurgeByLemma,
        quantum=setting.window / slices,
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """The lengths of a migration's stages, and how busy the machine was before it."""

    total: float
    clean: float
    move: float
    busy: float


def migration(
    setting: CapeSetting,
    strategy: Strategy,
    account: Account,
    *,
    old: str = OLD,
    start: float = START,
    seed: int = 1,
    slices: int = 40,
    clean: Clean = "work-off",
    speed: float = SPEED,
) -> Measured:
    """Migrate once, and stop when that is done."""
    streams = setting.tables(start + 4 * setting.window + 1, seed)
    run = virtual(setting, old, streams, account, slices, speed)
    run.migrate(start, setting.plan(NEW), strategy, clean=clean)
    trace = run.advance(through_migrations=True)
    whole, cleaning, moving = trace.migration, trace.stage("clean"), trace.stage("move")
    assert whole is not None, "a run with a migration has its stages"
    return Measured(
        whole.length,
        cleaning.length if cleaning else 0.0,
        moving.length if moving else 0.0,
        float(trace.busy([start / 2, start])[0]),
    )


def run_through(
    setting: CapeSetting,
    shape: str,
    account: Account,
    seconds: float,
    seed: int,
    *,
    strategy: Strategy | None = None,
    clean: Clean = "work-off",
    order: ResultOrder = "any",
    start: float = START,
    slices: int = 25,
    speed: float = SPEED,
) -> Trace:
    """Run all streams to their end, migrating on the way if a strategy is given."""
    run = virtual(setting, shape, setting.tables(seconds, seed), account, slices, speed)
    if strategy is not None:
        run.migrate(start, setting.plan(NEW), strategy, clean=clean, order=order)
    return run.advance()


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)
