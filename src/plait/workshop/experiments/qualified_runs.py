"""Figures 7 and 8: plans under limits of CPU and memory that are real, on the engine itself."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import pyarrow as pa

from plait.optimize.budget import Budget
from plait.optimize.candidate import Candidate, Joins, kind
from plait.optimize.layer_one import best_binary
from plait.optimize.pareto import pareto_finder
from plait.plan.jtree import Node
from plait.workshop.bench.report import Claim, Note, Report, Series
from plait.workshop.experiments.qualified_sets import (
    SETS,
    Need,
    ParameterSet,
    Trace,
    by_equations,
    need,
    paced,
)


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    windows: float = 4.0
    """The length of a run, in windows."""
    seed: int = 1


def fig7(options: Options, note: Note) -> Report:
    """Both the mjoin and the binary tree fit: the same throughput, more tuples in the tree."""
    report = Report("qualified/fig7", asdict(options), seed="003")
    _run_set(report, SETS[0], options, note)
    return report


def fig8(options: Options, note: Note) -> Report:
    """Only the binary tree fits, only the mjoin, only a jtree: sets 2, 3 and 4."""
    report = Report("qualified/fig8", asdict(options), seed="003")
    for given in SETS[1:]:
        _run_set(report, given, options, note)
    return report


@dataclass(frozen=True, slots=True)
class _Plans:
    """The plans of a set by what the paper calls them."""

    plans: dict[str, Node]
    needs: dict[str, Need]


def _run_set(report: Report, given: ParameterSet, options: Options, note: Note) -> None:
    seconds = options.windows * given.window
    tables = given.tables(seconds, options.seed)
    note(f"{given.name}: what the plans need")
    found = _needs(given, tables, seconds)
    cpu, memory = _available(given, found.needs)
    traces = {}
    for label, plan in found.plans.items():
        note(f"{given.name}: {label} {plan} within {cpu:.3g} CPU and {memory / 1e6:.3g} MB")
        traces[label] = paced(given, plan, tables, seconds, 1 / cpu, memory)
    for label, trace in traces.items():
        name = f"{given.name}, {label}"
        report.series += [
            Series(name, trace.clock, trace.results, "results so far", "event seconds"),
            Series(name, trace.clock, trace.tuples, "tuples in states", "event seconds"),
            Series(name, trace.clock, trace.queued, "tuples in queues", "event seconds"),
        ]
        failure = trace.failure
        report.systems[name] = {
            "plan": str(found.plans[label]),
            "needed": asdict(found.needs[label]),
            "available": {"cpu": cpu, "bytes": memory},
            "results": trace.throughput,
            "queued": trace.queued[-1] if trace.queued else 0.0,
            "failure": None if failure is None else str(failure),
            "by the paper's equations": asdict(by_equations(given, found.plans[label])),
        }
    report.claims += _claims(given, traces)


def _needs(given: ParameterSet, tables: dict[str, pa.Table], seconds: float) -> _Plans:
    joins = given.joins()
    plans = {"mjoin": joins.plan(joins.mjoin()), "binary tree": joins.plan(best_binary(joins))}
    if given.situation == "only a jtree fits":
        plans["jtree"] = joins.plan(_mixed(joins))
    first = next(iter(plans.values()))
    need(given, first, tables, min(seconds, 2 * given.window))
    measured = {label: need(given, plan, tables, seconds) for label, plan in plans.items()}
    return _Plans(plans, measured)


def _mixed(joins: Joins) -> Candidate:
    """The jtree between the two that is nearest to being better than both."""
    mjoin, tree = joins.mjoin().cost, best_binary(joins).cost
    found = [
        plan
        for plan in pareto_finder(joins, Budget()).plans
        if kind(plan) == "jtree" and plan.cost.cpu < mjoin.cpu and plan.cost.bytes < tree.bytes
    ]
    return min(found, key=lambda p: p.cost.cpu / mjoin.cpu + p.cost.bytes / tree.bytes)


def _available(given: ParameterSet, needs: dict[str, Need]) -> tuple[float, int]:
    """CPU and memory that put the plans where figure 5 has them."""
    most_cpu = max(n.cpu for n in needs.values())
    most_memory = max(n.bytes for n in needs.values())
    mjoin, tree = needs["mjoin"], needs["binary tree"]
    if given.situation == "both fit":
        return 2 * most_cpu, 2 * most_memory
    if given.situation == "only the binary tree fits":
        return math.sqrt(mjoin.cpu * tree.cpu), 2 * most_memory
    if given.situation == "only the mjoin fits":
        return 2 * most_cpu, round(math.sqrt(mjoin.bytes * tree.bytes))
    mixed = needs["jtree"]
    return math.sqrt(mixed.cpu * mjoin.cpu), round(math.sqrt(mixed.bytes * tree.bytes))


def _claims(given: ParameterSet, traces: dict[str, Trace]) -> list[Claim]:
    mjoin, tree = traces["mjoin"], traces["binary tree"]
    name = given.name.replace(" ", "-")
    if given.situation == "both fit":
        ratio = tree.throughput / max(1.0, mjoin.throughput)
        size = max(tree.tuples) / max(mjoin.tuples)
        return [
            _claim(f"{name}-throughput", "mjoin and binary tree have similar throughput",
                   f"{ratio:.3f} times", ratio, "within 5 %", abs(ratio - 1) <= 0.05),
            _claim(f"{name}-memory", "the binary tree keeps many more tuples",
                   f"{size:.2f} times", size, "more than 1", size > 1),
            _claim(f"{name}-fits", "both run to the end", _state(mjoin, tree),
                   float(_fine(mjoin) and _fine(tree)), "no failure", _fine(mjoin) and _fine(tree)),
        ]  # fmt: skip
    if given.situation == "only the binary tree fits":
        ratio = tree.throughput / max(1.0, mjoin.throughput)
        return [
            _claim(f"{name}-throughput", "the binary tree has a much higher throughput",
                   f"{ratio:.2f} times", ratio, "more than 1.15", ratio > 1.15),
            _claim(f"{name}-queues", "tuples pile up in the mjoin's queues, not in the tree's",
                   f"{mjoin.queued[-1]:.0f} against {tree.queued[-1]:.0f}",
                   mjoin.queued[-1] - tree.queued[-1], "more in the mjoin's",
                   mjoin.queued[-1] > 2 * tree.queued[-1]),
        ]  # fmt: skip
    if given.situation == "only the mjoin fits":
        return [
            _failed(f"{name}-memory", "the binary tree runs out of memory", tree),
            _claim(f"{name}-mjoin", "the mjoin runs to the end", _state(mjoin),
                   float(_fine(mjoin)), "no failure", _fine(mjoin)),
            _claim(f"{name}-throughput", "the mjoin produces more in the end",
                   f"{mjoin.throughput:.0f} against {tree.throughput:.0f} results",
                   mjoin.throughput - tree.throughput, "more", mjoin.throughput > tree.throughput),
        ]  # fmt: skip
    mixed = traces["jtree"]
    return [
        _failed(f"{name}-memory", "the binary tree runs out of memory", tree),
        _claim(f"{name}-jtree", "the jtree runs to the end", _state(mixed),
               float(_fine(mixed)), "no failure", _fine(mixed)),
        _claim(f"{name}-throughput", "the jtree has a higher throughput than the mjoin",
               f"{mixed.throughput:.0f} against {mjoin.throughput:.0f} results",
               mixed.throughput / max(1.0, mjoin.throughput), "more than 1.1 times",
               mixed.throughput > 1.1 * mjoin.throughput),
        _claim(f"{name}-queues", "the jtree keeps up, the mjoin does not",
               f"{mixed.queued[-1]:.0f} against {mjoin.queued[-1]:.0f} tuples in queues",
               mjoin.queued[-1] - mixed.queued[-1], "more in the mjoin's",
               mjoin.queued[-1] > 2 * mixed.queued[-1]),
    ]  # fmt: skip


def _claim(id_: str, claim: str, measured: str, value: float, bound: str, holds: bool) -> Claim:
    return Claim(id_, claim, measured, value, bound, holds)


def _fine(trace: Trace) -> bool:
    return trace.failure is None


def _state(*traces: Trace) -> str:
    failures = [str(t.failure) for t in traces if t.failure is not None]
    return "; ".join(failures) or "no failure"


def _failed(id_: str, claim: str, trace: Trace) -> Claim:
    when = trace.clock[-1] if trace.clock else 0.0
    text = f"after {when:.0f} s: {trace.failure}" if trace.failure else "no failure"
    return Claim(id_, claim, text, when, "fails", trace.failure is not None)
