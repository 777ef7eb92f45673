"""Packets between sites: everything comes out as it went in, and damage is an error."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.errors import SourceError
from plait.sites.protocol.messages import LocalReady, Sent
from plait.sites.protocol.turns import InTurn
from plait.sites.site.packets import (
    LegKey,
    PacketDraft,
    Shipment,
    WindowRequest,
    decode_news,
    encode_news,
)
from plait.sites.site.rows import ShippedRows
from plait.testing.examples import clique

LEG = LegKey(2, "a", 1)
SHIPPED = ShippedRows(clique(2))
TUPLES = pa.record_batch(
    {"0.ts": pa.array([7, 8], pa.timestamp("us")), "0.k": [1, 2], "stamp": [3, 3]}
)


def draft() -> PacketDraft:
    return PacketDraft(
        [Shipment("tuples", LEG, TUPLES)],
        asking=True,
        requests=[WindowRequest(2, "b", "n1", ("n2",)), WindowRequest(2, "b", "n1", (), 9)],
        messages=[InTurn(3, Sent("n1", "n2", LocalReady(3, "n1", 40)))],
    )


def test_news_come_out_as_they_went_in() -> None:
    for news in (draft().rows(7, ((LEG, 99),)), draft().urgent()):
        assert news is not None
        assert decode_news(encode_news(news, SHIPPED), SHIPPED) == news


def test_what_overtakes_rows() -> None:
    rows, urgent = draft().rows(7, ()), draft().urgent()
    assert urgent is not None
    assert (rows.messages, urgent.messages) == ((), tuple(draft().messages))
    assert [request.upto for request in rows.requests] == [9], "for rows that have been sent before"
    assert [request.upto for request in urgent.requests] == [None]
    assert PacketDraft(wanted=True).urgent() is None


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_a_packet_that_was_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        decode_news(encode_news(draft().rows(7, ()), SHIPPED)[:cut], SHIPPED)


def test_an_unknown_message_is_refused() -> None:
    news = draft().urgent()
    assert news is not None
    body = encode_news(news, SHIPPED).replace(b"LocalReady", b"LocalRheum")
    with pytest.raises(SourceError, match="LocalRheum"):
        decode_news(body, SHIPPED)


def test_a_draft_goes_if_something_is_said() -> None:
    assert draft().said
    assert PacketDraft(wanted=True).said
    assert not PacketDraft(frontiers={LEG: 1}).said
    assert not PacketDraft(messages=draft().messages).said, "rows do not"
