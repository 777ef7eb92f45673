"""Links take every packet in once and in order."""

from __future__ import annotations

from random import Random

import pytest

from plait.errors import CheckpointMismatch, SiteError, SourceError
from plait.node.site_links import SiteLinks
from plait.node.site_packets import SiteNews, SitePacket, encode_news
from plait.node.site_rows import ShippedRows
from plait.node.site_store import SegmentChanges
from plait.plan.examples import clique

SHIPPED = ShippedRows(clique(2))


def links(me: str, other: str) -> SiteLinks:
    return SiteLinks(me, [other], SegmentChanges(), {}, SHIPPED)


@pytest.mark.parametrize("seed", range(10))
def test_any_order_and_repeats_come_in_once_and_in_order(seed: int) -> None:
    chance, a, b = Random(seed), links("a", "b"), links("b", "a")
    sent = [a.send("b", SiteNews(clock)) for clock in range(1, 9)]
    given = sent * 2
    chance.shuffle(given)
    clocks: list[int] = []
    while given:
        some, given = given[:3], given[3:]
        clocks += [news.clock for _, news in b.take_in(some)]
    assert clocks == list(range(1, 9))
    assert b.states["a"].received == 8
    assert a.outstanding() == sent
    a.take_in(b.acknowledge())
    assert not a.outstanding()
    assert not b.acknowledge(), "an acknowledgement is not acknowledged"


def test_an_answer_acknowledges() -> None:
    a, b = links("a", "b"), links("b", "a")
    b.take_in([a.send("b", SiteNews(1))])
    a.take_in([b.send("a", SiteNews(2))])
    assert not a.outstanding()
    assert not b.acknowledge()
    assert [p.number for p in a.acknowledge()] == [0]


def test_a_clock_is_asked_for_once() -> None:
    a, b = links("a", "b"), links("b", "a")
    assert a.asked("b", 5)
    assert not a.asked("b", 5)
    a.take_in([b.send("a", SiteNews(9))])
    assert not a.asked("b", 9)
    assert a.asked("b", 10)


def test_what_is_refused() -> None:
    a = links("a", "b")
    with pytest.raises(SiteError, match="a packet for 'c' has come to 'a'"):
        a.take_in([SitePacket("b", "c", 1, b"")])
    with pytest.raises(SiteError, match="unknown site 'bb'; did you mean 'b'"):
        a.take_in([SitePacket("bb", "a", 1, b"")])
    with pytest.raises(SourceError, match="cannot be read"):
        a.take_in([SitePacket("b", "a", 1, b"x")])
    with pytest.raises(CheckpointMismatch, match=r"has taken in packet 7 .* which has sent 0"):
        a.take_in([SitePacket("b", "a", 1, encode_news(SiteNews(received=7), SHIPPED))])
    assert a.states["b"].received == 0
