"""The four parameter sets of table 2, at work: enough of everything, or not.

*As in the paper:* chains of 3 and 4 streams, the rates, windows and limits of memory. *Otherwise:*
this engine joins a pair in some nanoseconds, not in 2.2 microseconds, and keeps a tuple in tens of
bytes, so neither limit of table 2 binds here; and by the paper's own equations sets 2 and 4 do not
have the plans that it reports (see `by_equations`). So each set is run in the situation of figure 5
that it stands for: rates are multiplied (selectivities divided) by `scale`; in sets 2 and 4 the
selectivity of A with B is smaller, so that computing again costs what the paper says it costs; the
available CPU and memory are put between what the plans are measured to need.

*Pacing.* Event time runs `speed` times as fast as the CPU's clock. What has arrived by the time the
engine is ready for it is its next batch; what it cannot take yet waits in the queue. A plan that
needs less than the CPU there is keeps up; one that needs more falls behind for ever.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from plait.errors import MemoryExceeded
from plait.hosts.local.host import LocalRun
from plait.optimize.candidate import Joins
from plait.optimize.costs import PAPER, Costs, load
from plait.optimize.model import Cost, Model
from plait.optimize.statistics import Statistics
from plait.plan.jtree import Node
from plait.query.bounds import global_window
from plait.query.query import Query
from plait.workshop.workloads.stationary import key_columns, natural_join

_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class ParameterSet:
    """One column of table 2, and how it is run here."""

    name: str
    situation: str
    memory_mb: int
    rates: tuple[float, ...]
    selectivities: tuple[float, ...]
    window: float
    run_selectivities: tuple[float, ...]
    scale: float
    tick: float = 1.0
    """Event seconds that arrive together."""

    @property
    def query(self) -> Query:
        """A chain of streams A, B, C and perhaps D."""
        from random import Random

        keys = key_columns("chain", len(self.rates), Random(0))
        names = "ABCD"[: len(self.rates)]
        width = round(self.window * _SECOND)
        return natural_join(keys, global_window(len(self.rates), width), names)

    def _statistics(self, scale: float, chances: Sequence[float]) -> Statistics:
        query = self.query
        rates = {n: r * scale for n, r in zip(query.names, self.rates, strict=True)}
        texts = {str(e): s for e, s in zip(query.equalities, chances, strict=True)}
        return Statistics.of(rates, texts, batch=self.tick)

    @property
    def domains(self) -> tuple[int, ...]:
        """Keys of each join as they are run."""
        return tuple(max(1, round(self.scale / s)) for s in self.run_selectivities)

    def joins(self, costs: Costs | None = None) -> Joins:
        """The search space of what is run."""
        chances = [1 / d for d in self.domains]
        known = self._statistics(self.scale, chances)
        return Joins(Model(self.query, known, costs or load()))

    def paper_joins(self) -> Joins:
        """The search space of table 2 with the costs of table 3."""
        return Joins(Model(self.query, self._statistics(1.0, self.selectivities), PAPER))

    def tables(self, seconds: float, seed: int) -> dict[str, pa.Table]:
        """Rows of so many seconds."""
        tables = {}
        for i, stream in enumerate(self.query.streams):
            random = np.random.default_rng([seed, i])
            rows = int(self.rates[i] * self.scale * seconds)
            times = np.sort(random.integers(0, int(seconds * _SECOND), rows))
            columns: dict[str, pa.Array] = {"ts": pa.array(times).cast(pa.timestamp("us"))}
            for f in stream.fields[1:]:
                domain = self.domains[int(f.name[1:])]
                columns[f.name] = pa.array(random.integers(0, domain, rows))
            tables[stream.name] = pa.table(columns)
        return tables


SETS = (
    ParameterSet("set 1", "both fit", 300, (20, 20, 20), (0.05, 0.5), 5.0, (0.05, 0.5), 10.0),
    ParameterSet(
        "set 2",
        "only the binary tree fits",
        300,
        (20, 20, 50),
        (0.02, 0.5),
        15.0,
        (0.0004, 0.5),
        40.0,
    ),
    ParameterSet(
        "set 3",
        "only the mjoin fits",
        30,
        (10, 10, 10, 10),
        (0.1, 0.15, 0.1),
        15.0,
        (0.1, 0.15, 0.1),
        4.0,
    ),
    ParameterSet(
        "set 4",
        "only a jtree fits",
        30,
        (20, 20, 20, 20),
        (0.02, 0.2, 0.05),
        50.0,
        (0.0002, 0.2, 0.005),
        10.0,
    ),
)
"""Table 2."""


def by_equations(given: ParameterSet, plan: Node) -> Cost:
    """What equations 1 to 5 say of a plan with the values of tables 2 and 3."""
    return given.paper_joins().model.cost(plan)


@dataclass(frozen=True, slots=True)
class Need:
    """What a plan was measured to need: CPU seconds per event second, and bytes at most."""

    cpu: float
    bytes: int


def need(given: ParameterSet, plan: Node, tables: dict[str, pa.Table], seconds: float) -> Need:
    """Run a plan without limits."""
    run = LocalRun(given.query, plan)
    ticks = Ticks(tables, given.tick)
    spent, most = 0.0, 0
    first = round(given.window / given.tick)
    for tick in range(ticks.count(seconds)):
        began = time.process_time()
        for results in run.stream(ticks.rows(tick, tick + 1)):
            del results
        if tick >= first:
            spent += time.process_time() - began
        most = max(most, run.engine.nbytes)
    return Need(spent / (seconds - given.window), most)


@dataclass(slots=True)
class Trace:
    """What happened in a paced run, tick by tick of the clock; all by seconds of event time."""

    plan: str
    clock: list[float] = field(default_factory=list)
    results: list[float] = field(default_factory=list)
    tuples: list[float] = field(default_factory=list)
    queued: list[float] = field(default_factory=list)
    failure: MemoryExceeded | None = None

    @property
    def throughput(self) -> float:
        """Results up to the end, or to the failure."""
        return self.results[-1] if self.results else 0.0


class Ticks:
    """Rows by the tick in which they arrive."""

    def __init__(self, tables: dict[str, pa.Table], tick: float) -> None:
        self._tables = tables
        self._tick = tick
        self._times = {n: t["ts"].cast(pa.int64()).to_numpy() for n, t in tables.items()}

    def count(self, seconds: float) -> int:
        """The ticks in so many seconds."""
        return round(seconds / self._tick)

    def rows(self, start: int, stop: int) -> dict[str, pa.Table]:
        """The rows of some ticks."""
        found = {}
        for name, table in self._tables.items():
            edges = [int(t * self._tick * _SECOND) for t in (start, stop)]
            low, high = np.searchsorted(self._times[name], edges)
            found[name] = table.slice(low, high - low)
        return found


def paced(
    given: ParameterSet,
    plan: Node,
    tables: dict[str, pa.Table],
    seconds: float,
    speed: float,
    memory_limit: int,
) -> Trace:
    """Run a plan with so much CPU and memory and no more."""
    run = LocalRun(given.query, plan, memory_limit=memory_limit)
    ticks = Ticks(tables, given.tick)
    last = ticks.count(seconds)
    trace = Trace(str(plan))
    clock, done = 0.0, 0
    try:
        while clock < seconds and done < last:
            arrived = min(last, int(clock / given.tick))
            if arrived <= done:
                clock = (done + 1) * given.tick
                continue
            began = time.process_time()
            for results in run.stream(ticks.rows(done, done + 1)):
                del results
            clock += (time.process_time() - began) * speed
            done += 1
            trace.clock.append(min(clock, seconds))
            trace.results.append(run.counts.results)
            trace.tuples.append(sum(size.rows for size in run.engine.sizes()))
            trace.queued.append(
                sum(given.rates) * given.scale * max(0, int(clock / given.tick) - done) * given.tick
            )
    except MemoryExceeded as error:
        trace.failure = error
    return trace
