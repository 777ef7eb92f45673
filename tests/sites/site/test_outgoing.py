"""What a site sends in a step: packets that must go, and frontiers that have moved far."""

from __future__ import annotations

import pyarrow as pa

from plait.engine.intake.times import AFTER_ALL_TIMES
from plait.sites.site.outgoing import Outgoing
from plait.sites.site.packets import LegKey, SiteChannel, WindowRequest

LEG = LegKey(0, "a", 1)
ROWS = SiteChannel("rows", "rome")


def test_a_frontier_is_told_when_it_has_moved_far_or_a_packet_goes_anyway() -> None:
    outgoing = Outgoing({LEG: 100}, far=10)
    outgoing.to("rome").frontiers[LEG] = 110
    assert outgoing.take(clock=1) == {}
    assert outgoing.told == {LEG: 100}, "what was not sent was not told"
    outgoing.to("rome").frontiers[LEG] = 111
    assert outgoing.take(clock=2)[ROWS].frontiers == ((LEG, 111),)
    outgoing.ship("rome", "tuples", LEG, pa.record_batch({"k": [1]}))
    outgoing.to("rome").frontiers[LEG] = 112
    assert outgoing.take(clock=3)[ROWS].frontiers == ((LEG, 112),)
    assert outgoing.take(clock=4) == {}, "each packet is taken once"


def test_the_end_of_time_is_told_once() -> None:
    outgoing = Outgoing({LEG: AFTER_ALL_TIMES - 1}, far=10)
    for expected in (True, False):
        outgoing.to("rome").frontiers[LEG] = AFTER_ALL_TIMES
        assert bool(outgoing.take(clock=1)) is expected


def test_requests_overtake_rows_unless_they_speak_of_rows() -> None:
    outgoing = Outgoing({}, far=10)
    early, behind = WindowRequest(1, "a", "oslo"), WindowRequest(1, "a", "oslo", (), 7)
    outgoing.to("rome").requests.extend([early, behind])
    sent = outgoing.take(clock=9)
    assert sent[SiteChannel("messages", "rome")].requests == (early,)
    assert (sent[ROWS].requests, sent[ROWS].clock) == ((behind,), 9)
