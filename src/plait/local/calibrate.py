"""Measure what operations cost on this machine: a few seconds of joins, and a fit.

Workloads are chosen so that each kind of operation is most of the work somewhere: rows without
partners, many results, many intermediate pairs, large states, tiny batches. CPU times are regressed
on the counted operations, with coefficients that are not negative, each run weighing the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.local.host import LocalRun
from plait.local.observe import observed
from plait.optimize.costs import DEFAULT, Costs
from plait.optimize.model import OPERATION_NAMES, Operations
from plait.plan.text import read_tree
from plait.query.bounds import global_window
from plait.query.expr import Call, Column, Expr
from plait.query.query import Field, Output, Query, Stream, make_query

_SECOND = 1_000_000
_PULL = 0.05
"""How much being off the prior by 100 % weighs, beside a run that is off by 100 %."""

_COST_OF = {
    "arrivals": "arrive",
    "inserts": "insert",
    "deletes": "delete",
    "probes": "probe",
    "visits": "visit",
    "matches": "match",
    "carried": "carry",
    "results": "result",
    "calls": "call",
    "combined": "combine",
    "upkeep": "upkeep",
    "intakes": "intake",
    "outputs": "output",
}


@dataclass(frozen=True, slots=True)
class Workload:
    """Streams in a chain of keys (or all on one key), their rows, and the plan to run."""

    shape: str
    rows: int
    domains: tuple[int, ...]
    batches: int
    window: float = 2.0
    columns: int = 1
    """The number of value columns selected from each stream."""


WORKLOADS = (
    Workload("(a b)", 60_000, (10_000_000,), 20),
    Workload("(a b)", 2_000, (2_000,), 400),
    Workload("(a b)", 2_000, (10_000_000,), 400),
    Workload("(a b)", 2_000, (100,), 400, columns=5),
    Workload("(a b c)", 2_000, (500, 500), 200, columns=3),
    Workload("(a b)", 8_000, (40,), 20),
    Workload("(a b)", 8_000, (40,), 20, columns=5),
    Workload("(a b c)", 30_000, (20_000, 10_000_000), 20),
    Workload("(a b c)", 6_000, (30, 1_000_000), 20),
    Workload("((a b) c)", 6_000, (30, 1_000_000), 20),
    Workload("((a b) c)", 8_000, (150, 4_000), 20),
    Workload("(a b c d)", 8_000, (400, 4_000_000, 400), 20),
    Workload("((a b) (c d))", 8_000, (400, 4_000_000, 400), 20),
    Workload("(((a b) c) d)", 6_000, (800, 800, 2_000_000), 20),
    Workload("(a b c d e)", 2_000, (2_000, 2_000, 2_000, 2_000), 200),
    Workload("((((a b) c) d) e)", 2_000, (2_000, 2_000, 2_000, 2_000), 200),
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The fitted costs, and how far the runs are from them (median relative error)."""

    costs: Costs
    error: float
    runs: int


def calibrate(
    repeats: int = 3,
    workloads: Sequence[Workload] = WORKLOADS,
    note: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """Measure the costs of this machine."""
    fastest: dict[Workload, tuple[Operations, float]] = {}
    _measure(workloads[0])
    # Round by round: what else the machine does for a while then meets one run of each, not all
    # runs of one.
    for repeat in range(repeats):
        for workload in workloads:
            note(f"round {repeat + 1} of {repeats}: {workload.shape}, {workload.rows} rows each")
            run = _measure(workload)
            if workload not in fastest or run[1] < fastest[workload][1]:
                fastest[workload] = run
    return fit(list(fastest.values()), DEFAULT)


def fit(runs: Sequence[tuple[Operations, float]], prior: Costs | None = None) -> Calibration:
    """The costs that explain the CPU seconds of some runs best.

    Where the runs leave a choice, costs near the `prior` are taken.

    >>> true = Costs(insert=1e-7, match=1e-8)
    >>> made = [Operations(inserts=i, matches=m) for i, m in ((1e6, 0), (1e5, 1e6), (1e3, 1e7))]
    >>> found = fit([(o, o.seconds(true)) for o in made]).costs
    >>> f"{found.insert:.1e} {found.match:.1e}"
    '1.0e-07 1.0e-08'
    """
    seconds = np.array([s for _, s in runs])
    table = np.array([astuple(o) for o, _ in runs]) / seconds[:, None]
    pulled, ones = table, np.ones(len(table))
    if prior is not None:
        usual = [getattr(prior, _COST_OF[name]) for name in OPERATION_NAMES]
        pulled = np.vstack([table, _PULL * np.diag([1 / u if u else 0.0 for u in usual])])
        ones = np.concatenate([ones, np.full(len(usual), _PULL)])
    found = _non_negative(pulled, ones)
    errors = np.abs(table @ found - 1)
    named = dict(zip(OPERATION_NAMES, found, strict=True))
    costs = Costs(**{_COST_OF[name]: float(value) for name, value in named.items()})
    return Calibration(costs, float(np.median(errors)), len(runs))


def _non_negative(table: NDArray[np.float64], goal: NDArray[np.float64]) -> NDArray[np.float64]:
    """The x >= 0 with the least |table x - goal|², by cyclic coordinate descent."""
    scale = np.sqrt((table**2).sum(axis=0))
    scale[scale == 0] = 1.0
    scaled = table / scale
    x = np.zeros(table.shape[1])
    rest = goal.copy()
    for _ in range(20_000):
        moved = 0.0
        for k in range(len(x)):
            column = scaled[:, k]
            weight = float(column @ column)
            if weight == 0:
                continue
            value = max(0.0, x[k] + float(column @ rest) / weight)
            if value != x[k]:
                rest -= column * (value - x[k])
                moved = max(moved, abs(value - x[k]))
                x[k] = value
        if moved < 1e-12:
            break
    return np.asarray(x / scale)


def _measure(workload: Workload) -> tuple[Operations, float]:
    query = _query(workload)
    tables = _tables(query, workload)
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        run = LocalRun(query, read_tree(query, workload.shape))
        began = time.process_time()
        for b in range(workload.batches):
            batch = {}
            for name, table in tables.items():
                start, stop = (len(table) * x // workload.batches for x in (b, b + 1))
                batch[name] = table.slice(start, stop - start)
            for results in run.stream(batch):
                del results
        return observed(run), max(time.process_time() - began, 1e-6)
    finally:
        pa.set_cpu_count(threads)


def _query(workload: Workload) -> Query:
    names = [c for c in workload.shape if c.isalpha()]
    streams, select = [], []
    for i, name in enumerate(names):
        keys = [f"k{e}" for e in (i - 1, i) if 0 <= e < len(workload.domains)]
        values = [f"v{v}" for v in range(workload.columns)]
        typed = [Field(f, pa.int64()) for f in (*keys, *values)]
        streams.append(Stream(name, (Field("ts", pa.timestamp("us")), *typed), "ts"))
        select += [Output(f"{name}_{v}", Column(name, v)) for v in values]
    conditions: list[Expr] = [
        Call("eq", (Column(a, f"k{i}"), Column(b, f"k{i}")))
        for i, (a, b) in enumerate(pairwise(names))
    ]
    width = round(workload.window * _SECOND)
    return make_query(streams, conditions, global_window(len(names), width), select)


def _tables(query: Query, workload: Workload) -> dict[str, pa.Table]:
    tables = {}
    for i, stream in enumerate(query.streams):
        random = np.random.default_rng([5, i])
        times = np.sort(random.integers(0, 10 * _SECOND, workload.rows))
        columns: dict[str, pa.Array] = {"ts": pa.array(times).cast(pa.timestamp("us"))}
        for f in stream.fields[1:]:
            domain = workload.domains[int(f.name[1:])] if f.name[0] == "k" else 1 << 40
            columns[f.name] = pa.array(random.integers(0, domain, workload.rows))
        tables[stream.name] = pa.table(columns)
    return tables


assert set(_COST_OF) == set(OPERATION_NAMES), "every operation has a cost"
assert set(_COST_OF.values()) == {f.name for f in fields(Costs)}, "every cost has an operation"
