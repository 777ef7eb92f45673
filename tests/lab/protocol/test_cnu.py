"""The messages of the central update."""

from __future__ import annotations

from collections import Counter

import pytest

from plait.sites.planner.cost import paper_setting
from plait.sites.planner.greedy import greedy
from plait.sites.planner.policy import central_update
from plait.sites.protocol.messages import CopyWindow, NewOperators, kind_of
from plait_lab.protocol.cnu import ordered, report


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
