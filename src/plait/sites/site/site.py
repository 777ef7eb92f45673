"""A site: a node that owns the windows of the streams that arrive there, and runs its operators.

*Correct output.* Over all sites, every combination of one admitted row per stream that satisfies
the query, exactly once, at the site that results go to; and every row that was set aside, with the
reason, at the home of its stream. Nothing of that depends on the plan, on how rows are split into
steps, or on how long packets take, in which order they come, and how often.

*Which head finds a result.* Each site has a clock that counts steps: in each step it is set beyond
all clocks that packets have brought (a logical clock; `now` may push it further). The rows that
arrive in a step are *stamped* with it. Rows of different streams are ordered by (stamp, index of
their stream), and all sites agree on that order without any clock that they share. A result is
found by the last of its rows in this order, the *head*: on its way along its sequence it probes for
rows that are before it, and a head that is not the last misses those that are not. So there is no
need to wait for watermarks: a silent stream holds back windows, but no results.

*When a probe may run.* The window of stream k must have all rows before the head. At the home of k
it always has: what comes from a site with clock c moves the clock beyond c, and every later row is
stamped after that. A copy has them when the home has told a clock that is not less than the head's
stamp; a packet tells the clock of its step, and all earlier rows were sent before or with it. If
no such packet has come, the tuples wait, and the home is asked; its answer takes one round trip.

*When a row may be dropped.* A row w of stream k is needed while a head of stream i with
`ts <= ts_w + D[k][i]` may still come to a leg that probes w's window. For every leg a site knows a
*frontier*: no head that comes later is before that event time. At the first leg it is the watermark
of the head stream, at each further leg that of the leg before and of what waits there. Frontiers
travel in packets behind the tuples they speak of, and links keep the order, so they are true
whatever is under way. A stream without a watermark has no frontier until it ends.

*Invariants.* A site is a state machine: a step follows from the site and what it is given. Between
two steps everything is in the header and the segments of the store; a step writes its changes
there. If the host commits them before it sends the packets and hands on the results of the step,
then a crash at any point, and a site that was loaded from the store, changes nothing.

*Cost.* That of the lookups and their results; a packet per step and target. Asking costs one round
trip and two packets, only where a window is kept far from its home and the home is behind.

*Ties and time.* Rows are late by their own stream's watermark before the step, as everywhere
(`plait.engine.intake.admission`). By the least watermark of all streams nothing can be late here:
no site knows all of them at one instant, so such queries are refused, as are idle time-outs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.errors import CheckpointMismatch, UnknownSite, did_you_mean
from plait.groups.moves.lanes import kind_of, stream_of
from plait.groups.routing.packets import lean
from plait.node.batch import Rows
from plait.node.durable.store import Store
from plait.node.reports.report import add
from plait.query.names import quoted
from plait.sites.plans.plan import Jep
from plait.sites.protocol.messages import Wish
from plait.sites.protocol.turns import Turns
from plait.sites.site.admission import HomeStreams, SiteRows
from plait.sites.site.header import SiteHeader
from plait.sites.site.links import SiteLinks
from plait.sites.site.migration import SiteMigration
from plait.sites.site.outgoing import Outgoing
from plait.sites.site.packets import LegKey, SiteNews, SitePacket
from plait.sites.site.planning import SitePlanning
from plait.sites.site.rows import ShippedRows
from plait.sites.site.runs import LegRuns, WorkCounts
from plait.sites.site.setup import SiteOutcome, SiteReport, SiteSetup
from plait.sites.site.store import HELD, WAITING, WINDOW, SegmentChanges


class Site:
    """One site at work. Make or reload it with `Site.load`.

    >>> import pyarrow as pa
    >>> from plait.sites.plans.plan import Sep, fully_connected
    >>> from plait.testing.examples import clique
    >>> query = clique(2)
    >>> sites = fully_connected({"a": "oslo", "b": "rome"}, 0.005, 128_000, results="rome")
    >>> jep = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    >>> setup = SiteSetup(query, sites, jep)
    >>> oslo, rome = Site.load(setup, "oslo"), Site.load(setup, "rome")
    >>> row = lambda: pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": [1]})
    >>> sent = oslo.step({"a": row()}).packets
    >>> asked = rome.step({"b": row()}, sent)  # perhaps oslo has sent more?
    >>> asked.results, asked.report.waiting
    ([], 1)
    >>> answer = oslo.step(packets=asked.packets)  # it has not
    >>> found = rome.step(packets=answer.packets)
    >>> [rows.num_rows for rows in found.results]
    [1]
    >>> rome.step(packets=[*sent, *answer.packets]).results  # the same packets once more
    []
    """

    def __init__(self, setup: SiteSetup, header: SiteHeader) -> None:
        sites, name, everyone = setup.sites, header.site, setup.everyone
        if name not in everyone:
            raise UnknownSite(f"there is no site {name!r}", remedy=did_you_mean(name, everyone))
        self.setup, self.name, self.query = setup, name, setup.query
        self.step_number, self.token, self.clock = header.step, header.token, header.clock
        self._changes = changes = SegmentChanges()
        joined = lean(setup.query)
        shipped = ShippedRows(joined)
        here = [stream for stream, home in sites.homes if home == name]
        newest = {stream: header.newest.get(stream, BEFORE_ALL_TIMES) for stream in here}
        self.streams = HomeStreams(name, setup.query, joined, newest, header.ended)
        others = [other for other in everyone if other != name]
        self.links = SiteLinks(name, others, changes, header.links, shipped, setup.tuning)
        far = setup.query.bounds.widest // setup.tuning.frontiers_per_window
        self._outgoing = Outgoing(header.told, far)
        self.legs = LegRuns(setup, header, joined, changes, shipped)
        self.migration = SiteMigration(self.legs, self._outgoing, changes, header.eras)
        self.planning: SitePlanning | None = None
        """Its part in changes of the plan, if it may change and streams arrive here."""
        if setup.policy is not None and name in sites.names:
            turns = Turns(setup.policy, setup.setting, setup.jep, setup.automatic)
            self.planning = SitePlanning(turns, name, setup.query, self.migration, header.planning)

    @classmethod
    def load(cls, setup: SiteSetup, name: str, store: Store | None = None) -> Site:
        """The site whose state is in a store; a new one if nothing is."""
        text = None if store is None else store.read_header()
        if store is None or text is None:
            return cls(setup, SiteHeader(name, setup.sites, {0: setup.jep}))
        header = SiteHeader.from_json(text)
        if header.site != name:
            raise CheckpointMismatch(
                f"the state is that of the site {quoted(header.site)}, not of {quoted(name)}",
                remedy="give each site a store of its own",
            )
        if (header.sites.homes, header.sites.results) != (setup.sites.homes, setup.sites.results):
            raise CheckpointMismatch(
                f"the state of the site {quoted(name)} was written for streams at other sites",
                remedy="begin with a new store",
            )
        site = cls(setup, header)
        for segment, lane, _, body in sorted(store.segments(), key=lambda s: s[:2]):
            site._restore(segment, lane, body)
        return site

    def _restore(self, segment: int, lane: int, body: bytes) -> None:
        """Have a segment of the store again."""
        kind = kind_of(lane)
        if kind == WINDOW:
            self.legs.windows.restore(stream_of(lane), segment, body)
        elif kind == WAITING:
            self.legs.restore(segment, body)
        elif kind == HELD:
            self.migration.restore(stream_of(lane), segment, body)
        else:
            self.links.restore(kind, stream_of(lane), segment, body)

    @property
    def header(self) -> SiteHeader:
        """What it knows, beside rows and packets."""
        return SiteHeader(
            site=self.name,
            sites=self.setup.sites,
            plans=dict(self.plans),
            step=self.step_number,
            token=self.token,
            clock=self.clock,
            newest=dict(self.streams.newest),
            ended=self.streams.ended,
            items=self.legs.items,
            links=dict(self.links.states),
            frontiers=dict(self.legs.frontiers),
            told=dict(self._outgoing.told),
            eras=self.migration.eras,
            planning=None if self.planning is None else self.planning.to_plain(),
        )

    @property
    def plans(self) -> dict[int, Jep]:
        """The plans that are installed, by number."""
        return self.legs.plans

    @property
    def followed(self) -> int:
        """The number of the plan that heads to come follow."""
        return self.migration.eras.plan_at(self.clock + 1)

    def step(
        self,
        rows: Mapping[str, Rows] | None = None,
        packets: Iterable[SitePacket] = (),
        *,
        now: int = 0,
        beat: bool = False,
        again: bool = False,
        ended: bool = False,
        wishes: Iterable[Wish] = (),
        token: str = "",
        store: Store | None = None,
    ) -> SiteOutcome:
        """Take in rows and packets, and do what they make possible.

        Rows are given by stream, for streams that arrive here. `now` pushes the clock, so that the
        clocks of sites do not drift apart. A `beat` tells everybody who keeps a window of this
        site's streams how far it has come; with `again`, what was not acknowledged is sent again
        without further delay. After `ended` no more rows come. `wishes` are plans that somebody
        wants, or wants no longer; all sites are told the same. The state after the step has the
        name `token`, and what changed is written to the `store`; without one, nothing is durable.
        What is refused changes nothing.
        """
        self.links.step = self.step_number + 1
        outcome = SiteOutcome(SiteReport(self.name, self.links.step, time=now))
        admitted = self.streams.admit(rows or {}, outcome)
        news = self.links.take_in(packets)
        # From here on nothing is refused.
        self.streams.advance(admitted)
        self.step_number, self.token = self.links.step, token
        worked = self.legs.work()
        for origin, one in news:
            self._take(origin, one, outcome)
        self._plan(admitted, [one for _, one in news], wishes, outcome.report)
        self._tick(now, [one for _, one in news])
        self.streams.ended = self.streams.ended or ended
        self.migration.release()
        for stream, fresh in admitted.items():
            self._arrive(stream, fresh)
        outcome.results += self.legs.join(self._complete, self._outgoing)
        self._ask()
        self._tell(beat)
        self.legs.purge()
        resent = self.links.resend(again)
        outcome.news = self._outgoing.take(self.clock)
        sent = [self.links.send(way, one) for way, one in outcome.news.items()]
        outcome.packets = [*resent, *sent, *self.links.acknowledge()]
        self.migration.retire(self.clock)
        self._complete_report(outcome, worked)
        if store is None:
            self._changes.forget()
        else:
            self._changes.save(store, self.header.to_json())
        return outcome

    def _take(self, origin: str, news: SiteNews, outcome: SiteOutcome) -> None:
        """Take in what another site has sent: tuples, then what it says about those to come."""
        for shipment in news.shipments:
            plan, stream, _ = shipment.leg
            if shipment.kind == "results":
                outcome.results.append(shipment.rows)
            elif shipment.kind == "tuples":
                self.legs.enter(shipment.leg, shipment.rows)
            elif shipment.kind == "window":
                self.migration.fill(origin, shipment)
            else:
                self.legs.enter_heads(plan, stream, shipment.rows, news.clock)
        frontiers = self.legs.frontiers
        for leg, time in news.frontiers:
            frontiers[leg] = max(frontiers.get(leg, BEFORE_ALL_TIMES), time)
        for request in news.requests:
            self.migration.request(request, self.clock)
        if news.asking:
            self._outgoing.to(origin).wanted = True

    def _plan(
        self,
        admitted: Mapping[str, SiteRows],
        news: Iterable[SiteNews],
        wishes: Iterable[Wish],
        report: SiteReport,
    ) -> None:
        """Take part in changes of the plan, if it may change."""
        if self.planning is not None:
            messages = [message for one in news for message in one.messages]
            sent = self.planning.step(
                admitted, messages, wishes, stamp=self.clock + 1, report=report
            )
            for target, message in sent:
                self._outgoing.to(target).messages.append(message)
        self.migration.ask_for_windows(self.clock)

    def _tick(self, now: int, news: Iterable[SiteNews]) -> None:
        """Set the clock beyond all that are known, and beyond what a new plan begins with."""
        known = [self.clock, now, self.migration.eras.earliest_clock]
        self.clock = max([*known, *(one.clock for one in news)]) + 1

    def _arrive(self, stream: str, fresh: SiteRows) -> None:
        """Store, ship and join the new rows of a stream at its home."""
        rows = fresh.rows
        if not rows.num_rows:
            return
        plan = self.migration.plan_for(stream, rows, self.clock)
        self.legs.enter_heads(plan, stream, rows, self.clock)
        for target in self.migration.receivers(stream):
            self._outgoing.ship(target, "stream", LegKey(plan, stream, 0), rows)

    def _complete(self, stream: int) -> int:
        """The stamp up to which the window of a stream is complete here."""
        home = self.setup.sites.homes[stream][1]
        return self.clock if home == self.name else self.links.clock(home)

    def _ask(self) -> None:
        """Ask the homes of windows that tuples wait for how far they have come."""
        for home, stamp, _ in self.legs.awaited() if self.setup.ask else ():
            if self.links.asked(home, stamp):
                self._outgoing.to(home).asking = True

    def _tell(self, beat: bool) -> None:
        """Tell other sites how far the heads have come that go to their legs."""
        legs, outgoing = self.legs, self._outgoing
        for number, part in legs.parts.items():
            for stream, targets in part.ships.items():
                for target in targets:
                    outgoing.to(target).wanted |= beat
                key, first = LegKey(number, stream, 0), part.first_legs[stream]
                told = legs.frontiers if first == self.name else outgoing.to(first).frontiers
                watermark = self.streams.watermark(stream)
                told[key] = self.migration.heads_to_come(key, watermark, self.clock)
        for run in legs.runs.values():
            if not run.leg.last:
                outgoing.to(run.leg.target).frontiers[run.following] = legs.passed(run)

    def _complete_report(self, outcome: SiteOutcome, before: WorkCounts) -> None:
        """Report what the step has done, and how the site stands after it."""
        report, legs, streams = outcome.report, self.legs, self.streams
        done = [now - then for now, then in zip(legs.work(), before, strict=True)]
        report.probes, report.matches, report.compared = done
        report.clock = self.clock
        report.results = sum(rows.num_rows for rows in outcome.results)
        for packet in outcome.packets:
            add(report.sent_bytes, packet.target, len(packet.body))
        names = self.query.names
        report.windows = {names[stream]: len(rows) for stream, rows in legs.windows.kept.items()}
        waiting = [item for run in legs.runs.values() for item in run.waiting]
        report.waiting = sum(item.rows.num_rows for item in waiting)
        report.unanswered = self.links.unanswered()
        for home, stamp, tuples in legs.awaited():
            if self.links.clock(home) < stamp:
                add(report.awaited, home, tuples)
        marks = {stream: streams.watermark(stream) for stream in streams.newest}
        report.watermarks = {s: mark for s, mark in marks.items() if mark > BEFORE_ALL_TIMES}
