"""Figures 4 and 5 of seed 001, with few streams and short."""

from __future__ import annotations

import pytest

from plait_lab.experiments.sites.savings import Options, run

SMALL = Options(first=0.6, every=1.2, changes=2)


def test_the_rate_is_high_in_every_other_round() -> None:
    options = Options()
    found = [options.is_high(t) for t in (0.0, 1.4, 1.6, 3.4, 3.6, 5.6, 7.6)]
    assert found == [False, False, True, True, False, True, False]


@pytest.mark.slow
def test_both_updates_follow_the_rate_and_find_the_same_results() -> None:
    kept, central, distributed = (run(3, SMALL, way, 0) for way in (None, "central", "distributed"))
    assert kept.results == central.results == distributed.results > 0
    assert len(kept.plans) == 1
    ends = (1.7, 2.9)
    assert [central.plan_at(end) for end in ends] == [distributed.plan_at(end) for end in ends]
    assert central.plan_at(1.7) != kept.plan_at(1.7)
    assert central.plan_at(2.9) == kept.plan_at(2.9), "the rate is low again"
    assert kept.overhead(0, 9) == (0, 0)
    assert central.overhead(0, 9)[0] < distributed.overhead(0, 9)[0]
