"""The cost model against the engine: predicted operations and stored tuples, and counted ones.

Random queries of 3 to 8 streams with every kind of graph and bounds, on stationary streams whose
truth is known; for each the mjoin, the best binary tree, the plan that the optimiser chooses and a
random one. A run fills its windows first; then the engine's counters and the live tuples of every
state are compared with the prediction.

The machine is calibrated first, as `plait env calibrate` does. Times are processor time; all plans
run once, then all again, and the fastest run of each counts. They are compared by rank, and the
ratio of measured to predicted time says whether a CPU budget can be trusted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from random import Random

import numpy as np
import pyarrow as pa

from plait.engine.states import CombinedState
from plait.kernels.ring import first_positions
from plait.local.calibrate import calibrate
from plait.local.host import LocalRun
from plait.local.observe import observed, tree_of
from plait.optimize.budget import Budget
from plait.optimize.choose import choose
from plait.optimize.costs import Costs
from plait.optimize.model import Model, Operations
from plait.optimize.search.candidate import Joins
from plait.optimize.search.layer_one import best_binary
from plait.plan.jtree import Node, mjoin
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.reporting.report import Claim, Note, Report, Series, at_most
from plait_lab.workloads.stationary import StationarySetting, random_setting

_KINDS = ("inserts", "deletes", "probes", "visits", "matches")
_MEDIAN, _P90, _RANK = 0.10, 0.25, 0.9
_LEVEL = (0.8, 1.25)
"""Nobody asks for more than the rank; but a CPU budget is only as good as this."""


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    queries: int = 50
    fewest: int = 3
    most: int = 8
    filling: float = 2.0
    """Windows' lengths before counting begins."""
    counting: float = 5.0
    """Windows' lengths that are counted."""
    most_work: int = 4_000_000
    """Operations of an mjoin in one window's length, at most; drawn for each query, down to ..."""
    least_work: int = 20_000
    repeats: int = 3
    """Rounds over all plans; the fastest run of each counts."""
    calibration: int = 3
    """Rounds of the calibration."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """One plan on one setting; everything per second of event time, but `seconds` in all."""

    label: str
    plan: str
    predicted: Operations
    counted: Operations
    predicted_tuples: float
    counted_tuples: float
    predicted_states: float
    """Of the states of combinations alone."""
    counted_states: float
    predicted_seconds: float
    seconds: float

    @property
    def operations_error(self) -> float:
        """Of all operations together, relative to the counted ones."""
        return self.predicted.counted / self.counted.counted - 1

    @property
    def tuples_error(self) -> float:
        """Of all stored tuples together."""
        return self.predicted_tuples / self.counted_tuples - 1


def cost_model(options: Options, note: Note) -> Report:
    """Predicted against counted operations, stored tuples and time, on random queries."""
    random = Random(options.seed)
    costs = calibrate(options.calibration, note=lambda text: note(f"calibrating: {text}")).costs
    found: list[Comparison] = []
    again: list[tuple[StationarySetting, Node, dict[str, pa.Table]]] = []
    span = options.most - options.fewest + 1
    for q in range(options.queries):
        work = math.exp(random.uniform(*map(math.log, (options.least_work, options.most_work))))
        setting = random_setting(random, options.fewest + q % span, work=work)
        note(f"query {q + 1} of {options.queries}: {setting.label}")
        tables = setting.tables((options.filling + options.counting) * setting.window, q)
        for plan in plans_of(setting, costs, random):
            found.append(compare(setting, plan, tables, costs, options))
            again.append((setting, plan, tables))
    for repeat in range(1, options.repeats):
        for n, (setting, plan, tables) in enumerate(again):
            note(f"round {repeat + 1} of {options.repeats}: plan {n + 1} of {len(again)}")
            begin, total = _span(setting, options)
            seconds, _, _ = _run(setting, plan, tables, begin, total)
            found[n] = replace(found[n], seconds=min(found[n].seconds, seconds))
    report = Report("cost-model", asdict(options) | {"costs": asdict(costs)})
    _fill(report, found)
    return report


def plans_of(setting: StationarySetting, costs: Costs, random: Random) -> list[Node]:
    """The mjoin, the best binary tree, the chosen plan and a random one, each once."""
    joins = Joins(Model(setting.query, setting.statistics, costs, draws=512))
    plans = [
        mjoin(setting.query),
        joins.plan(best_binary(joins)),
        joins.plan(choose(joins, Budget()).plan),
        sample_plan(setting.query, random),
    ]
    return list(dict.fromkeys(plans))


def compare(
    setting: StationarySetting,
    plan: Node,
    tables: dict[str, pa.Table],
    costs: Costs,
    options: Options,
) -> Comparison:
    """Run a plan and set what happened beside what was predicted."""
    model = Model(setting.query, setting.statistics, costs, exact_batches=True)
    begin, total = _span(setting, options)
    seconds, counted, live = _run(setting, plan, tables, begin, total)
    predicted = model.operations(plan)
    tuples = {s: model.stored(sum(1 << i for i in s)) for s in live}
    states = [s for s in live if len(s) > 1]
    return Comparison(
        setting.label,
        str(plan),
        predicted,
        counted,
        sum(tuples.values()),
        sum(live.values()),
        sum(tuples[s] for s in states),
        sum(live[s] for s in states),
        predicted.seconds(costs) * total,
        seconds,
    )


def _span(setting: StationarySetting, options: Options) -> tuple[float, float]:
    """When counting begins, and when it ends."""
    begin = options.filling * setting.window
    return begin, begin + options.counting * setting.window


def _run(
    setting: StationarySetting, plan: Node, tables: dict[str, pa.Table], begin: float, total: float
) -> tuple[float, Operations, dict[frozenset[int], float]]:
    """CPU seconds, operations per second after `begin`, and the mean number of live tuples."""
    run = LocalRun(setting.query, plan)
    batches = cut(tables, setting.batch, total)
    first = round(begin / setting.batch)
    before = Operations()
    live: list[dict[frozenset[int], int]] = []
    seconds = 0.0
    for b, batch in enumerate(batches):
        if b == first:
            before = observed(run)
        began = time.process_time()
        for results in run.stream(batch):
            del results
        seconds += time.process_time() - began
        if b >= first and b % 3 == 0:
            live.append(_live_tuples(run))
    after = observed(run)
    span = setting.batch * (len(batches) - first)
    counted = Operations(**{k: (v - getattr(before, k)) / span for k, v in asdict(after).items()})
    return seconds, counted, {s: float(np.mean([x[s] for x in live])) for s in live[0]}


def cut(tables: dict[str, pa.Table], batch: float, total: float) -> list[dict[str, pa.Table]]:
    """The rows in batches of so many seconds of event time."""
    edges = (np.arange(round(total / batch) + 1) * batch * 1e6).astype(np.int64)
    places = {
        name: np.searchsorted(table["ts"].cast(pa.int64()).to_numpy(), edges)
        for name, table in tables.items()
    }
    return [
        {
            name: table.slice(places[name][b], places[name][b + 1] - places[name][b])
            for name, table in tables.items()
        }
        for b in range(len(edges) - 1)
    ]


def _fill(report: Report, found: Sequence[Comparison]) -> None:
    operations = np.abs([c.operations_error for c in found])
    tuples = np.abs([c.tuples_error for c in found])
    states = np.abs(
        [c.predicted_states / c.counted_states - 1 for c in found if c.counted_states >= 20]
    )
    rank = rank_correlation([c.predicted_seconds for c in found], [c.seconds for c in found])
    shares = np.linspace(0, 1, 21)
    for label, errors in (("operations", operations), ("stored tuples", tuples)):
        ys = [100 * float(np.quantile(errors, s)) for s in shares]
        report.series.append(
            Series(label, [100 * float(s) for s in shares], ys, "% error", "% of plans")
        )
    report.claims += [
        _within("operations-median", "counted operations", operations, 0.5, _MEDIAN),
        _within("operations-p90", "counted operations", operations, 0.9, _P90),
        _within("tuples-median", "stored tuples", tuples, 0.5, _MEDIAN),
        _within("tuples-p90", "stored tuples", tuples, 0.9, _P90),
        Claim(
            "time-rank",
            "predicted and measured time agree in rank",
            f"{rank:.3f}",
            rank,
            f"at least {_RANK:g}",
            rank >= _RANK,
        ),
    ]
    times = np.array([c.seconds / c.predicted_seconds for c in found])
    middle = float(np.median(times))
    report.claims.append(
        Claim(
            "time-level",
            "the median of measured over predicted time",
            f"{middle:.2f}",
            middle,
            f"within {_LEVEL[0]:g} and {_LEVEL[1]:g}",
            _LEVEL[0] <= middle <= _LEVEL[1],
        )
    )
    report.ratios["measured / predicted time"] = _quantiles(times)
    report.systems["plait"] = {
        "plans": len(found),
        "seconds": sum(c.seconds for c in found),
        "errors by operation": {k: _quantiles(_errors(found, k)) for k in _KINDS},
        "errors of states of combinations": _quantiles(states),
        "worst": _worst(found),
    }


def _within(id_: str, what: str, errors: np.ndarray, share: float, limit: float) -> Claim:
    value = float(np.quantile(errors, share))
    name = "median" if share == 0.5 else f"{100 * share:.0f}th percentile"
    return at_most(id_, f"the {name} of the relative error of {what}", value, limit)


def _errors(found: Sequence[Comparison], kind: str) -> np.ndarray:
    pairs = [(getattr(c.predicted, kind), getattr(c.counted, kind)) for c in found]
    return np.array([abs(p / c - 1) for p, c in pairs if c > 0])


def _quantiles(values: np.ndarray) -> dict[str, float]:
    if len(values) == 0:
        return {}
    return {f"p{100 * s:.0f}": float(np.quantile(values, s)) for s in (0.1, 0.5, 0.9)}


def _worst(found: Sequence[Comparison]) -> list[dict[str, object]]:
    ordered = sorted(found, key=lambda c: -max(abs(c.operations_error), abs(c.tuples_error)))
    return [
        {
            "query": c.label,
            "plan": c.plan,
            "operations": c.operations_error,
            "tuples": c.tuples_error,
        }
        for c in ordered[:5]
    ]


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's: the correlation of the ranks.

    >>> rank_correlation([1, 2, 3], [10, 20, 15])
    0.5
    """
    a, b = (np.argsort(np.argsort(values)).astype(float) for values in (left, right))
    return round(float(np.corrcoef(a, b)[0, 1]), 12)


def _live_tuples(run: LocalRun) -> dict[frozenset[int], int]:
    """The tuples of each state that a later tuple may still join."""
    engine = tree_of(run)
    marks = [run.watermarks[name] for name in run.query.names]
    watermarks = [-(2**62) if mark is None else mark for mark in marks]
    found: dict[frozenset[int], int] = {base.streams: len(base) for base in engine.bases}
    for state in engine.states():
        if isinstance(state, CombinedState):
            rows = first_positions(state.window.ring.header, 0, len(state))
            alive = state.dead(rows, watermarks) == 0 if len(rows) else np.zeros(0, np.bool_)
            found[state.streams] = int(alive.sum())
    return found
