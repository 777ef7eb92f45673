"""The sites-planner benchmark, small, and its picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import steps
from plait_lab.bench.sites_planner import Options, sites_planner, slow_link


@pytest.mark.slow
def test_it_compares_every_setting_with_the_best(tmp_path: Path) -> None:
    report = sites_planner(Options(settings=12, most=4, planned=5, repeats=2), lambda _: None)
    assert [claim.id for claim in report.claims] == [
        "best-is-best", "median", "nine-in-ten", "planning",
    ]  # fmt: skip
    assert report.systems["plait"]["settings"] == 12
    assert [len(series.x) for series in report.series] == [6, 6]
    assert all(ratio >= 1 - 1e-9 for series in report.series for ratio in series.y)
    assert report.plot(tmp_path).name == "sites-planner.png"
    assert (tmp_path / "sites-planner-replan.png").stat().st_size > 10_000


def test_the_example_moves_tuples_off_the_slow_link() -> None:
    def crossings(setting_and_plan: int) -> int:
        setting = slow_link()[setting_and_plan]
        pairs = [
            shipped[1:]
            for sep in greedy(setting).seps
            for step in steps(setting.sites, sep)
            if (shipped := step.shipped()) is not None
        ]
        return sum(set(pair) == {"N1", "N2"} for pair in pairs)

    assert crossings(1) < crossings(0)
