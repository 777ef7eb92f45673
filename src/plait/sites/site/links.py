"""The links of a site: every packet is taken in once and in order, whatever the network does.

*Correct output.* What `take_in` returns over all calls are the packets that each other site has
sent, each once, in the order of their numbers in their channel, as long as not every copy of a
packet is lost. Channels do not wait for each other.

*Invariants.* A packet with a number is in the outbox, and so in the store, until the other site has
acknowledged it; one that came before its turn waits in the store, too. An acknowledgement says how
far packets were taken in, so it holds whenever it comes, and the newest says all.

*Loss.* If nothing new is acknowledged in `Tuning.resend_steps` steps, the oldest packet is sent
again. If that helped and more is still due, twice as many follow, and so on: a site that does not
answer costs one packet at a time, and n lost packets are made up for in about log n rounds. A
repeated packet is acknowledged again, so a lost acknowledgement is made up for, too. Steps are
counted, because clocks may be wrong.

*Cost.* One packet per step, target and channel, if there is something to say there, and one that
only acknowledges where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from plait.errors import CheckpointMismatch, SiteError, did_you_mean
from plait.groups.moves.lanes import lane_of
from plait.sites.site.header import SiteLinkState
from plait.sites.site.packets import (
    Channel,
    RowWriter,
    SiteChannel,
    SiteNews,
    SitePacket,
    UnansweredPackets,
    decode_news,
    encode_news,
)
from plait.sites.site.store import EARLY, EARLY_MESSAGES, OUTBOX, OUTBOX_MESSAGES, SegmentChanges
from plait.tuning import USUAL, Tuning

_OUTBOXES: dict[Channel, int] = {"rows": OUTBOX, "messages": OUTBOX_MESSAGES}
_EARLY: dict[Channel, int] = {"rows": EARLY, "messages": EARLY_MESSAGES}


class SiteLinks:
    """The packets between a site and the others, which go on from the `states` of a header."""

    def __init__(
        self,
        me: str,
        names: Iterable[str],
        changes: SegmentChanges,
        states: Mapping[SiteChannel, SiteLinkState],
        shipped: RowWriter,
        tuning: Tuning = USUAL,
    ) -> None:
        self.me = me
        self.step = 0
        """The number of the step that is being made."""
        self._resend_steps = tuning.resend_steps
        self._names = tuple(names)
        self._changes = changes
        self._shipped = shipped
        ways = [SiteChannel(channel, name) for channel in _OUTBOXES for name in self._names]
        self._outbox: dict[SiteChannel, dict[int, bytes]] = {way: {} for way in ways}
        self._early: dict[SiteChannel, dict[int, bytes]] = {way: {} for way in ways}
        self.states = {way: states.get(way, SiteLinkState()) for way in ways}
        self.unacknowledged: set[SiteChannel] = set()
        """Where something has come since it was last told what has come."""

    def restore(self, kind: int, site: int, number: int, body: bytes) -> None:
        """Have a packet of the store again."""
        for kinds, packets in ((_OUTBOXES, self._outbox), (_EARLY, self._early)):
            for channel, its in kinds.items():
                if its == kind:
                    packets[SiteChannel(channel, self._names[site])][number] = body

    def take_in(self, packets: Iterable[SitePacket]) -> list[tuple[str, SiteNews]]:
        """What the packets bring, in order; what comes before its turn waits, repeats are ignored.

        The state of a channel has the clock of the last packet that was taken in.
        """
        given = [(packet, self._checked(packet)) for packet in packets]
        read = {(_way_from(packet), packet.number): news for packet, news in given}
        found = []
        for packet, news in given:
            way = _way_from(packet)
            self._acknowledged(way, news.received)
            if not packet.number:
                continue
            self.unacknowledged.add(way)
            if packet.number <= self.states[way].received:
                continue
            early, lane = self._early[way], self._lane(way, _EARLY)
            if packet.number not in early:
                early[packet.number] = packet.body
                self._changes.add(packet.number, lane, 0, packet.body)
            while (number := self.states[way].received + 1) in early:
                body = early.pop(number)
                following = read.get((way, number)) or decode_news(body, self._shipped)
                self._changes.remove(number, lane)
                state = self.states[way]
                self.states[way] = replace(state, received=number, clock=following.clock)
                found.append((packet.origin, following))
        return found

    def send(self, way: SiteChannel, news: SiteNews) -> SitePacket:
        """A packet with the next number, kept until it is acknowledged."""
        state = self.states[way]
        number = state.sent + 1
        waits = state.waits if self._outbox[way] else self.step
        self.states[way] = replace(state, sent=number, waits=waits)
        body = encode_news(replace(news, received=state.received), self._shipped)
        self._outbox[way][number] = body
        self._changes.add(number, self._lane(way, _OUTBOXES), 0, body)
        self.unacknowledged.discard(way)
        return self._packet(way, number, body)

    def acknowledge(self) -> list[SitePacket]:
        """Packets that only say what has come, to those who have not been told otherwise."""
        due, self.unacknowledged = sorted(self.unacknowledged), set()
        told = {way: SiteNews(received=self.states[way].received) for way in due}
        return [
            self._packet(way, 0, encode_news(news, self._shipped)) for way, news in told.items()
        ]

    def resend(self, now: bool = False) -> list[SitePacket]:
        """Packets that have waited too long for an acknowledgement, to be sent once more.

        With `now`, any that were sent in an earlier step have waited long enough.
        """
        patience = 1 if now else self._resend_steps
        due = []
        for way, outbox in self._outbox.items():
            state = self.states[way]
            if outbox and self.step - max(state.waits, state.resent) >= patience:
                helped = state.waits > state.resent
                many = max(1, 2 * state.again) if helped else 1
                self.states[way] = replace(state, resent=self.step, again=many)
                due += [self._packet(way, n, outbox[n]) for n in sorted(outbox)[:many]]
        return due

    def unanswered(self) -> dict[str, UnansweredPackets]:
        """For each site, the packets to it that are not acknowledged."""
        found: dict[str, UnansweredPackets] = {}
        for way, outbox in self._outbox.items():
            if outbox:
                state = self.states[way]
                before = found.get(way.site, UnansweredPackets(0, state.waits, False))
                found[way.site] = UnansweredPackets(
                    before.packets + len(outbox),
                    min(before.since, state.waits),
                    before.resent or state.again > 0,
                )
        return found

    def outstanding(self) -> list[SitePacket]:
        """The packets that nobody has acknowledged so far, in order."""
        return [
            self._packet(way, number, body)
            for way, bodies in self._outbox.items()
            for number, body in sorted(bodies.items())
        ]

    def clock(self, site: str) -> int:
        """The clock up to which all rows of a site have come."""
        return self.states[SiteChannel("rows", site)].clock

    def asked(self, site: str, clock: int) -> bool:
        """Note that a site is to reach a clock; whether it has to be asked for that."""
        way = SiteChannel("rows", site)
        state = self.states[way]
        if clock <= max(state.asked, state.clock):
            return False
        self.states[way] = replace(state, asked=clock)
        return True

    def _packet(self, way: SiteChannel, number: int, body: bytes) -> SitePacket:
        return SitePacket(self.me, way.site, number, body, way.channel)

    def _acknowledged(self, way: SiteChannel, number: int) -> None:
        state, outbox = self.states[way], self._outbox[way]
        if number <= state.acknowledged:
            return
        for gone in range(state.acknowledged + 1, number + 1):
            del outbox[gone]
            self._changes.remove(gone, self._lane(way, _OUTBOXES))
        again = state.again if outbox else 0
        self.states[way] = replace(state, acknowledged=number, waits=self.step, again=again)

    def _lane(self, way: SiteChannel, kinds: Mapping[Channel, int]) -> int:
        return lane_of(self._names.index(way.site), kinds[way.channel])

    def _checked(self, packet: SitePacket) -> SiteNews:
        """What is in a packet that may be taken in."""
        if packet.target != self.me:
            raise SiteError(
                f"a packet for {packet.target!r} has come to {self.me!r}",
                remedy="deliver packets to the site that they name",
            )
        if packet.origin not in self._names:
            raise SiteError(
                f"a packet has come from an unknown site {packet.origin!r}",
                remedy=did_you_mean(packet.origin, self._names),
            )
        if packet.channel not in _OUTBOXES:
            raise SiteError(
                f"a packet has come by an unknown channel {packet.channel!r}",
                remedy="run all sites with the same version of Plait",
            )
        news, sent = decode_news(packet.body, self._shipped), self.states[_way_from(packet)].sent
        if news.received > sent:
            raise CheckpointMismatch(
                f"{packet.origin!r} has taken in packet {news.received} from {self.me!r}, which "
                f"has sent {sent}: their states do not belong together",
                remedy="start all sites from the states of one run, or all of them anew",
            )
        return news


def _way_from(packet: SitePacket) -> SiteChannel:
    return SiteChannel(packet.channel, packet.origin)
