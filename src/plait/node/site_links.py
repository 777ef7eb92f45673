"""The links of a site: every packet is taken in once and in order, whatever the network does.

*Correct output.* What `take_in` returns over all calls are the packets that each other site has
sent, each once, in the order of their numbers, as long as every packet comes at least once.

*Invariants.* A packet with a number is in the outbox, and so in the store, until the other site has
acknowledged it; one that came before its turn waits in the store, too. An acknowledgement says how
far packets were taken in, so it holds whenever it comes, and the newest says all.

*Cost.* One packet per step and target, and one that only acknowledges where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from plait.errors import CheckpointMismatch, SiteError, did_you_mean
from plait.node.site_header import SiteLinkState
from plait.node.site_packets import RowWriter, SiteNews, SitePacket, decode_news, encode_news
from plait.node.site_store import EARLY, OUTBOX, SegmentChanges
from plait.node.store import lane_of


class SiteLinks:
    """The packets between a site and the others, which go on from the `states` of a header."""

    def __init__(
        self,
        me: str,
        names: Iterable[str],
        changes: SegmentChanges,
        states: Mapping[str, SiteLinkState],
        shipped: RowWriter,
    ) -> None:
        self.me = me
        self._names = tuple(names)
        self._changes = changes
        self._shipped = shipped
        self._outbox: dict[str, dict[int, bytes]] = {name: {} for name in self._names}
        self._early: dict[str, dict[int, bytes]] = {name: {} for name in self._names}
        self.states = {name: states.get(name, SiteLinkState()) for name in self._names}
        self.unacknowledged: set[str] = set()
        """The sites that have sent something since they were last told what has come."""

    def restore(self, kind: int, site: int, number: int, body: bytes) -> None:
        """Have a packet of the store again."""
        (self._outbox if kind == OUTBOX else self._early)[self._names[site]][number] = body

    def take_in(self, packets: Iterable[SitePacket]) -> list[tuple[str, SiteNews]]:
        """What the packets bring, in order; what comes before its turn waits, repeats are ignored.

        The state of a link has the clock of the last packet that was taken in.
        """
        given = [(packet, self._checked(packet)) for packet in packets]
        read = {(packet.origin, packet.number): news for packet, news in given}
        found = []
        for packet, news in given:
            origin = packet.origin
            self._acknowledged(origin, news.received)
            if not packet.number:
                continue
            self.unacknowledged.add(origin)
            if packet.number <= self.states[origin].received:
                continue
            early = self._early[origin]
            if packet.number not in early:
                early[packet.number] = packet.body
                lane = self._lane(origin, EARLY)
                self._changes.add(packet.number, lane, 0, packet.body)
            while (number := self.states[origin].received + 1) in early:
                body = early.pop(number)
                following = read.get((origin, number)) or decode_news(body, self._shipped)
                self._changes.remove(number, self._lane(origin, EARLY))
                state = self.states[origin]
                self.states[origin] = replace(state, received=number, clock=following.clock)
                found.append((origin, following))
        return found

    def send(self, target: str, news: SiteNews) -> SitePacket:
        """A packet with the next number, kept until it is acknowledged."""
        state = self.states[target]
        number = state.sent + 1
        self.states[target] = replace(state, sent=number)
        body = encode_news(replace(news, received=state.received), self._shipped)
        self._outbox[target][number] = body
        self._changes.add(number, self._lane(target, OUTBOX), 0, body)
        self.unacknowledged.discard(target)
        return SitePacket(self.me, target, number, body)

    def acknowledge(self) -> list[SitePacket]:
        """Packets that only say what has come, to those who have not been told otherwise."""
        due, self.unacknowledged = sorted(self.unacknowledged), set()
        told = {site: SiteNews(received=self.states[site].received) for site in due}
        return [
            SitePacket(self.me, site, 0, encode_news(news, self._shipped))
            for site, news in told.items()
        ]

    def outstanding(self) -> list[SitePacket]:
        """The packets that nobody has acknowledged so far, in order."""
        return [
            SitePacket(self.me, target, number, body)
            for target, bodies in self._outbox.items()
            for number, body in sorted(bodies.items())
        ]

    def asked(self, site: str, clock: int) -> bool:
        """Note that a site is to reach a clock; whether it has to be asked for that."""
        state = self.states[site]
        if clock <= max(state.asked, state.clock):
            return False
        self.states[site] = replace(state, asked=clock)
        return True

    def _acknowledged(self, site: str, number: int) -> None:
        state, outbox = self.states[site], self._outbox[site]
        if number <= state.acknowledged:
            return
        for gone in range(state.acknowledged + 1, number + 1):
            del outbox[gone]
            self._changes.remove(gone, self._lane(site, OUTBOX))
        self.states[site] = replace(state, acknowledged=number)

    def _lane(self, site: str, kind: int) -> int:
        return lane_of(self._names.index(site), kind)

    def _checked(self, packet: SitePacket) -> SiteNews:
        """What is in a packet that may be taken in."""
        if packet.target != self.me:
            raise SiteError(
                f"a packet for {packet.target!r} has come to {self.me!r}",
                remedy="deliver packets to the site that they name",
            )
        if packet.origin not in self.states:
            raise SiteError(
                f"a packet has come from an unknown site {packet.origin!r}",
                remedy=did_you_mean(packet.origin, self._names),
            )
        news = decode_news(packet.body, self._shipped)
        if news.received > self.states[packet.origin].sent:
            raise CheckpointMismatch(
                f"{packet.origin!r} has taken in packet {news.received} from {self.me!r}, which "
                f"has sent {self.states[packet.origin].sent}: their states do not belong together",
                remedy="start all sites from the states of one run, or all of them anew",
            )
        return news
