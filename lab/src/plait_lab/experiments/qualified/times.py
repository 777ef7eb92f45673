"""Figure 13a: how long the algorithms take.

The settings are those of `settings`. Planning time includes building the cost model from
the statistics; it is CPU time, and every algorithm begins with nothing remembered.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from plait.optimize.costs import PAPER
from plait.optimize.model import Model
from plait.optimize.search.binary_dp import binary_dp
from plait.optimize.search.binary_greedy import binary_greedy
from plait.optimize.search.candidate import Joins
from plait.optimize.search.pareto import pareto_finder
from plait.optimize.search.state_removal import state_removal
from plait.optimize.search.state_selection import state_selection
from plait.optimize.search.two_layer import two_layer
from plait_lab.exhaustive.jtree_finder import jtree_finder
from plait_lab.experiments.qualified.settings import QualifiedSetting, draw
from plait_lab.reporting.comparisons import Falls, Limit, Smaller
from plait_lab.reporting.report import (
    Claim,
    Note,
    Report,
    Series,
    at_most,
    by_paper,
)

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
