"""The best plan of all, against every plan."""

from __future__ import annotations

from itertools import permutations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.sites.planner.cost import SiteSetting, jep_cost, sep_costs
from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import Placement, Sep
from plait_lab.exhaustive.site_plans import exhaustive, exhaustive_sep
from plait_lab.workloads.site_settings import random_site_setting

BOTH: tuple[Placement, ...] = (0, 1)


def every_cost(setting: SiteSetting, head: str) -> list[float]:
    others = [s for s in setting.sites.streams if s != head]
    return [
        sum(sep_costs(setting, Sep(head, order, at)))
        for order in permutations(others)
        for at in product(BOTH, repeat=len(others))
    ]


@given(st.integers(0, 10**6), st.integers(2, 4))
def test_oracle_the_least_of_all_sequences(seed: int, streams: int) -> None:
    setting = random_site_setting(Random(seed), streams, shared=0.3)
    for head in setting.sites.streams:
        found = sum(sep_costs(setting, exhaustive_sep(setting, head)))
        assert found == pytest.approx(min(every_cost(setting, head)), rel=1e-12)


@given(st.integers(0, 10**6), st.integers(3, 5))
def test_greedy_is_never_better(seed: int, streams: int) -> None:
    setting = random_site_setting(Random(seed), streams)
    best, found = jep_cost(setting, exhaustive(setting)), jep_cost(setting, greedy(setting))
    assert best <= found * (1 + 1e-12)


def test_greedy_is_not_always_best() -> None:
    """The measure measures something: here a dearer first join filters more."""
    settings = [random_site_setting(Random(seed), 4) for seed in range(30)]
    worse = [s for s in settings if jep_cost(s, greedy(s)) > 1.01 * jep_cost(s, exhaustive(s))]
    assert 0 < len(worse) < len(settings)
