"""When sites ask for another plan, and what the central update decides."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import PolicyError
from plait.sites.planner.cost import NESTED_LOOP, StreamStatistics, one_way, paper_setting
from plait.sites.planner.greedy import greedy, violations
from plait.sites.planner.policy import (
    PlacementPolicy,
    Seat,
    WindowCopy,
    central_update,
    direction,
    execution_cost,
    notice,
    window_copies,
)
from plait.sites.plans.plan import Jep, Sep, SiteLink, Update, fully_connected, operator_sets
from plait_lab.workloads.site_settings import random_site_setting, random_statistics

USUAL = StreamStatistics(100, 0.01, 150, 0.5)


def seats_of(rate: float) -> list[Seat]:
    """Where S2 is in the sequences of S1 and S3, if its rate is this."""
    setting = paper_setting(3, {"S2": rate})
    return [Seat(head, head, None, setting.first(head), 0) for head in ("S1", "S3")]


@pytest.mark.parametrize(
    ("change", "what", "share"),
    [
        ({"rate": 104.0}, "rate", 0.04),
        ({"rate": 140.0}, "rate", 0.4),
        ({"factor": 0.02}, "factor", 1.0),
        ({"tuple_bytes": 75}, "tuple_bytes", 0.5),
        ({}, "rate", 0.0),
    ],
)
def test_the_largest_change_counts(change: dict[str, float], what: str, share: float) -> None:
    adopted = paper_setting(3).candidate("S2")
    now = replace(adopted, statistics=replace(USUAL, **change))
    found = notice(PlacementPolicy(threshold=0.3), seats_of(100.0), adopted, now, NESTED_LOOP)
    assert found.what == what
    assert found.change == pytest.approx(share)
    assert found.exceeded == (share > 0.3)
    assert what in str(found) and ("not" in str(found)) != found.exceeded


def test_a_cost_can_change_more_than_any_statistic() -> None:
    """Rate and window each by half: the pairs to compare more than double."""
    setting = paper_setting(2, {"S1": 20_000.0})
    adopted = setting.candidate("S2")
    now = replace(adopted, statistics=replace(USUAL, rate=150, window=0.75))
    seat = Seat("S1", "S1", None, setting.first("S1"), 0)
    found = notice(PlacementPolicy(), [seat], adopted, now, NESTED_LOOP)
    assert found.what == "cost" and found.change > 1.0


def test_slow_drift_is_noticed_because_the_reference_stays() -> None:
    adopted = paper_setting(3).candidate("S2")
    rate, noticed = 100.0, []
    for _ in range(10):
        rate *= 1.02
        now = replace(adopted, statistics=replace(USUAL, rate=rate))
        noticed.append(notice(PlacementPolicy(), [], adopted, now, NESTED_LOOP).exceeded)
    assert noticed[0] is False and noticed[-1] is True


def test_from_nothing_to_something_is_an_infinite_change() -> None:
    adopted = replace(paper_setting(3).candidate("S2"), statistics=StreamStatistics(0, 0, 0, 0))
    now = replace(adopted, statistics=USUAL)
    assert notice(PlacementPolicy(1e9), [], adopted, now, NESTED_LOOP).change == math.inf


def test_the_cost_at_a_site_is_that_of_its_joins() -> None:
    candidate = paper_setting(3).candidate("S2")
    each = [one_way(seat.prefix, candidate, NESTED_LOOP).source for seat in seats_of(100.0)]
    assert execution_cost(seats_of(100.0), candidate, NESTED_LOOP) == pytest.approx(sum(each))


@pytest.mark.parametrize("threshold", [-0.1, math.nan, math.inf, None, True, "0.1"])
def test_a_threshold_is_a_number(threshold: Any) -> None:
    with pytest.raises(PolicyError, match="a policy with threshold="):
        PlacementPolicy(threshold)


def test_directions() -> None:
    assert direction(USUAL, USUAL) == "later"
    assert direction(USUAL, replace(USUAL, factor=0.02)) == "later"
    assert direction(USUAL, replace(USUAL, window=0.1)) == "earlier"
    assert direction(USUAL, replace(USUAL, rate=200, window=0.1)) == "either"


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_the_central_update_tells_exactly_the_sites_whose_set_differs(
    seed: int, streams: int
) -> None:
    random = Random(seed)
    setting = random_site_setting(random, streams, shared=0.2)
    old = greedy(setting)
    changed = {random.choice(setting.sites.streams): random_statistics(random)}
    new = setting.with_statistics(changed)
    update = central_update(new, old)
    assert list(violations(new, update.plan)) == []
    before = operator_sets(setting.sites, old)
    assert {**before, **update.operators} == operator_sets(setting.sites, update.plan)
    assert all(before[site] != update.operators[site] for site in update.affected)
    needed = {
        (x.stream, site)
        for site, operators in update.operators.items()
        for x in operators
        if isinstance(x, Update)
    }
    assert {(c.stream, c.target) for c in update.copies} == needed
    for copy in update.copies:
        assert Update(copy.stream) in before[copy.origin]
        assert copy.origin == copy.target or Update(copy.stream) not in before[copy.target]


def test_a_window_comes_from_home_or_over_the_quickest_link() -> None:
    sites = fully_connected(
        {"a": "n1", "b": "n2", "c": "n3", "d": "n4"},
        0.005,
        1000.0,
        others=[SiteLink("n3", "n4", 0.005, 5000.0)],
    )
    keep_a = frozenset({Update("a")})
    needs = {"n4": keep_a}
    at_home = window_copies(sites, {"n1": keep_a, "n3": keep_a}, needs)
    assert at_home == (WindowCopy("a", "n1", "n4"),)
    elsewhere = window_copies(sites, {"n2": keep_a, "n3": keep_a}, needs)
    assert elsewhere == (WindowCopy("a", "n3", "n4"),)
    shared = window_copies(sites, {"n4": keep_a, "n1": keep_a}, needs)
    assert shared == (WindowCopy("a", "n4", "n4"),)


def test_example_3_as_an_update() -> None:
    """SEP_1 goes from [S2, S3] to [S3, S2]: N1 needs the window of S3, which N3 keeps."""
    sites = paper_setting(3).sites
    old = Jep(
        (
            Sep("S1", ("S2", "S3"), (1, 1)),
            Sep("S2", ("S1", "S3"), (0, 1)),
            Sep("S3", ("S1", "S2"), (0, 0)),
        )
    )
    new = Jep((Sep("S1", ("S3", "S2"), (0, 1)), *old.seps[1:]))
    after = operator_sets(sites, new)
    found = window_copies(sites, operator_sets(sites, old), {"N1": after["N1"]})
    assert found == (WindowCopy("S3", "N3", "N1"),)
