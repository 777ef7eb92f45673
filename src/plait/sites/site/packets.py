"""Packets between sites: what one site sends another in one step, as one binary value.

A packet names its origin, its target, its channel and its number there; hosts carry it and need not
look inside. Packets with a number are kept by the sender until the receiver has acknowledged them,
and taken in by the receiver once each and in the order of numbers, whatever order they come in.
Number 0 is for packets that only acknowledge: nobody misses them.

Two sites have two *channels*. Rows, and what is said about rows to come, keep their order. Messages
about plans keep theirs, and overtake rows: a plan is changed because links are slow, so it must not
wait for what is queued there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from plait.codec import from_plain
from plait.errors import SourceError
from plait.sites.protocol.turns import InTurn
from plait.sites.protocol.wire import turn_from_plain, turn_to_plain

VERSION = 1
_LENGTH_BYTES = 4

ShipmentKind: TypeAlias = Literal["stream", "tuples", "results", "window"]
Channel: TypeAlias = Literal["rows", "messages"]


class SiteChannel(NamedTuple):
    """A channel between a site and another one."""

    channel: Channel
    site: str


class SitePacket(NamedTuple):
    """A packet on its way."""

    origin: str
    target: str
    number: int
    """From 1 on in its channel, without gaps; 0 if it only acknowledges."""
    body: bytes
    channel: Channel = "rows"


class UnansweredPackets(NamedTuple):
    """Packets to a site that it has not acknowledged."""

    packets: int
    since: int
    """The step since which nothing new was acknowledged."""
    resent: bool
    """Whether some had to be sent again."""


class LegKey(NamedTuple):
    """A leg of a plan, in a form that all sites know."""

    plan: int
    head: str
    number: int


@dataclass(frozen=True, slots=True)
class Shipment:
    """Tuples on their way.

    `stream`: new rows of the stream `head`, stamped with the packet's clock, which are heads of the
    plan and may be kept as a window. `tuples`: composite tuples for the leg of that number.
    `results`: results. `window`: what the sender keeps of the stream `head` up to the stamp
    `number`, for a plan to come.
    """

    kind: ShipmentKind
    leg: LegKey
    rows: pa.RecordBatch


class WindowRequest(NamedTuple):
    """To the home of a stream: send its rows to the site `target` from now on, and have the
    holders send theirs. To a holder: send what you keep up to the stamp `upto`."""

    plan: int
    stream: str
    target: str
    holders: tuple[str, ...] = ()
    upto: int | None = None


@dataclass(frozen=True, slots=True)
class SiteNews:
    """What is in a packet."""

    clock: int = 0
    """The sender's clock: it has sent all rows with this stamp or an earlier one."""
    received: int = 0
    """The last packet in the other direction that it has taken in, in the same channel."""
    asking: bool = False
    """Whether it waits for the receiver's clock to pass its own."""
    frontiers: tuple[tuple[LegKey, int], ...] = ()
    """For legs of the receiver: no head that comes later is before this event time."""
    shipments: tuple[Shipment, ...] = ()
    requests: tuple[WindowRequest, ...] = ()
    messages: tuple[InTurn, ...] = ()
    """About changes of the plan."""


@dataclass(slots=True)
class PacketDraft:
    """What is to be sent to another site in a step."""

    shipments: list[Shipment] = field(default_factory=list)
    frontiers: dict[LegKey, int] = field(default_factory=dict)
    asking: bool = False
    requests: list[WindowRequest] = field(default_factory=list)
    messages: list[InTurn] = field(default_factory=list)
    wanted: bool = False
    """Whether a packet goes even if there is nothing in it but the clock."""

    @property
    def said(self) -> bool:
        """Whether rows have to go, also if no frontier has moved far."""
        return bool(self.shipments or self._behind_rows) or self.asking or self.wanted

    @property
    def _behind_rows(self) -> tuple[WindowRequest, ...]:
        """A holder may send what it keeps up to a stamp when the rows before that have come."""
        return tuple(request for request in self.requests if request.upto is not None)

    def rows(self, clock: int, frontiers: tuple[tuple[LegKey, int], ...]) -> SiteNews:
        """What it says of rows at a clock, with the frontiers that have moved."""
        return SiteNews(
            clock=clock,
            asking=self.asking,
            frontiers=frontiers,
            shipments=tuple(self.shipments),
            requests=self._behind_rows,
        )

    def urgent(self) -> SiteNews | None:
        """What it says about plans, if it does."""
        requests = tuple(request for request in self.requests if request.upto is None)
        if not (requests or self.messages):
            return None
        return SiteNews(requests=requests, messages=tuple(self.messages))


class RowWriter(Protocol):
    """How the rows of shipments are written: `plait.sites.site.rows.ShippedRows`."""

    def encode(self, shipment: Shipment) -> tuple[list[Any] | None, bytes]:
        """The rows, and what must be known to read them."""

    def decode(self, kind: str, head: str, about: list[Any] | None, body: bytes) -> pa.RecordBatch:
        """The inverse of `encode`."""


def encode_news(news: SiteNews, shipped: RowWriter) -> bytes:
    """The body of a packet."""
    written = [shipped.encode(shipment) for shipment in news.shipments]
    parts = zip(news.shipments, written, strict=True)
    about = {
        "version": VERSION,
        "clock": news.clock,
        "received": news.received,
        "asking": news.asking,
        "frontiers": news.frontiers,
        "requests": news.requests,
        "messages": [turn_to_plain(message) for message in news.messages],
        "shipments": [[s.kind, *s.leg, about, len(body)] for s, (about, body) in parts],
    }
    said = {name: value for name, value in about.items() if value}  # most have nothing to say
    text = json.dumps(said, separators=(",", ":")).encode()
    bodies = (body for _, body in written)
    return b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *bodies])


def decode_news(body: bytes, shipped: RowWriter) -> SiteNews:
    """The inverse of `encode_news`; anything else is a SourceError.

    >>> from plait.sites.site.rows import ShippedRows
    >>> from plait.testing.examples import clique
    >>> news, shipped = SiteNews(7, 3, frontiers=((LegKey(0, "a", 1), 99),)), ShippedRows(clique(2))
    >>> decode_news(encode_news(news, shipped), shipped) == news
    True
    >>> decode_news(b"no packet", shipped)
    Traceback (most recent call last):
    plait.errors.SourceError: a packet between sites cannot be read; send it again
    """
    try:
        return _decoded(body, shipped)
    except (ValueError, TypeError, KeyError, IndexError, OSError, pa.ArrowException) as error:
        raise SourceError(
            "a packet between sites cannot be read", remedy="send it again"
        ) from error


def _decoded(body: bytes, shipped: RowWriter) -> SiteNews:
    begin = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    about: dict[str, Any] = json.loads(body[_LENGTH_BYTES:begin])
    if about["version"] > VERSION:
        raise SourceError(
            f"a packet has the format {about['version']}, this version knows {VERSION}",
            remedy="run all sites with the same version of Plait",
        )
    shipments = []
    for kind, plan, head, number, rows_about, size in about.get("shipments", ()):
        rows = shipped.decode(kind, head, rows_about, body[begin : begin + size])
        shipments.append(Shipment(kind, LegKey(plan, head, number), rows))
        begin += size
    return SiteNews(
        clock=int(about.get("clock", 0)),
        received=int(about.get("received", 0)),
        asking=bool(about.get("asking")),
        frontiers=from_plain(tuple[tuple[LegKey, int], ...], about.get("frontiers", ())),
        shipments=tuple(shipments),
        requests=from_plain(tuple[WindowRequest, ...], about.get("requests", ())),
        messages=tuple(map(turn_from_plain, about.get("messages", ()))),
    )
