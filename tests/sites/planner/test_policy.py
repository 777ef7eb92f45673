"""When sites ask for another plan."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from plait.errors import PolicyError
from plait.sites.planner.cost import NESTED_LOOP, StreamStatistics, one_way, paper_setting
from plait.sites.planner.policy import PlacementPolicy, Seat, direction, execution_cost, notice

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
