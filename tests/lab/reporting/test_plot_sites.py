"""The picture of sites: any number of them, shared ones, and one alone."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from plait.sites.planner.greedy import greedy
from plait_lab.reporting.plot_sites import draw_replan
from plait_lab.workloads.site_settings import random_site_setting, random_statistics


@pytest.mark.slow
@pytest.mark.parametrize(("streams", "shared"), [(2, 0.0), (4, 0.5), (3, 1.0)])
def test_it_draws_any_sites(streams: int, shared: float, tmp_path: Path) -> None:
    random = Random(streams)
    before = random_site_setting(random, streams, shared=shared)
    after = before.with_statistics({"S1": random_statistics(random)})
    path = draw_replan(before, greedy(before), after, greedy(after), tmp_path / "new" / "it.png")
    assert path.read_bytes().startswith(b"\x89PNG")
