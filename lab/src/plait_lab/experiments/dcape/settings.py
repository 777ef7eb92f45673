"""Section 5.1 of seed 002: the query of figure 1 on a cluster of ten machines, in virtual time.

*As in the paper:* three streams A, B, C with Poisson arrivals, partitioned into 100 groups by
value; ten machines, of which one runs the distribution manager, one the stream generator with the
splits and one the application, so that seven join; one of these has half of the groups, the others
share the rest evenly. All begin with the plan ((A B) C). Windows, rates and their change are those
of section 5. Purging is by lemma 2.2, and the manager balances memory.

*Otherwise:* the paper tells neither the selectivities, nor what joining costs, nor how long it
runs. Here a pair of tuples of one partition matches with probability 0.01. Joins are by nested
loops within a partition: each partition is one value of the key, and a further condition on `x`
decides, so the pairs that the engine looks at are the pairs that nested loops compare. They are
charged at the C_j, C_i and C_d of table 3 of seed 003, on a share of a processor (`speed`), one for
each section: the machine with half of the groups is overloaded by the rates of that section, and
the other machines keep up, for only then is there a load to balance.

*Scaled:* nothing but the grain of time. The rows of a tick, a fraction of the window, are joined
together; a machine that is behind takes ticks one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.proposal import BalanceSetting
from plait.groups.moves.move import Protocol
from plait.optimize.costs import PAPER, Costs
from plait.plan.migration import Strategy
from plait.plan.text import read_tree
from plait.query.bounds import global_window
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Field, Output, Query, Stream, make_query
from plait_lab.engine.lemma import PurgeByLemma
from plait_lab.virtual.cluster import ClusterSetting, VirtualCluster, cut_by_time
from plait_lab.virtual.distribution import Balancing, Distribution
from plait_lab.virtual.gates import by_value
from plait_lab.virtual.local_plans import LocalPlans, LocalPolicy
from plait_lab.virtual.machines import Link, Machine
from plait_lab.workloads.arrivals import Poisson

NAMES = "ABC"
OLD, NEW = "((A B) C)", "(A (B C))"
NESTED = Costs(insert=PAPER.insert, delete=PAPER.delete, visit=PAPER.match)
"""Nested loops: every pair that is looked at costs C_j."""
MACHINES = 7
"""Of ten, those that join."""
GROUPS = 100
VALUES = 100
"""Values of `x`: a pair of one partition matches with probability 1 / VALUES."""
LATENCY, RATE = 0.001, 12.5e6
"""Of the network: seconds, and bytes per second (100 Mbit/s)."""
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Phase:
    """Rates from a second on, in tuples per second."""

    start: float
    rates: tuple[float, float, float]


@dataclass(frozen=True)
class Scenario:
    """Streams and a cluster."""

    window: float
    phases: tuple[Phase, ...]
    seconds: float
    """How long the streams last."""
    speed: float
    """The share of a processor that each machine has."""
    machines: int = MACHINES
    groups: int = GROUPS
    tick: float = 1.0

    @cached_property
    def query(self) -> Query:
        """Figure 1: A with B, then with C."""
        fields = (Field("ts", pa.timestamp("us")), Field("k", pa.int64()), Field("x", pa.int64()))
        streams = [Stream(name, fields, "ts") for name in NAMES]
        conditions: list[Expr] = []
        for left, right in ("AB", "BC"):
            conditions.append(Call("eq", (Column(left, "k"), Column(right, "k"))))
            apart = Call("sub", (Column(left, "x"), Column(right, "x")))
            conditions.append(Call("eq", (apart, Literal(0, pa.int64()))))
        bounds = global_window(len(NAMES), round(self.window * _SECOND))
        select = [Output("k", Column("A", "k"))]
        select += [Output(f"{name}_ts", Column(name, "ts")) for name in NAMES]
        return make_query(streams, conditions, bounds, select)

    @property
    def homes(self) -> tuple[int, ...]:
        """Half of the groups are on machine 0, the others are shared by the other machines."""
        half, others = self.groups // 2, self.machines - 1
        return (*[0] * half, *(1 + g * others // (self.groups - half) for g in range(half)))

    @property
    def selectivities(self) -> dict[str, float]:
        """Of every condition."""
        query = self.query
        keys = {str(equality): 1 / self.groups for equality in query.equalities}
        return keys | {str(condition): 1 / VALUES for condition in query.residuals}

    def tables(self, seed: int) -> dict[str, pa.Table]:
        """The streams; each is drawn apart."""
        ends = [phase.start for phase in self.phases[1:]] + [self.seconds]
        found = {}
        for i, name in enumerate(NAMES):
            rng = np.random.default_rng([seed, i])
            times = np.concatenate(
                [
                    phase.start + Poisson(phase.rates[i]).times(end - phase.start, rng)
                    for phase, end in zip(self.phases, ends, strict=True)
                ]
            )
            stamps = pa.array((times * _SECOND).astype(np.int64)).cast(pa.timestamp("us"))
            keys = pa.array(rng.integers(0, self.groups, len(times)))
            values = pa.array(rng.integers(0, VALUES, len(times)))
            found[name] = pa.table({"ts": stamps, "k": keys, "x": values})
        return found

    def cluster(self, tables: Mapping[str, pa.Table]) -> VirtualCluster:
        """A cluster that is about to begin."""
        plan = read_tree(self.query, OLD)
        setting = ClusterSetting(
            self.query,
            (plan,) * self.machines,
            self.homes,
            by_value("k", self.groups),
            quantum=self.tick,
            machine=Machine(self.speed),
            link=Link(LATENCY, RATE),
            costs=NESTED,
            purge=PurgeByLemma,
        )
        return VirtualCluster(setting, cut_by_time(self.query, tables, self.tick))


@dataclass(frozen=True, slots=True)
class Adaptation:
    """What of the cluster adapts, and how often it looks."""

    balance: Protocol | None = None
    """Load balancing, by this protocol."""
    local: bool = False
    """Local re-optimisation."""
    only: frozenset[int] | None = None
    """The machines that re-optimise; None: all."""
    strategy: Strategy = "moving-state"
    every: float = 5.0
    balance_from: float = 0.0
    rounds: int | None = None
    """How many decisions of the manager there may be."""


NONE = Adaptation()


class Run:
    """A scenario on its way, with what adapts it."""

    def __init__(
        self, scenario: Scenario, adaptation: Adaptation, tables: Mapping[str, pa.Table]
    ) -> None:
        self.scenario = scenario
        self.cluster = scenario.cluster(tables)
        self.tuples: list[tuple[float, int]] = []
        """Tuples in the system at the end of every tick."""
        self.distribution: Distribution | None = None
        self.local: LocalPlans | None = None
        if adaptation.balance is not None:
            # A tuple counts 64 bytes; what is less than a few of them is not worth a move.
            policy = BalancePolicy(by="memory", least_bytes=64 * 50, spread=False)
            balancing = Balancing(
                BalanceSetting(scenario.window, policy),
                adaptation.every,
                adaptation.balance,
                adaptation.balance_from,
                adaptation.rounds,
            )
            self.distribution = Distribution(self.cluster, balancing)
            self.distribution.begin()
        if adaptation.local:
            local = LocalPolicy(
                NESTED,
                scenario.selectivities,
                adaptation.every,
                strategy=adaptation.strategy,
                only=adaptation.only,
            )
            self.local = LocalPlans(self.cluster, local)
            self.local.begin()
        for tick in range(1, round(scenario.seconds / scenario.tick) + 1):
            self.cluster.line.plan(tick * scenario.tick, self._count)

    def _count(self, now: float) -> None:
        self.tuples.append((now, self.cluster.tuples))

    def through(self, until: float | None = None) -> Run:
        """Run to the end of the streams, or to another time."""
        self.cluster.run(self.scenario.seconds if until is None else until)
        return self

    def worked_off(self) -> int:
        """Run on until every queue and buffer is empty; all results."""
        cluster, until = self.cluster, self.scenario.seconds + self.scenario.window
        cluster.run(until)
        while any(p.queued for p in cluster.processors) or any(g.buffered for g in cluster.gates):
            until += self.scenario.window
            cluster.run(until)
        return sum(trace.results for trace in cluster.traces)

    def results(self, times: Sequence[float]) -> list[float]:
        """Results up to each time."""
        return self.cluster.results_by(times)

    @property
    def total(self) -> float:
        """Results up to the end of the streams."""
        return self.results([self.scenario.seconds])[0]

    def lengths(self, protocol: Protocol) -> list[float]:
        """How long the completed moves by a protocol took."""
        return [
            record.length
            for record in self.cluster.moves.values()
            if record.done and record.length is not None and record.move.protocol == protocol
        ]
