"""Figures 13 and 14: how long the algorithms take, what they find, and what their plans need.

The settings are those of `qualified_settings`. Planning time includes building the cost model from
the statistics; it is CPU time, and every algorithm begins with nothing remembered.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from plait.optimize.binary_dp import binary_dp
from plait.optimize.binary_greedy import binary_greedy
from plait.optimize.budget import Budget
from plait.optimize.candidate import Candidate, Joins
from plait.optimize.costs import PAPER
from plait.optimize.jtree_finder import jtree_finder
from plait.optimize.model import Model
from plait.optimize.pareto import pareto_finder
from plait.optimize.state_removal import state_removal
from plait.optimize.state_selection import state_selection
from plait.optimize.two_layer import two_layer
from plait.workshop.bench.report import Claim, Note, Report, Series, at_most
from plait.workshop.experiments.qualified_settings import QualifiedSetting, draw

_OPTIMAL = "binary tree, dynamic programming"
_GENERAL = "two-layer, bounds per pair"
_DP_SETS = 1023
"""Connected sets up to which the optimal binary tree is worked out for the comparison."""

_TWO_LAYER_MS = 100.0
_PARETO_SECONDS = 5.0
_PARETO_STREAMS = 9


# --- figure 13a -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """What can be varied."""

    fewest: int = 3
    most: int = 20
    settings: int = 100
    seconds: float = 5.0
    """For each number of streams, an algorithm begins no further setting after so many CPU
    seconds of its own ..."""
    at_least: int = 5
    """... and so many settings."""
    general: int = 5
    """Settings with bounds per pair, for some numbers of streams."""
    give_up: float = 10.0
    """An exhaustive search that takes longer has given up."""
    paper_plans: int = 60_000
    """The paper's search gives up when it keeps more subplans."""
    seed: int = 1


Algorithm = Callable[[Joins, QualifiedSetting, TimeOptions], bool]
"""Runs on fresh joins; whether it came to an end."""


def _algorithms() -> dict[str, Algorithm]:
    def binary(joins: Joins, _: QualifiedSetting, __: TimeOptions) -> bool:
        return binary_dp(joins, _DP_SETS) is not None

    def greedy(joins: Joins, _: QualifiedSetting, __: TimeOptions) -> bool:
        return bool(binary_greedy(joins).children)

    def selection(joins: Joins, setting: QualifiedSetting, _: TimeOptions) -> bool:
        return bool(state_selection(joins, setting.budget).children)

    def removal(joins: Joins, setting: QualifiedSetting, _: TimeOptions) -> bool:
        return bool(state_removal(joins, setting.budget).children)

    def layers(joins: Joins, setting: QualifiedSetting, _: TimeOptions) -> bool:
        return bool(two_layer(joins, setting.budget).attempts)

    def pareto(joins: Joins, setting: QualifiedSetting, options: TimeOptions) -> bool:
        return not pareto_finder(joins, setting.budget, options.give_up).gave_up

    def paper(joins: Joins, setting: QualifiedSetting, options: TimeOptions) -> bool:
        return not jtree_finder(joins, setting.budget, options.paper_plans).gave_up

    return {
        _OPTIMAL: binary,
        "binary tree, polynomial": greedy,
        "state-selection": selection,
        "state-removal": removal,
        "two-layer": layers,
        "JTree-Finder, Pareto": pareto,
        "JTree-Finder, paper": paper,
    }


@dataclass(slots=True)
class _Timed:
    """Medians by number of streams, and where an algorithm gave up."""

    milliseconds: dict[int, float] = field(default_factory=dict)
    settings: dict[int, int] = field(default_factory=dict)
    gave_up: int | None = None


def fig13a(options: TimeOptions, note: Note) -> Report:
    """Planning time over the number of streams, for every algorithm."""
    report = Report("qualified/fig13a", asdict(options), seed="003")
    timed = {name: _Timed() for name in _algorithms()}
    gaps: dict[int, list[float]] = {}
    for n in range(options.fewest, options.most + 1):
        _time_one(n, options, timed, gaps)
        done = ", ".join(
            f"{name} {t.milliseconds[n]:.3g} ms" for name, t in timed.items() if n in t.milliseconds
        )
        note(f"{n} streams: {done}")
    timed[_GENERAL] = _time_general(options)
    for name, t in timed.items():
        xs = sorted(t.milliseconds)
        report.series.append(
            Series(
                name,
                xs,
                [t.milliseconds[n] for n in xs],
                "ms of CPU, median",
                "streams",
                y_scale="log",
            )
        )
    report.systems["gave up at"] = {name: t.gave_up for name, t in timed.items()}
    for name, t in timed.items():
        report.systems[f"settings of {name}"] = {str(n): c for n, c in t.settings.items()}
    report.ratios["polynomial / optimal binary tree, CPU"] = {
        str(n): {"median": statistics.median(g), "max": max(g)} for n, g in gaps.items() if g
    }
    layers, pareto = timed["two-layer"].milliseconds, timed["JTree-Finder, Pareto"].milliseconds
    paper = timed["JTree-Finder, paper"].milliseconds
    for name, other in (("Pareto", pareto), ("paper", paper)):
        report.ratios[f"JTree-Finder, {name} / two-layer"] = {
            str(n): other[n] / layers[n] for n in other if n in layers
        }
    report.ratios["JTree-Finder, paper / Pareto"] = {
        str(n): paper[n] / pareto[n] for n in paper if n in pareto
    }
    report.claims += _time_claims(timed, layers, pareto)
    return report


def _time_one(
    n: int, options: TimeOptions, timed: dict[str, _Timed], gaps: dict[int, list[float]]
) -> None:
    """All algorithms on the settings of one number of streams, in turn on each setting."""
    times: dict[str, list[float]] = {name: [] for name, t in timed.items() if t.gave_up is None}
    failed = dict.fromkeys(times, 0)
    algorithms = _algorithms()
    for number in range(options.settings):
        due = [
            name
            for name, spent in times.items()
            if len(spent) < options.at_least or sum(spent) < options.seconds
        ]
        if not due:
            break
        setting = draw(n, number, options.seed)
        query, known = setting.query, setting.statistics
        for name in due:
            start = time.process_time()
            joins = Joins(Model(query, known, PAPER))
            ended = algorithms[name](joins, setting, options)
            times[name].append(time.process_time() - start)
            failed[name] += not ended
        if _OPTIMAL in due:
            joins = Joins(Model(query, known, PAPER))
            best = binary_dp(joins, _DP_SETS)
            if best is not None:
                gaps.setdefault(n, []).append(binary_greedy(joins).cost.cpu / best.cost.cpu)
    for name, found in times.items():
        if 2 * failed[name] > len(found):
            timed[name].gave_up = n
        else:
            timed[name].milliseconds[n] = 1000 * statistics.median(found)
            timed[name].settings[n] = len(found)


def _time_general(options: TimeOptions) -> _Timed:
    """The two-layer framework where every joined pair has bounds of its own."""
    timed = _Timed()
    for n in range(options.most, options.fewest - 1, -5):
        found = []
        for number in range(options.general):
            setting = draw(n, number, options.seed)
            query = setting.with_intervals(options.seed)
            start = time.process_time()
            joins = Joins(Model(query, setting.statistics, PAPER))
            two_layer(joins, setting.budget)
            found.append(time.process_time() - start)
        timed.milliseconds[n] = 1000 * statistics.median(found)
        timed.settings[n] = len(found)
    return timed


def _time_claims(
    timed: dict[str, _Timed], layers: dict[int, float], pareto: dict[int, float]
) -> list[Claim]:
    most = max(layers)
    furthest = max(pareto)
    claims = [
        at_most(
            "two-layer-time",
            f"the two-layer framework plans {most} streams at run time (median)",
            layers[most],
            _TWO_LAYER_MS,
            "ms",
        ),
        Claim(
            "jtree-finder-exponential",
            "JTree-Finder is much slower than the polynomial strategies",
            f"{pareto[furthest] / layers[furthest]:.1f} times two-layer at {furthest} streams",
            pareto[furthest] / layers[furthest],
            "more than 1",
            pareto[furthest] > layers[furthest],
        ),
    ]
    if _PARETO_STREAMS in pareto:
        claims.append(
            at_most(
                "pareto-time",
                f"JTree-Finder with a Pareto frontier plans {_PARETO_STREAMS} streams (median)",
                pareto[_PARETO_STREAMS] / 1000,
                _PARETO_SECONDS,
                "s",
            )
        )
    gave_up = timed["JTree-Finder, paper"].gave_up
    claims.append(
        Claim(
            "jtree-finder-gives-up",
            "JTree-Finder runs out of resources for a smaller N",
            "nowhere" if gave_up is None else f"at {gave_up} streams",
            float(gave_up or 0),
            "gives up before the others",
            gave_up is not None or most < _PARETO_STREAMS,
        )
    )
    return claims


# --- figures 13b and 13c --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FindOptions:
    """What can be varied."""

    fewest: int = 3
    most: int = 9
    """JTree-Finder must come to an end here: it decides whether a plan exists."""
    settings: int = 100
    seconds: float = 120.0
    """For each number of streams, no further setting is begun after so many CPU seconds."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """One setting: whether a plan exists, and who found one."""

    number: int
    setting: QualifiedSetting
    exists: bool
    two_layer: bool
    literal: bool
    selection: bool
    removal: bool


def verdict(streams: int, number: int, seed: int = 1) -> Verdict:
    """What every algorithm says of one setting.

    >>> found = verdict(4, 1)
    >>> found.two_layer == found.exists
    True
    """
    setting = draw(streams, number, seed)
    joins, budget = setting.joins(), setting.budget
    exists = bool(pareto_finder(joins, budget).plans)
    return Verdict(
        number,
        setting,
        exists,
        two_layer(joins, budget).answer != "none",
        two_layer(joins, budget, literal=True).answer != "none",
        budget.holds(state_selection(joins, budget).cost),
        budget.holds(state_removal(joins, budget).cost),
    )


def exists(setting: QualifiedSetting) -> bool:
    """Whether there is a qualified plan: the quick framework's is a proof, the frontier decides.

    >>> exists(draw(4, 1)) == verdict(4, 1).exists
    True
    """
    joins, budget = setting.joins(), setting.budget
    found = two_layer(joins, budget)
    return budget.holds(found.plan.cost) or bool(pareto_finder(joins, budget).plans)


def _verdicts(options: FindOptions, note: Note) -> dict[int, list[Verdict]]:
    found: dict[int, list[Verdict]] = {}
    for n in range(options.fewest, options.most + 1):
        began = time.process_time()
        found[n] = []
        for number in range(options.settings):
            if number and time.process_time() - began > options.seconds:
                break
            found[n].append(verdict(n, number, options.seed))
        exist = sum(v.exists for v in found[n])
        both = sum(v.exists and v.two_layer for v in found[n])
        note(f"{n} streams: {len(found[n])} settings, {exist} have a plan, two-layer finds {both}")
    return found


def _percentage(verdicts: list[Verdict], attribute: str) -> float:
    exist = [v for v in verdicts if v.exists]
    return 100 * sum(getattr(v, attribute) for v in exist) / len(exist) if exist else 100.0


def fig13b(options: FindOptions, note: Note) -> Report:
    """Of the settings for which a qualified plan exists, for how many each algorithm finds one."""
    report = Report("qualified/fig13b", asdict(options), seed="003")
    found = _verdicts(options, note)
    labels = {
        "two_layer": "two-layer",
        "literal": "two-layer, to the letter",
        "selection": "state-selection alone",
        "removal": "state-removal alone",
    }
    xs = list(found)
    for attribute, label in labels.items():
        ys = [_percentage(found[n], attribute) for n in xs]
        report.series.append(Series(label, xs, ys, "% qualified", "streams"))
    missed = [v for verdicts in found.values() for v in verdicts if v.exists and not v.two_layer]
    wrong = [v for verdicts in found.values() for v in verdicts if v.two_layer and not v.exists]
    exist = sum(v.exists for verdicts in found.values() for v in verdicts)
    share = 100 * (exist - len(missed)) / exist if exist else 100.0
    report.systems["settings"] = {str(n): len(v) for n, v in found.items()}
    report.systems["counterexamples"] = {
        f"{len(v.setting.rates)} streams, setting {v.number}": v.setting.to_dict() for v in missed
    }
    report.claims += [
        Claim(
            "qualified-percentage",
            "wherever JTree-Finder finds a qualified plan, the two-layer framework does (100 %)",
            f"{share:.2f} %, {len(missed)} of {exist} missed",
            share,
            "100 %",
            not missed,
        ),
        Claim(
            "no-false-plan",
            "no plan is found where none exists",
            f"{len(wrong)} settings",
            float(len(wrong)),
            "0",
            not wrong,
        ),
    ]
    return report


def fig13c(options: FindOptions, note: Note) -> Report:
    """The share of settings for which a qualified plan exists."""
    report = Report("qualified/fig13c", asdict(options), seed="003")
    ys: list[float] = []
    xs = list(range(options.fewest, options.most + 1))
    for n in xs:
        began = time.process_time()
        found: list[bool] = []
        for number in range(options.settings):
            if number and time.process_time() - began > options.seconds:
                break
            found.append(exists(draw(n, number, options.seed)))
        ys.append(100 * sum(found) / len(found))
        report.systems[f"{n} streams"] = {"settings": len(found), "have a plan": sum(found)}
        note(f"{n} streams: {len(found)} settings, {sum(found)} have a plan")
    report.series.append(Series("a qualified plan exists", xs, ys, "% of settings", "streams"))
    some = [n for n, y in zip(xs, ys, strict=True) if 0 < y < 100]
    report.claims.append(
        Claim(
            "both-occur",
            "for some settings a qualified plan exists, for others none (no trend)",
            f"between {min(ys):.0f} % and {max(ys):.0f} %",
            float(len(some)),
            "both at every number of streams",
            len(some) == len(xs),
        )
    )
    return report


# --- figure 14 ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CloudOptions:
    """What can be varied."""

    settings: int = 100
    seconds: float = 40.0
    """For each number of streams, no further setting is begun after so many seconds."""
    seed: int = 1


CLOUD_STREAMS = (3, 5, 10)


def fig14(options: CloudOptions, note: Note) -> Report:
    """Memory and CPU of the qualified plans of state-selection and of state-removal."""
    report = Report("qualified/fig14", asdict(options), seed="003")
    apart: list[float] = []
    memory: list[float] = []
    cpu: list[float] = []
    details: dict[str, Any] = {}
    for n in CLOUD_STREAMS:
        pairs = _clouds(n, options)
        for side, label in enumerate(("state-selection", "state-removal")):
            points = sorted((p[side].cost.tuples, p[side].cost.cpu) for p in pairs)
            report.series.append(
                Series(
                    f"{label}, N = {n}",
                    [x for x, _ in points],
                    [y for _, y in points],
                    f"CPU seconds per second, N = {n}",
                    "tuples in states",
                    x_scale="log",
                    kind="points",
                )
            )
        memory.append(statistics.median(r.cost.tuples / s.cost.tuples for s, r in pairs))
        cpu.append(statistics.median(s.cost.cpu / r.cost.cpu for s, r in pairs))
        apart.append(
            sum(
                s.cost.tuples < r.cost.tuples and s.cost.cpu > r.cost.cpu for s, r in pairs
            ) / len(pairs)
        )  # fmt: skip
        opposite = sum(s.cost.tuples > r.cost.tuples and s.cost.cpu < r.cost.cpu for s, r in pairs)
        details[f"N = {n}"] = {"settings": len(pairs), "the other way round": opposite}
        note(f"{n} streams: {len(pairs)} settings, {100 * apart[-1]:.0f} % apart")
    report.systems["clouds"] = details
    xs = list(CLOUD_STREAMS)
    shares = [100 * a for a in apart]
    report.series.append(
        Series("selection keeps less and computes more", xs, shares, "% of settings", "streams")
    )
    report.ratios["memory, removal / selection"] = dict(zip(map(str, xs), memory, strict=True))
    report.ratios["CPU, selection / removal"] = dict(zip(map(str, xs), cpu, strict=True))
    report.claims += [
        _more("less-memory", "state-selection's plans use less memory", memory[-1]),
        _more("more-cpu", "state-selection's plans use more CPU", cpu[-1]),
        Claim(
            "clouds-separate",
            "the two clouds separate as N grows",
            ", ".join(f"{100 * a:.0f} % at N = {n}" for n, a in zip(xs, apart, strict=True)),
            apart[-1] - apart[0],
            "growing",
            apart[0] < apart[-1] and apart[0] <= apart[1],
        ),
    ]
    return report


def _more(id_: str, claim: str, ratio: float) -> Claim:
    measured = f"{ratio:.3f} times at N = {CLOUD_STREAMS[-1]} (median)"
    return Claim(id_, claim, measured, ratio, "more than 1", ratio > 1)


def _clouds(n: int, options: CloudOptions) -> list[tuple[Candidate, Candidate]]:
    """The plans of both algorithms, for the settings where both find a qualified one."""
    began = time.perf_counter()
    pairs = []
    for number in range(options.settings):
        if number >= 10 and time.perf_counter() - began > options.seconds:
            break
        setting = draw(n, number, options.seed)
        joins, budget = setting.joins(), setting.budget
        found = state_selection(joins, budget), state_removal(joins, budget)
        if all(_qualified(budget, plan) for plan in found):
            pairs.append(found)
    return pairs


def _qualified(budget: Budget, plan: Candidate) -> bool:
    return budget.holds(plan.cost)
