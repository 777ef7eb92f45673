"""Figures 13 and 14: how long the algorithms take, what they find, and what their plans need.

The settings are those of `qualified_settings`. Planning time includes building the cost model from
the statistics; it is CPU time, and every algorithm begins with nothing remembered. Probe orders are
the best ones up to five inputs of a join and greedy above that, so from six streams on «a plan
exists» is relative to greedy orders; figure 13b says what those cost.
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
from plait.optimize.orders import exact_order, greedy_order
from plait.optimize.pareto import pareto_finder
from plait.optimize.state_removal import state_removal
from plait.optimize.state_selection import state_selection
from plait.optimize.two_layer import two_layer
from plait.workshop.bench.comparisons import Falls, Limit, Near, Same, Smaller
from plait.workshop.bench.report import (
    Claim,
    Note,
    Report,
    Series,
    at_most,
    by_paper,
    by_project,
    spread,
)
from plait.workshop.experiments.qualified_letter import letter_selection, letter_two_layer
from plait.workshop.experiments.qualified_settings import QualifiedSetting, draw

_OPTIMAL = "binary tree, dynamic programming"
_GENERAL = "two-layer, bounds per pair"
_DP_SETS = 1023
"""Connected sets up to which the optimal binary tree is worked out for the comparison."""

_PARETO, _PAPER = "JTree-Finder, Pareto", "JTree-Finder, paper"
_SEARCHES = (_PARETO, _PAPER)
_POLYNOMIAL = ("state-selection", "state-removal", "two-layer")

_TWO_LAYER_MS = 100.0
_PARETO_SECONDS = 5.0
_PARETO_STREAMS = 8
_PLACE_13 = "section 6.2, on figure 13a"


# --- figure 13a -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """What can be varied."""

    fewest: int = 3
    most: int = 20
    settings: int = 100
    seconds: float = 0.0
    """With a number above 0, an algorithm begins no further setting of one number of streams after
    so many CPU seconds of its own."""
    searches: int = 8
    """Streams up to which the exhaustive searches are run at all."""
    at_least: int = 5
    """Settings that are run whatever they take."""
    general: int = 5
    """Settings with bounds per pair, for some numbers of streams."""
    give_up: float = 10.0
    """An exhaustive search that takes longer has given up."""
    paper_plans: int = 20_000
    """The paper's search gives up when it keeps more subplans: our stand-in for its memory."""
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
        _PARETO: pareto,
        _PAPER: paper,
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
    layers, pareto = timed["two-layer"].milliseconds, timed[_PARETO].milliseconds
    paper = timed[_PAPER].milliseconds
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
    times: dict[str, list[float]] = {
        name: []
        for name, t in timed.items()
        if t.gave_up is None and (n <= options.searches or name not in _SEARCHES)
    }
    failed = dict.fromkeys(times, 0)
    algorithms = _algorithms()
    for number in range(options.settings):
        due = [
            name
            for name, spent in times.items()
            if len(spent) < options.at_least or not options.seconds or sum(spent) < options.seconds
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
    paper = timed[_PAPER]
    last = max(paper.milliseconds, default=max(pareto))
    slow = paper.milliseconds.get(last, pareto[last])
    ahead = [slow / timed[name].milliseconds[last] for name in _POLYNOMIAL]
    growth = [paper.milliseconds[n] / layers[n] for n in sorted(paper.milliseconds)]
    gave_up = paper.gave_up
    claims = [
        by_paper(
            "jtree-finder-slower",
            _PLACE_13,
            f"JTree-Finder (algorithm 1) is much slower than the polynomial strategies: at {last} "
            "streams, the largest that it comes to an end with",
            Smaller([1.0] * len(ahead), ahead, 0.1),
            "a few streams have few plans to search",
            theirs="much slower",
            covers=("algorithm 1", "algorithm 2", "algorithm 3", "algorithm 4"),
        ),
        by_paper(
            "jtree-finder-exponential",
            "section 3.3.1 and figure 13a",
            "JTree-Finder has an exponential time complexity: its time over that of the two-layer "
            "framework falls behind with every stream",
            Falls([-g for g in growth]) if len(growth) > 1 else Falls([0.0, 0.0]),
            "a few streams have few plans to search",
            theirs="exponential",
            covers=("algorithm 1",),
        ),
        by_paper(
            "jtree-finder-gives-up",
            _PLACE_13,
            "JTree-Finder runs out of resources for a smaller N (here: of room for its subplans)",
            Limit(float(gave_up or most + 1), float(most)),
            "it came to an end for every number of streams that it was given, and to try more "
            "takes longer than all other figures together",
            measured="nowhere" if gave_up is None else f"at {gave_up} streams",
            theirs="for a smaller N",
        ),
        at_most(
            "two-layer-time",
            f"the two-layer framework plans {most} streams at run time (median)",
            layers[most],
            _TWO_LAYER_MS,
            "ms",
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
    return claims


# --- figures 13b and 13c --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FindOptions:
    """What can be varied."""

    fewest: int = 3
    most: int = 8
    """JTree-Finder must come to an end here: it decides whether a plan exists."""
    settings: int = 100
    seconds: float = 0.0
    """With a number above 0, no further setting of one number of streams is begun after so many
    CPU seconds."""
    exact: int = 6
    """Streams for which probe orders are also searched exhaustively."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """One setting: whether a plan exists, and who found one."""

    number: int
    setting: QualifiedSetting
    exists: bool
    two_layer: bool
    literal: bool
    selection: bool
    removal: bool


def verdict(streams: int, number: int, seed: int = 1) -> PlanVerdict:
    """What every algorithm says of one setting.

    >>> found = verdict(4, 1)
    >>> found.two_layer == found.exists
    True
    """
    setting = draw(streams, number, seed)
    joins, budget = setting.joins(), setting.budget
    exists = bool(pareto_finder(joins, budget).plans)
    return PlanVerdict(
        number,
        setting,
        exists,
        two_layer(joins, budget).answer != "none",
        letter_two_layer(joins, budget) is not None,
        letter_selection(joins, budget) is not None,
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


def _verdicts(options: FindOptions, note: Note) -> dict[int, list[PlanVerdict]]:
    found: dict[int, list[PlanVerdict]] = {}
    for n in range(options.fewest, options.most + 1):
        began = time.process_time()
        found[n] = []
        for number in range(options.settings):
            if number and options.seconds and time.process_time() - began > options.seconds:
                break
            found[n].append(verdict(n, number, options.seed))
        exist = sum(v.exists for v in found[n])
        both = sum(v.exists and v.two_layer for v in found[n])
        note(f"{n} streams: {len(found[n])} settings, {exist} have a plan, two-layer finds {both}")
    return found


def _percentage(verdicts: list[PlanVerdict], attribute: str) -> float:
    exist = [v for v in verdicts if v.exists]
    return 100 * sum(getattr(v, attribute) for v in exist) / len(exist) if exist else 100.0


def fig13b(options: FindOptions, note: Note) -> Report:
    """Of the settings for which a qualified plan exists, for how many each algorithm finds one."""
    report = Report("qualified/fig13b", asdict(options), seed="003")
    found = _verdicts(options, note)
    labels = {
        "selection": "state-selection (algorithm 3)",
        "removal": "state-removal (algorithm 4)",
        "literal": "two-layer (algorithm 2)",
        "two_layer": "two-layer, Plait's extension",
    }
    xs = list(found)
    shares = {a: [_percentage(found[n], a) for n in xs] for a in labels}
    for attribute, label in labels.items():
        report.series.append(Series(label, xs, shares[attribute], "% qualified", "streams"))
    everything = [v for verdicts in found.values() for v in verdicts]
    missed = [v for v in everything if v.exists and not v.two_layer]
    wrong = [v for v in everything if v.two_layer and not v.exists]
    exist = sum(v.exists for v in everything)
    report.systems["settings"] = {str(n): len(v) for n, v in found.items()}
    report.systems["counterexamples"] = {
        f"{len(v.setting.rates)} streams, setting {v.number}": v.setting.to_dict() for v in missed
    }
    why = {
        "selection": "it gives up at the first merge that saves CPU and exceeds the memory, though "
        "another edge would do",
        "removal": "it begins with one binary tree, and from there some plans cannot be reached",
        "literal": "it ends where the binary tree exceeds the CPU, though observation 2 of section "
        "2.4 says that other plans may need less",
    }
    for attribute, number in (("selection", 3), ("removal", 4), ("literal", 2)):
        got = 100 * sum(getattr(v, attribute) and v.exists for v in everything) / max(1, exist)
        report.claims.append(
            by_paper(
                f"{attribute}-percentage",
                "section 6.2, on figure 13b",
                f"{labels[attribute]} has a qualified percentage of 100 %, as JTree-Finder has",
                Near([got], [100.0], 0.005),
                why[attribute],
                theirs="100 %",
                measured=f"{got:.1f} % of {exist} settings; by number of streams "
                f"{min(shares[attribute]):.0f} to {max(shares[attribute]):.0f} %",
                covers=(f"algorithm {number}",),
            )
        )
    gaps = [_order_gap(options.exact, number, options.seed) for number in range(options.settings)]
    report.ratios["mjoin with greedy probe orders / with the best ones, CPU"] = spread(gaps)
    report.claims += [
        by_project(
            "extension-percentage",
            "wherever JTree-Finder finds a qualified plan, the two-layer framework as extended "
            "here does",
            Same([len(missed), 0]),
            measured=f"{exist - len(missed)} of {exist}",
        ),
        by_project("no-false-plan", "no plan is found where none exists", Same([len(wrong), 0])),
        by_project(
            "probe-orders",
            "greedy probe orders cost little more than the best ones: the mjoin of "
            f"{options.exact} streams, median over the settings",
            Limit(spread(gaps)["median"], 1.05),
        ),
    ]
    return report


def _order_gap(streams: int, number: int, seed: int) -> float:
    """The CPU of an mjoin with greedy probe orders, over that with the best ones."""
    model = draw(streams, number, seed).joins().model
    parts = tuple(1 << i for i in range(streams))
    costs = [
        model.join_cost(parts, [order(model, parts, c).probes for c in range(streams)]).cpu
        for order in (greedy_order, exact_order)
    ]
    return costs[0] / costs[1]


def fig13c(options: FindOptions, note: Note) -> Report:
    """The share of settings for which a qualified plan exists."""
    report = Report("qualified/fig13c", asdict(options), seed="003")
    ys: list[float] = []
    xs = list(range(options.fewest, options.most + 1))
    for n in xs:
        began = time.process_time()
        found: list[bool] = []
        for number in range(options.settings):
            if number and options.seconds and time.process_time() - began > options.seconds:
                break
            found.append(exists(draw(n, number, options.seed)))
        ys.append(100 * sum(found) / len(found))
        report.systems[f"{n} streams"] = {"settings": len(found), "have a plan": sum(found)}
        note(f"{n} streams: {len(found)} settings, {sum(found)} have a plan")
    report.series.append(Series("a qualified plan exists", xs, ys, "% of settings", "streams"))
    without = sum(y < 100 for y in ys)
    report.claims.append(
        by_paper(
            "none-may-exist",
            "section 6.2, on figure 13c",
            "for some settings a qualified plan does not exist: numbers of streams at which that "
            "occurs",
            Limit(float(without), 1.0, least=True),
            "the limits are drawn too loosely",
            theirs="it occurs; no trend can be drawn",
            measured=f"a plan exists for {min(ys):.0f} % to {max(ys):.0f} % of the settings",
        )
    )
    report.ratios["note"] = "the share follows from how windows and limits are drawn, as theirs did"
    return report


# --- figure 14 ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CloudOptions:
    """What can be varied."""

    settings: int = 100
    seconds: float = 0.0
    """With a number above 0, no further setting of one number of streams is begun after so many."""
    seed: int = 1


CLOUD_STREAMS = (3, 5, 10)


def fig14(options: CloudOptions, note: Note) -> Report:
    """Memory and CPU of the qualified plans of state-selection and of state-removal."""
    report = Report("qualified/fig14", asdict(options), seed="003")
    apart: list[float] = []
    memory: list[float] = []
    cpu: list[float] = []
    details: dict[str, Any] = {}
    pairs_of: dict[int, list[tuple[Candidate, Candidate]]] = {}
    for n in CLOUD_STREAMS:
        pairs = pairs_of[n] = _clouds(n, options)
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
    last = pairs_of[CLOUD_STREAMS[-1]]
    place = "section 6.3, on figure 14"
    report.claims += [
        by_paper(
            "less-memory",
            place,
            "the plans of state-selection tend to have smaller memory costs (N = 10)",
            Smaller(
                [s.cost.tuples for s, _ in last], [r.cost.tuples for _, r in last], unit="tuples"
            ),
            "both algorithms find the same plans",
            theirs="smaller",
        ),
        by_paper(
            "more-cpu",
            place,
            "but larger CPU costs than those of state-removal (N = 10)",
            Smaller([r.cost.cpu for _, r in last], [s.cost.cpu for s, _ in last], unit="s/s"),
            "both algorithms find the same plans",
            theirs="larger",
        ),
        by_paper(
            "mixed-at-3",
            place,
            "when N = 3 the plans of both are mixed: the share of settings in which they are apart",
            Limit(shares[0], 50.0, unit="%"),
            "three streams already separate them",
            theirs="mixed",
        ),
        by_paper(
            "clouds-separate",
            place,
            "as N increases the two sets are clearly separated",
            Falls([-share for share in shares]),
            "the settings are too few",
            theirs="clearly separated",
            measured=", ".join(f"{a:.0f} % at N = {n}" for n, a in zip(xs, shares, strict=True)),
        ),
    ]
    return report


def _clouds(n: int, options: CloudOptions) -> list[tuple[Candidate, Candidate]]:
    """The plans of both algorithms, for the settings where both find a qualified one."""
    began = time.perf_counter()
    pairs = []
    for number in range(options.settings):
        late = options.seconds and time.perf_counter() - began > options.seconds
        if number >= 10 and late:
            break
        setting = draw(n, number, options.seed)
        joins, budget = setting.joins(), setting.budget
        found = state_selection(joins, budget), state_removal(joins, budget)
        if all(_qualified(budget, plan) for plan in found):
            pairs.append(found)
    return pairs


def _qualified(budget: Budget, plan: Candidate) -> bool:
    return budget.holds(plan.cost)
