"""Sites in virtual time: what a join over sites costs, from counted operations and bytes.

*Work.* A site does one step at a time. It takes all rows and packets that have come, and the step
takes as long as the paper's nested loops would: so much for each pair that they compare and for
each tuple that enters a window (`plait.sites.planner.cost`). Nobody executes these loops.

*Links* have a latency and a rate of their own. A packet waits for the one before it, takes its
bytes over the rate, and arrives a latency later. Messages about plans wait for other messages only,
and rows for both. By default the bytes of a packet are those of its body; with `tuple_bytes` they
are those of its tuples, as in the paper's cost model. Results cost nothing.

*Entries* say what was spent and when: work, data (tuples), windows (copies), and messages of plan
changes by their kind. The cost of what is sent is T(x) = latency + bytes / rate; messages count as
if each was sent alone.

*Ties and time.* Those of `plait_lab.virtual.timeline`: a run depends on nothing but its input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

import pyarrow as pa

from plait.engine.intake.times import AFTER_ALL_TIMES
from plait.sites.plans.plan import Jep
from plait.sites.protocol.turns import InTurn
from plait.sites.protocol.wire import turn_from_plain, turn_to_plain
from plait.sites.site.packets import Channel, Shipment, SiteChannel, SiteNews, SitePacket
from plait.sites.site.setup import SiteOutcome, SiteReport, SiteSetup
from plait.sites.site.site import Site
from plait_lab.protocol.message_kinds import kind_of
from plait_lab.virtual.machines import Machine
from plait_lab.virtual.timeline import Timeline

_MICROS = 1_000_000
_NEVER = 2**62
"""More steps than any run has."""

Spent: TypeAlias = Literal["work", "data", "window", "modification", "synchronization", "turn"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Seconds that were spent at a site, or by it on a link."""

    time: float
    site: str
    what: Spent
    seconds: float
    nbytes: float = 0.0
    count: int = 1


@dataclass(frozen=True, slots=True)
class PlanSwitch:
    """From now on the heads of a site follow this plan."""

    time: float
    site: str
    plan: Jep


@dataclass(slots=True)
class _Inbox:
    rows: dict[str, list[pa.Table]] = field(default_factory=dict)
    packets: list[SitePacket] = field(default_factory=list)
    stored: int = 0
    """Rows in these packets that enter windows."""
    planned: bool = False
    free: float = 0.0


class VirtualSites:
    """All sites of a join in virtual time; give rows with `arrive`, then `run`.

    >>> from plait.testing.examples import clique
    >>> from plait.sites.plans.plan import Jep, Sep, fully_connected
    >>> sites = fully_connected({"a": "oslo", "b": "rome"}, 0.005, 128_000, results="rome")
    >>> jep = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    >>> host = VirtualSites(SiteSetup(clique(2), sites, jep), tuple_bytes=640)
    >>> row = pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": [1]})
    >>> host.arrive(0.0, "b", row)
    >>> host.arrive(0.1, "a", row)
    >>> host.run(1.0)
    >>> [(entry.time, entry.seconds) for entry in host.entries if entry.what == "data"]
    [(0.1, 0.01)]
    >>> sum(rows.num_rows for rows in host.results)
    1
    """

    def __init__(
        self,
        setup: SiteSetup,
        machines: Mapping[str, Machine] | None = None,
        *,
        tuple_bytes: float | None = None,
    ) -> None:
        # These links lose nothing, and slow ones must not be loaded with repeats.
        setup = replace(setup, tuning=replace(setup.tuning, resend_steps=_NEVER))
        self.setup = setup
        self.line = Timeline()
        names = dict.fromkeys([*setup.sites.names, setup.sites.results])
        self.sites = {name: Site.load(setup, name) for name in names}
        self.entries: list[Entry] = []
        self.reports: list[tuple[float, SiteReport]] = []
        self.results: list[pa.RecordBatch] = []
        self.switches: list[PlanSwitch] = []
        self._numbers = dict.fromkeys(names, 0)
        self._machines = machines or {}
        self._tuple_bytes = tuple_bytes
        self._inboxes = {name: _Inbox() for name in names}
        self._links = {(link.origin, link.target): link for link in setup.sites.links}
        self._busy: dict[tuple[str, str, Channel], float] = {}

    def arrive(self, time: float, stream: str, rows: pa.Table) -> None:
        """Rows of a stream arrive at its home."""
        name = self.setup.sites.home(stream)
        self.line.plan(time, lambda now: self._rows(name, stream, rows, now))

    def run(self, until: float) -> None:
        """Let everything happen up to a time."""
        self.line.run(until)

    def _rows(self, name: str, stream: str, rows: pa.Table, now: float) -> None:
        self._inboxes[name].rows.setdefault(stream, []).append(rows)
        self._wake(name, now)

    def _packet(self, packet: SitePacket, stored: int, now: float) -> None:
        self._inboxes[packet.target].packets.append(packet)
        self._inboxes[packet.target].stored += stored
        self._wake(packet.target, now)

    def _wake(self, name: str, now: float) -> None:
        inbox = self._inboxes[name]
        if not inbox.planned:
            inbox.planned = True
            self.line.plan(max(now, inbox.free), lambda then: self._step(name, then))

    def _step(self, name: str, now: float) -> None:
        inbox = self._inboxes[name]
        rows = {stream: pa.concat_tables(parts) for stream, parts in inbox.rows.items()}
        packets, stored = inbox.packets, inbox.stored
        inbox.rows, inbox.packets, inbox.stored, inbox.planned = {}, [], 0, False
        outcome = self.sites[name].step(rows, packets, now=round(now * _MICROS))
        seconds = self._machines.get(name, Machine()).seconds(self._work(outcome, stored))
        inbox.free = now + seconds
        if seconds:
            self.entries.append(Entry(now, name, "work", seconds))
        self.reports.append((now, outcome.report))
        self.results += outcome.results
        number = self.sites[name].migration.eras.plan_at(AFTER_ALL_TIMES)
        if number != self._numbers[name]:
            self._numbers[name] = number
            self.switches.append(PlanSwitch(now, name, self.sites[name].plans[number]))
        for packet in outcome.packets:
            way = SiteChannel(packet.channel, packet.target)
            news = outcome.news[way] if packet.number else SiteNews()
            self._send(packet, news, now, inbox.free)

    def _work(self, outcome: SiteOutcome, stored: int) -> float:
        """Seconds of nested loops and of window updates, by a machine of speed 1."""
        prices, report = self.setup.prices, outcome.report
        updates = stored + sum(report.rows.values())
        return report.compared * prices.probe + updates * prices.update

    def _send(self, packet: SitePacket, news: SiteNews, now: float, ready: float) -> None:
        """Send a packet once the step is done, behind what was sent on the link before."""
        way = (packet.origin, packet.target)
        link = self._links.get(way)
        if link is None:  # to the site for results, or from it
            self.line.plan(ready, partial(self._packet, packet, 0))
            return
        stored = [s.rows.num_rows for s in news.shipments if s.kind in ("stream", "window")]
        arrives = partial(self._packet, packet, sum(stored))
        size = self._charged(packet, news, now)
        # What is sent delays the rows behind it; only messages delay messages.
        channels: tuple[Channel, ...] = ("rows", "messages")
        for channel in channels[: 1 + channels.index(packet.channel)]:
            before = max(ready, self._busy.get((*way, channel), 0.0))
            self._busy[*way, channel] = before + size / link.rate
        self.line.plan(self._busy[*way, packet.channel] + link.latency, arrives)

    def _charged(self, packet: SitePacket, news: SiteNews, now: float) -> float:
        """Note what a packet costs; its bytes."""
        link, origin = self._links[packet.origin, packet.target], packet.origin
        data = [s for s in news.shipments if s.kind in ("stream", "tuples")]
        copies = [s for s in news.shipments if s.kind == "window"]
        total = 0.0
        for what, shipments in (("data", data), ("window", copies)):
            if shipments:
                size = sum(map(self._size, shipments))
                spent: Spent = "data" if what == "data" else "window"
                self.entries.append(Entry(now, origin, spent, link.seconds(size), size))
                total += size
        for message in news.messages:
            size = len(repr(_as_read(message)))
            kind = _kind(message)
            self.entries.append(Entry(now, origin, kind, link.seconds(size), size))
            total += size
        for request in news.requests:
            size = len(repr(request))
            self.entries.append(Entry(now, origin, "window", link.seconds(size), size))
            total += size
        return float(len(packet.body)) if self._tuple_bytes is None else total

    def _size(self, shipment: Shipment) -> float:
        """The bytes of the tuples that are shipped."""
        if self._tuple_bytes is None:
            return float(shipment.rows.nbytes)
        rows: int = shipment.rows.num_rows
        if shipment.kind == "tuples":
            streams = {name.split(".")[0] for name in shipment.rows.schema.names if "." in name}
            return self._tuple_bytes * len(streams) * rows
        return self._tuple_bytes * rows


def _as_read(message: InTurn) -> InTurn:
    """A message as its receiver reads it: a rate of 50 is the same as one of 50.0."""
    return turn_from_plain(json.loads(json.dumps(turn_to_plain(message))))


def _kind(message: InTurn) -> Spent:
    """What a message is counted as; acknowledgements are part of the modification."""
    kind = kind_of(message.sent.message)
    if kind == "turn":
        return "turn"
    return "synchronization" if kind == "synchronization" else "modification"
