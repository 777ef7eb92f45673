"""Teddies on stationary streams, where adapting gains nothing: what does it cost?

Every legal plan joins the same rows, each mjoin with every probe order, and so do Teddies with
each policy. Two graphs: three streams that share one key, and the chain R.1 = S.1, S.2 = T.1; each
with many results per row and with few. Systems take turns; the best plan is the one with the
lowest median. How long tuples wait in metaqueues is reported for each policy.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from plait.engine.tactics.routed import RoutedTactic
from plait.local.host import LocalRun
from plait.plan.routed import POLICIES, Plan, Teddies
from plait.query.query import Query
from plait_lab.engine.longest_wait import longest_wait
from plait_lab.exhaustive.plans import all_plans
from plait_lab.reporting.report import Note, Report, at_most, equal, spread
from plait_lab.workloads.keyed import keyed_query, keyed_tables

_LIMIT = 1.5
_SHAPES = {"one key": [["k"]] * 3, "chain": [["a"], ["a", "b"], ["b"]]}


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    rows: int = 60_000
    """Rows per stream where there are many results; four times as many where there are few."""
    window_seconds: int = 5
    many_keys: int = 20_000
    """Keys where there are few results."""
    few_keys: int = 1_000
    batches: int = 5
    repeats: int = 5
    seed: int = 1


def teddies_overhead(options: Options, note: Note) -> Report:
    """What routing costs where there is nothing to adapt to: Teddies beside the best plan."""
    report = Report("teddies-overhead", asdict(options))
    for shape, keys in _SHAPES.items():
        query = keyed_query(keys, options.window_seconds * 1_000_000)
        for density, rows, domain in (
            ("many results", options.rows, options.few_keys),
            ("few results", 4 * options.rows, options.many_keys),
        ):
            tables = keyed_tables(query, rows, domain, options.seed)
            _compare(report, f"{shape}, {density}", query, tables, options, note)
    return report


def _compare(
    report: Report,
    name: str,
    query: Query,
    tables: dict[str, pa.Table],
    options: Options,
    note: Note,
) -> None:
    static: dict[str, Plan] = {f"plan {n}": p for n, p in enumerate(all_plans(query, orders="all"))}
    routers: dict[str, Plan] = {f"teddies, {p}": Teddies(policy=p) for p in POLICIES}
    times: dict[str, list[float]] = {}
    results: dict[str, int] = {}
    waits: dict[str, dict[str, Any]] = {}
    for repeat in range(options.repeats + 1):
        note(f"{name}: " + (f"run {repeat} of {options.repeats}" if repeat else "warming up"))
        for label, plan in (static | routers).items():
            seconds, run = _measure(query, plan, tables, options.batches)
            results[label] = run.counts.results
            if repeat:
                times.setdefault(label, []).append(seconds)
            if run.engine.router is not None:
                waits[label] = _waits(run.engine.router)
    best = min(static, key=lambda p: spread(times[p])["median"])
    worst = max(static, key=lambda p: spread(times[p])["median"])
    rows = sum(map(len, tables.values()))
    for label in (best, worst, *routers):
        role = {best: "best plan", worst: "worst plan"}.get(label, label)
        report.systems[f"{name}: {role}"] = {
            "plan": str((static | routers)[label]),
            "seconds": spread(times[label])["median"],
            "spread": spread(times[label]),
            "steady_rows_per_s": rows / spread(times[label])["median"],
            "results": results[label],
        } | waits.get(label, {})
    for label in routers:
        ratio = spread([t / b for t, b in zip(times[label], times[best], strict=True)])
        report.ratios[f"{name}: {label} / best plan"] = ratio
        if label == "teddies, ordered":
            report.claims.append(
                at_most(
                    name.replace(", ", "-").replace(" ", "-"),
                    f"{name}: Teddies take at most {_LIMIT} times as long as the best static plan",
                    ratio["median"],
                    _LIMIT,
                )
            )
    report.claims.append(
        equal(f"{name}: results", "all find as many results", list(results.values()))
    )


def _waits(router: RoutedTactic) -> dict[str, Any]:
    """How long tuples waited, over all metaqueues, and what bounds it."""
    queues = router.metaqueues()
    tuples = sum(q.tuples for q in queues)
    settings = router.plan
    assert isinstance(settings, Teddies)
    return {
        "packets": sum(q.packets for q in queues),
        "tuples per packet": tuples / max(1, sum(q.packets for q in queues)),
        "wait": {
            "mean_rounds": sum(q.mean_rounds * q.tuples for q in queues) / max(1, tuples),
            "longest_rounds": max(q.longest_rounds for q in queues),
            "bound_rounds": longest_wait(settings, len(queues), max(q.most for q in queues)),
            "mean_seconds": sum(q.mean_seconds * q.tuples for q in queues) / max(1, tuples),
            "longest_seconds": max(q.longest_seconds for q in queues),
            "bounded by": f"counter_limit={settings.counter_limit}, "
            f"threshold_limit={settings.threshold_limit}, patience={settings.patience}",
        },
    }


def _measure(
    query: Query, plan: Plan, tables: dict[str, pa.Table], batches: int
) -> tuple[float, LocalRun]:
    """The processor seconds of one run."""
    pa.set_cpu_count(1)
    run = LocalRun(query, plan)
    began = time.process_time()
    for b in range(batches):
        batch = {}
        for name, table in tables.items():
            start, stop = (len(table) * x // batches for x in (b, b + 1))
            batch[name] = table.slice(start, stop - start)
        for _ in run.stream(batch):
            pass
    return time.process_time() - began, run
