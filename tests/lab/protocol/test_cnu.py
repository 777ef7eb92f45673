"""The central update: what it decides, and its messages."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.sites.planner.cost import paper_setting
from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import Jep, Sep, SiteLink, Update, fully_connected, operator_sets
from plait_lab.exhaustive.site_plans import violations
from plait_lab.protocol.cnu import (
    CopyWindow,
    NewOperators,
    WindowCopy,
    central_update,
    ordered,
    report,
    window_copies,
)
from plait_lab.protocol.message_kinds import kind_of
from plait_lab.workloads.site_settings import random_site_setting, random_statistics


@pytest.mark.parametrize("streams", [4, 8])
@pytest.mark.parametrize(("low", "high"), [(50.0, 200.0), (200.0, 50.0)])
def test_table_3_n_modification_messages(streams: int, low: float, high: float) -> None:
    """A report and n - 1 new operator sets: 4 and 8."""
    old, new = (paper_setting(streams, {"S1": rate}) for rate in (low, high))
    update = central_update(new, greedy(old))
    assert len(update.affected) == streams
    sent = [*report("N1", "N2", "S1", new.statistics["S1"]), *ordered(update, "N2")]
    counts = Counter(kind_of(one.message) for one in sent)
    assert counts["modification"] == streams
    assert counts["window"] == sum(copy.origin != "N2" for copy in update.copies)


def test_only_affected_sites_are_told() -> None:
    setting = paper_setting(4)
    update = central_update(setting, greedy(setting))
    assert ordered(update, "N1") == ()


def test_every_site_gets_its_own_set_and_windows_come_from_where_they_are() -> None:
    old, new = paper_setting(4), paper_setting(4, {"S1": 200.0})
    update = central_update(new, greedy(old))
    for one in ordered(update, "N4"):
        assert one.sender == "N4" != one.receiver
        if isinstance(one.message, NewOperators):
            assert one.message.operators == update.operators[one.receiver]
            assert one.message.affected == update.affected
        else:
            assert isinstance(one.message, CopyWindow)
            moved = (one.message.stream, one.receiver, one.message.target)
            assert moved in {(c.stream, c.origin, c.target) for c in update.copies}


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
