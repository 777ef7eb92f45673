"""The chosen plan against all others: measured time over the best of every enumerated plan.

For each random query of 3 or 4 streams, every shape with its model's probe orders and with the
default ones runs on the same rows. All plans run once, in turn; then the fastest few and the chosen
one run again, in turn, and the least time of each counts.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from random import Random

import numpy as np
import pyarrow as pa

from plait.local.host import LocalRun
from plait.optimize.budget import Budget
from plait.optimize.choose import choose
from plait.optimize.costs import Costs, load
from plait.optimize.model import Model
from plait.optimize.search.candidate import Candidate, Joins
from plait.plan.jtree import Join, Node
from plait_lab.bench.cost_model import cut
from plait_lab.exhaustive.plans import all_shapes
from plait_lab.reporting.report import Note, Report, Series, at_most
from plait_lab.workloads.stationary import StationarySetting, random_setting

_WITHIN = 1.25


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    queries: int = 100
    windows: float = 3.0
    """Windows' lengths of rows for each run."""
    finalists: int = 3
    repeats: int = 3
    """Further runs of the finalists."""
    most_work: int = 300_000
    least_work: int = 10_000
    seed: int = 2


@dataclass(frozen=True, slots=True)
class Quality:
    """One query: the chosen plan, the best one, and their times."""

    label: str
    chosen: str
    best: str
    seconds: float
    best_seconds: float
    predicted: float
    predicted_best: float
    plans: int

    @property
    def ratio(self) -> float:
        """How much slower the chosen plan is than the best."""
        return self.seconds / self.best_seconds

    @property
    def reason(self) -> str:
        """Why the chosen plan was preferred."""
        if self.chosen == self.best:
            return "the same shape with other probe orders, or the same plan"
        return (
            f"predicted {self.predicted:.3g} s against {self.predicted_best:.3g} s for the best, "
            f"measured {self.seconds:.3g} s against {self.best_seconds:.3g} s"
        )


def plan_quality(options: Options, note: Note) -> Report:
    """How near the chosen plan's measured time is to the best of all plans of 3 and 4 streams."""
    random = Random(options.seed)
    costs = load()
    found = []
    for q in range(options.queries):
        work = math.exp(random.uniform(*map(math.log, (options.least_work, options.most_work))))
        setting = random_setting(random, 3 + q % 2, work=work)
        note(f"query {q + 1} of {options.queries}: {setting.label}")
        found.append(measure(setting, costs, options, q))
    ratios = sorted(f.ratio for f in found)
    report = Report("plan-quality", asdict(options) | {"costs": asdict(costs)})
    report.series.append(
        Series("chosen / best", list(range(len(ratios))), ratios, "times the best", "queries")
    )
    report.claims.append(
        at_most(
            "median-ratio",
            "the chosen plan's time over that of the best enumerated plan, in the median",
            float(np.median(ratios)),
            _WITHIN,
        )
    )
    worst = max(found, key=lambda f: f.ratio)
    report.systems["plait"] = {
        "seconds": sum(f.seconds for f in found),
        "plans": sum(f.plans for f in found),
        "worst": asdict(worst) | {"ratio": worst.ratio, "reason": worst.reason},
    }
    report.ratios["chosen / best"] = {
        f"p{100 * s:.0f}": float(np.quantile(ratios, s)) for s in (0.1, 0.5, 0.9, 1.0)
    }
    return report


def measure(setting: StationarySetting, costs: Costs, options: Options, seed: int) -> Quality:
    """Run every plan of a setting."""
    joins = Joins(Model(setting.query, setting.statistics, costs, draws=1024))
    chosen = joins.plan(choose(joins, Budget()).plan)
    plans = list(dict.fromkeys([chosen, *enumerated(joins)]))
    total = options.windows * setting.window
    batches = cut(setting.tables(total, seed), setting.batch, total)
    if seed == 0:
        seconds(setting, chosen, batches)  # compiles what is not compiled yet
    times = {plan: seconds(setting, plan, batches) for plan in plans}
    finalists = sorted(times, key=times.__getitem__)[: options.finalists]
    for _ in range(options.repeats):
        for plan in dict.fromkeys([chosen, *finalists]):
            times[plan] = min(times[plan], seconds(setting, plan, batches))
    best = min(times, key=times.__getitem__)
    return Quality(
        setting.label,
        str(chosen),
        str(best),
        times[chosen],
        times[best],
        joins.model.cost(chosen).cpu * total,
        joins.model.cost(best).cpu * total,
        len(plans),
    )


def enumerated(joins: Joins) -> list[Node]:
    """Every shape, with default probe orders and with those of the model."""
    shapes = list(all_shapes(joins.model.query))
    return shapes + [best_orders(joins, shape) for shape in shapes]


def best_orders(joins: Joins, shape: Node) -> Node:
    """The plan of a shape with the probe orders that the model prefers."""
    return joins.plan(_candidate(joins, shape))


def _candidate(joins: Joins, node: Node) -> Candidate:
    if not isinstance(node, Join):
        return joins.leaf(joins.model.query.index(node.stream))
    return joins.combine([_candidate(joins, child) for child in node.children])


def seconds(setting: StationarySetting, plan: Node, batches: list[dict[str, pa.Table]]) -> float:
    """CPU seconds of one run."""
    run = LocalRun(setting.query, plan)
    began = time.process_time()
    for batch in batches:
        for results in run.stream(batch):
            del results
    return time.process_time() - began
