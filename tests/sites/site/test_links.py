"""Links take every packet in once and in order."""

from __future__ import annotations

from random import Random

import pytest

from plait.errors import CheckpointMismatch, SiteError, SourceError
from plait.sites.site.links import SiteLinks
from plait.sites.site.packets import SiteChannel, SiteNews, SitePacket, encode_news
from plait.sites.site.rows import ShippedRows
from plait.sites.site.store import OUTBOX, SegmentChanges
from plait.testing.examples import clique
from plait.tuning import Tuning

SHIPPED = ShippedRows(clique(2))
A, B = SiteChannel("rows", "a"), SiteChannel("rows", "b")


def links(me: str, other: str) -> SiteLinks:
    return SiteLinks(me, [other], SegmentChanges(), {}, SHIPPED)


@pytest.mark.parametrize("seed", range(10))
def test_any_order_and_repeats_come_in_once_and_in_order(seed: int) -> None:
    chance, a, b = Random(seed), links("a", "b"), links("b", "a")
    sent = [a.send(B, SiteNews(clock)) for clock in range(1, 9)]
    given = sent * 2
    chance.shuffle(given)
    clocks: list[int] = []
    while given:
        some, given = given[:3], given[3:]
        clocks += [news.clock for _, news in b.take_in(some)]
    assert clocks == list(range(1, 9))
    assert b.states[A].received == 8
    assert a.outstanding() == sent
    a.take_in(b.acknowledge())
    assert not a.outstanding()
    assert not b.acknowledge(), "an acknowledgement is not acknowledged"


def test_an_answer_acknowledges() -> None:
    a, b = links("a", "b"), links("b", "a")
    b.take_in([a.send(B, SiteNews(1))])
    a.take_in([b.send(A, SiteNews(2))])
    assert not a.outstanding()
    assert not b.acknowledge()
    assert [p.number for p in a.acknowledge()] == [0]


def test_messages_do_not_wait_for_rows_nor_tell_clocks() -> None:
    a, b = links("a", "b"), links("b", "a")
    rows = [a.send(B, SiteNews(clock)) for clock in (1, 2)]
    message = a.send(SiteChannel("messages", "b"), SiteNews(asking=True))
    assert (rows[-1].number, message.number) == (2, 1)
    assert [news.asking for _, news in b.take_in([rows[1], message])] == [True]
    assert b.clock("a") == 0
    assert [news.clock for _, news in b.take_in([message, rows[0]])] == [1, 2]
    assert b.clock("a") == 2
    told = b.acknowledge()
    assert {packet.channel for packet in told} == {"rows", "messages"}
    a.take_in(told[:1])
    assert len(a.outstanding()) in (1, 2), "what was acknowledged in one channel counts there"
    a.take_in(told)
    assert not a.outstanding()


def test_a_clock_is_asked_for_once() -> None:
    a, b = links("a", "b"), links("b", "a")
    assert a.asked("b", 5)
    assert not a.asked("b", 5)
    a.take_in([b.send(A, SiteNews(9))])
    assert not a.asked("b", 9)
    assert a.asked("b", 10)


def test_what_is_refused() -> None:
    a = links("a", "b")
    with pytest.raises(SiteError, match="a packet for 'c' has come to 'a'"):
        a.take_in([SitePacket("b", "c", 1, b"")])
    with pytest.raises(SiteError, match="unknown site 'bb'; did you mean 'b'"):
        a.take_in([SitePacket("bb", "a", 1, b"")])
    with pytest.raises(SiteError, match="an unknown channel None"):
        # Mail that another version has written lacks the column.
        a.take_in([SitePacket("b", "a", 1, b"", None)])  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="cannot be read"):
        a.take_in([SitePacket("b", "a", 1, b"x")])
    with pytest.raises(CheckpointMismatch, match=r"has taken in packet 7 .* which has sent 0"):
        a.take_in([SitePacket("b", "a", 1, encode_news(SiteNews(received=7), SHIPPED))])
    assert a.states[B].received == 0


def _steps(a: SiteLinks, count: int) -> list[list[int]]:
    """The numbers of the packets that are sent again in each of the next steps."""
    found = []
    for _ in range(count):
        a.step += 1
        found.append([packet.number for packet in a.resend()])
    return found


def test_what_is_not_acknowledged_is_sent_again_and_more_of_it_if_that_helps() -> None:
    tuning = Tuning(resend_steps=2)
    a, b = SiteLinks("a", ["b"], SegmentChanges(), {}, SHIPPED, tuning), links("b", "a")
    sent = [a.send(B, SiteNews(clock)) for clock in range(1, 9)]
    assert _steps(a, 6) == [[], [1], [], [1], [], [1]], "one at a time while nobody answers"
    assert a.unanswered() == {"b": (8, 0, True)}
    again = [1]
    for wanted in ([2, 3], [4, 5, 6, 7], [8]):
        b.take_in(sent[number - 1] for number in again)
        a.step += 1
        a.take_in(b.acknowledge())
        assert _steps(a, 2) == [[], wanted]
        again = wanted
    b.take_in(sent)
    a.take_in(b.acknowledge())
    assert not a.unanswered()
    a.send(B, SiteNews(9))
    assert _steps(a, 2) == [[], [9]], "and one at a time the next time"


def test_a_repeated_packet_is_acknowledged_again() -> None:
    a, b = links("a", "b"), links("b", "a")
    sent = a.send(B, SiteNews(1))
    b.take_in([sent])
    assert b.acknowledge(), "which is lost"
    assert not b.take_in([sent])
    a.take_in(b.acknowledge())
    assert not a.unanswered()


def test_a_site_that_was_loaded_again_sends_what_it_had_sent() -> None:
    tuning, changes = Tuning(resend_steps=2), SegmentChanges()
    a = SiteLinks("a", ["b"], changes, {}, SHIPPED, tuning)
    sent = a.send(B, SiteNews(1))
    loaded = SiteLinks("a", ["b"], SegmentChanges(), a.states, SHIPPED, tuning)
    loaded.restore(OUTBOX, 0, sent.number, sent.body)
    assert _steps(loaded, 2) == [[], [1]]
