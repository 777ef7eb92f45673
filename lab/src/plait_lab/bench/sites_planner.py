"""Plans over sites: how far algorithm 1 is from the best plan, and how long it takes.

Every setting is planned greedily and exhaustively, and the costs that the paper's model gives the
two plans are compared. Half of the settings have hash joins, half nested loops; every other one has
a join condition for some pairs of streams only. Times are CPU seconds of one thread.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import numpy as np

from plait.sites.planner.cost import SiteSetting, StreamStatistics, jep_cost
from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import SiteLink, fully_connected
from plait_lab.exhaustive.site_plans import exhaustive
from plait_lab.reporting.plot_sites import draw_replan
from plait_lab.reporting.report import Note, Report, Series, at_least, at_most
from plait_lab.workloads.site_settings import random_site_setting

_MEDIAN = 1.5
_NINE_IN_TEN = 4.0
_PLANNING = 0.1
_SAME = 1e-9
"""Costs are sums: the order of the terms makes a difference of this size."""


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    settings: int = 500
    fewest: int = 3
    most: int = 6
    planned: int = 20
    """Streams of the settings whose planning is timed."""
    repeats: int = 5
    seed: int = 1


class PlannerReport(Report):
    """A report that also draws an example of a re-plan."""

    def plot(self, directory: Path) -> Path:
        """Draw the series, and beside them the sites before and after a re-plan."""
        before, after = slow_link()
        draw_replan(
            before, greedy(before), after, greedy(after), directory / f"{self.name}-replan.png"
        )
        return Report.plot(self, directory)


def sites_planner(options: Options, note: Note) -> Report:
    """How near the greedy plan over sites is to the best of all plans, and how long it takes."""
    random = Random(options.seed)
    sizes = range(options.fewest, options.most + 1)
    ratios: dict[int, list[float]] = {m: [] for m in sizes}
    for n in range(options.settings):
        streams = sizes[n % len(sizes)]
        note(f"setting {n + 1} of {options.settings}: {streams} streams")
        setting = random_site_setting(random, streams)
        best = jep_cost(setting, exhaustive(setting))
        ratios[streams].append(jep_cost(setting, greedy(setting)) / best)
    seconds = []
    for n in range(options.repeats):
        note(f"planning {options.planned} streams, {n + 1} of {options.repeats}")
        setting = random_site_setting(random, options.planned)
        began = time.process_time()
        greedy(setting)
        seconds.append(time.process_time() - began)

    every = sorted(ratio for found in ratios.values() for ratio in found)
    report = PlannerReport("sites-planner", asdict(options))
    for streams, found in ratios.items():
        if found:
            shares = [100 * (n + 1) / len(found) for n in range(len(found))]
            report.series.append(
                Series(f"{streams} streams", shares, sorted(found), "greedy / best (cost)",
                       "% of the settings", y_scale="log")
            )  # fmt: skip
    middle, nine, planning = (
        statistics.median(every),
        float(np.quantile(every, 0.9)),
        statistics.median(seconds),
    )
    report.claims = [
        at_least("best-is-best", "the cost of the greedy plan over that of the best plan, the "
                 "least of all settings", every[0], 1 - _SAME),
        at_most("median", "the cost of the greedy plan over that of the best plan, in the median",
                middle, _MEDIAN),
        at_most("nine-in-ten", "the same for nine settings in ten", nine, _NINE_IN_TEN),
        at_most("planning", f"planning {options.planned} streams", planning, _PLANNING, "s"),
    ]  # fmt: skip
    report.systems["plait"] = {
        "seconds": planning,
        "settings": len(every),
        "optimal": sum(ratio <= 1 + _SAME for ratio in every),
    }
    report.ratios["greedy / best"] = {
        f"{streams} streams": {
            f"p{100 * share:.0f}": float(np.quantile(found, share)) for share in (0.5, 0.9, 1.0)
        }
        for streams, found in ratios.items()
        if found
    }
    return report


def slow_link() -> tuple[SiteSetting, SiteSetting]:
    """Four sites before and after the links between two of them have become slow.

    >>> before, after = slow_link()
    >>> greedy(before) == greedy(after)
    False
    """
    homes = {"S1": "N1", "S2": "N2", "S3": "N3", "S4": "N4"}
    known = {
        "S1": StreamStatistics(100, 0.01, 150, 0.5),
        "S2": StreamStatistics(80, 0.01, 150, 0.5),
        "S3": StreamStatistics(120, 0.01, 150, 0.5),
        "S4": StreamStatistics(140, 0.01, 150, 0.5),
    }
    slow = [SiteLink("N1", "N2", 0.05, 16_000), SiteLink("N2", "N1", 0.05, 16_000)]
    usual = fully_connected(homes, 0.005, 128_000, results="N0")
    worse = fully_connected(homes, 0.005, 128_000, others=slow, results="N0")
    return SiteSetting(usual, known), SiteSetting(worse, known)
