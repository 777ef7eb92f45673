"""Equations 1 to 3 against their text, and what they must satisfy."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import StatisticsError
from plait.sites.planner.cost import (
    HASH,
    NESTED_LOOP,
    JoinPrices,
    SiteSetting,
    StreamStatistics,
    jep_cost,
    joined,
    one_way,
    paper_setting,
    sep_costs,
)
from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import Placement, Sep, SiteLink, fully_connected
from plait_lab.workloads.site_settings import random_site_setting, random_statistics


def direct(setting: SiteSetting, sep: Sep) -> list[float]:
    """The equations once more, with the paper's names and nothing shared."""
    known = setting.statistics
    (r, f, t), at = (known[sep.head].rate, known[sep.head].factor, known[sep.head].tuple_bytes), 0
    where, costs = setting.sites.home(sep.head), []
    for at, (k, p) in enumerate(zip(sep.order, sep.placements, strict=True)):
        home = setting.sites.home(k)
        w = known[k].rate * known[k].window
        matches = min(f, known[k].factor) * w
        if setting.prices.method == "nested-loop":
            probes = r * setting.prices.probe * w
        else:
            probes = r * (setting.prices.lookup + setting.prices.probe * matches)
        sent = known[k].rate * known[k].tuple_bytes if p == 0 else r * t
        origin, target = (home, where) if p == 0 else (where, home)
        links = {(x.origin, x.target): x for x in setting.sites.links}
        link = links.get((origin, target))
        transmission = 0.0 if link is None else link.latency + sent / link.rate
        gathered = {sep.head, *sep.order[:at]}
        crossed = setting.conditions is not None and not any(
            frozenset((k, other)) in setting.conditions for other in gathered
        )
        cost = transmission + known[k].rate * setting.prices.update + probes
        costs.append(math.inf if crossed else cost)
        r, f, t = r * matches, max(f, known[k].factor), t + known[k].tuple_bytes
        where = where if p == 0 else home
    return costs


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_oracle_the_equations(seed: int, streams: int) -> None:
    random = Random(seed)
    setting = random_site_setting(random, streams, shared=0.3)
    for head in setting.sites.streams:
        order = [s for s in setting.sites.streams if s != head]
        random.shuffle(order)
        placements: tuple[Placement, ...] = tuple(random.choice((0, 1)) for _ in order)
        sep = Sep(head, tuple(order), placements)
        assert sep_costs(setting, sep) == pytest.approx(direct(setting, sep), rel=1e-12)


def test_the_numbers_of_the_papers_setting() -> None:
    """100 tuples/s of 150 bytes: 5 ms + 15000/128000 s, 100 updates, 100 x 50 probes."""
    setting = paper_setting(4)
    first = one_way(setting.first("S1"), setting.candidate("S2"), setting.prices)
    expected = 0.005 + 15_000 / 128_000 + 100 * 4.0e-7 + 100 * 2.2e-6 * 50
    assert first.source == first.destination == pytest.approx(expected)
    after = joined(setting.first("S1"), setting.candidate("S2"), 0)
    assert (after.rate, after.factor, after.tuple_bytes) == (50.0, 0.01, 300)
    assert (after.site, after.host) == ("N1", "S1")
    fast = paper_setting(4, {"S2": 200.0}).statistics["S2"]
    assert (fast.rate, fast.tuples) == (200.0, 100.0)


@given(st.integers(0, 10**6))
def test_a_cost_never_falls_when_a_statistic_rises(seed: int) -> None:
    """What the distributed update relies on, exactly: also in floating-point numbers."""
    random = Random(seed)
    setting = random_site_setting(random, 4)
    low = random_statistics(random)
    name = random.choice(["rate", "factor", "tuple_bytes", "window"])
    limit = 1.0 if name == "factor" else math.inf
    higher = min(limit, getattr(low, name) * (1 + random.choice([1e-15, 0.1, 3.0])))
    high = replace(low, **{name: higher})
    prefix = joined(setting.first("S1"), setting.candidate("S2"), random.choice((0, 1)))
    before = one_way(prefix, setting.with_statistics({"S3": low}).candidate("S3"), setting.prices)
    after = one_way(prefix, setting.with_statistics({"S3": high}).candidate("S3"), setting.prices)
    assert before.source <= after.source
    assert before.destination <= after.destination


def test_equal_costs_are_placed_at_the_source() -> None:
    setting = paper_setting(3)
    found = one_way(setting.first("S1"), setting.candidate("S2"), setting.prices)
    assert (found.source, found.placement) == (found.destination, 0)


def test_the_link_that_is_used_counts() -> None:
    """After a join at the source, tuples are still there, whatever they were joined with."""
    homes = {"a": "n1", "b": "n2", "c": "n3"}
    slow = SiteLink("n1", "n3", 9.0, 1000.0)
    sites = fully_connected(homes, 0.001, 1e6, others=[slow])
    known = {s: StreamStatistics(10, 0.1, 100, 1.0) for s in homes}
    setting = SiteSetting(sites, known)
    stayed = sep_costs(setting, Sep("a", ("b", "c"), (0, 1)))
    went = sep_costs(setting, Sep("a", ("b", "c"), (1, 1)))
    assert stayed[1] > slow.latency > 1
    assert went[1] < 1


def test_streams_of_one_site_cost_no_transmission() -> None:
    sites = fully_connected({"a": "n1", "b": "n1", "c": "n2"}, 5.0, 1.0)
    known = {s: StreamStatistics(10, 0.1, 100, 1.0) for s in "abc"}
    found = one_way(
        SiteSetting(sites, known).first("a"), SiteSetting(sites, known).candidate("b"), NESTED_LOOP
    )
    assert found.source == found.destination < 0.01


def test_a_hash_index_costs_the_matches_and_not_the_window() -> None:
    """Ten times the window with a tenth of the matches per tuple costs the same."""
    narrow = HASH.seconds(arriving=100, window=50, matches=2)
    assert HASH.seconds(arriving=100, window=500, matches=2) == narrow
    assert NESTED_LOOP.seconds(arriving=100, window=500, matches=2) == pytest.approx(
        10 * NESTED_LOOP.seconds(arriving=100, window=50, matches=2)
    )
    dear, cheap = paper_setting(4), paper_setting(4, prices=HASH)
    assert jep_cost(cheap, greedy(cheap)) < jep_cost(dear, greedy(dear))


def test_huge_statistics_give_numbers() -> None:
    huge = StreamStatistics(1e300, 1.0, 1e300, 1e300)
    empty = StreamStatistics(0, 0, 0, 0)
    base = paper_setting(5)
    setting = base.with_statistics({"S1": huge, "S2": huge, "S3": empty})
    assert not math.isnan(jep_cost(setting, greedy(setting)))


@pytest.mark.parametrize("name", ["rate", "factor", "tuple_bytes", "window"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, None, True, "1"])
def test_statistics_that_are_none_are_refused(name: str, value: Any) -> None:
    given_: dict[str, Any] = {"rate": 1, "factor": 0.5, "tuple_bytes": 1, "window": 1}
    with pytest.raises(StatisticsError, match=f"the {name} of a stream is"):
        StreamStatistics(**given_ | {name: value})


def test_settings_that_do_not_fit_together_are_refused() -> None:
    base = paper_setting(3)
    with pytest.raises(StatisticsError, match="the selectivity factor of a stream is 2"):
        StreamStatistics(1, 2, 1, 1)
    with pytest.raises(StatisticsError, match="no statistics of the stream S2"):
        SiteSetting(base.sites, {"S1": base.statistics["S1"]})
    with pytest.raises(StatisticsError, match="of 'S9', which is no stream"):
        base.with_statistics({"S9": base.statistics["S1"]})
    pair = frozenset(("S1", "S2"))
    with pytest.raises(StatisticsError, match="no condition ties S3 to S1"):
        SiteSetting(base.sites, base.statistics, conditions=frozenset({pair}))
    with pytest.raises(StatisticsError, match="a condition on 'S9'"):
        SiteSetting(base.sites, base.statistics, conditions=frozenset({pair | {"S9"}}))
    with pytest.raises(StatisticsError, match="a condition is between S1; give pairs"):
        SiteSetting(base.sites, base.statistics, conditions=frozenset({frozenset({"S1"})}))
    with pytest.raises(StatisticsError, match="the price of 'probe' is -1"):
        JoinPrices("hash", -1, 0)
