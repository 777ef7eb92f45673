"""Figure 14: what the plans of state-selection and of state-removal need.

The settings are those of `settings`.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

from plait.optimize.budget import Budget
from plait.optimize.search.candidate import Candidate
from plait.optimize.search.state_removal import state_removal
from plait.optimize.search.state_selection import state_selection
from plait_lab.experiments.qualified.settings import draw
from plait_lab.reporting.comparisons import Falls, Limit, Smaller
from plait_lab.reporting.report import (
    Note,
    Report,
    Series,
    by_paper,
)


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
