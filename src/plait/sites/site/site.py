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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from plait.engine.intake.admission import Admission
from plait.engine.intake.times import AFTER_ALL_TIMES, BEFORE_ALL_TIMES
from plait.engine.intake.watermarks import own_watermark
from plait.engine.windows import Windows
from plait.errors import CheckpointMismatch, MigrationError, UnknownSite, did_you_mean
from plait.groups.moves.lanes import kind_of, lane_of, stream_of
from plait.groups.routing.packets import lean
from plait.groups.routing.rows import decode_rows, encode_rows, gathered
from plait.node.batch import Rows
from plait.node.durable.store import Store
from plait.query.names import quoted
from plait.sites.plans.legs import SitePart, site_part
from plait.sites.plans.plan import Jep
from plait.sites.protocol.messages import Wish
from plait.sites.protocol.turns import InTurn, Turns
from plait.sites.site.admission import SiteRows, admit, complete, counted
from plait.sites.site.header import SiteHeader
from plait.sites.site.links import SiteLinks
from plait.sites.site.migration import holders
from plait.sites.site.one_way import OneWayJoins, composite, keeping_all
from plait.sites.site.packets import (
    LegKey,
    PacketDraft,
    Shipment,
    ShipmentKind,
    SiteChannel,
    SiteNews,
    SitePacket,
    WindowRequest,
)
from plait.sites.site.planning import SitePlanning
from plait.sites.site.rows import ShippedRows
from plait.sites.site.runs import LegRun, decode_item, encode_item, item_of
from plait.sites.site.setup import SiteOutcome, SiteReport, SiteSetup
from plait.sites.site.store import HELD, WAITING, WINDOW, SegmentChanges
from plait.sites.site.windows import SiteWindows

NO_PLAN = -1
"""In place of a plan: these rows are kept, but they are no heads yet."""


class Site:
    """One site at work. Make or reload it with `Site.load`.

    >>> from plait.testing.examples import clique
    >>> from plait.sites.plans.plan import Sep, fully_connected
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
        self.setup = setup
        self.name = name
        self.query = setup.query
        self.step_number, self.token, self.clock = header.step, header.token, header.clock
        self.ended = header.ended
        self.newest = {s: header.newest.get(s, BEFORE_ALL_TIMES) for s in self._arriving}
        self.plans = dict(header.plans)
        self._items = header.items
        self._told = dict(header.told)
        self._changes = SegmentChanges()
        others = [other for other in everyone if other != name]
        self.lean = lean(setup.query)
        self.shipped = ShippedRows(self.lean)
        self.links = SiteLinks(
            name, others, self._changes, header.links, self.shipped, setup.tuning
        )
        windows = Windows(
            keeping_all(self.lean),
            {},
            hash_bits=setup.hash_bits,
            tuning=setup.tuning,
            seed=setup.seed,
        )
        self.windows = SiteWindows(windows, self._changes)
        self.admissions = {s: Admission(self.query, self.query.index(s)) for s in self._arriving}
        self.frontiers = dict(header.frontiers)
        """For each leg here, also of plans to come: no head that comes later is before this."""
        self.parts: dict[int, SitePart] = {}
        self.runs: dict[LegKey, LegRun] = {}
        for number, jep in self.plans.items():
            self._install(number, jep)
        self.eras = header.eras
        self._requests: list[WindowRequest] = []
        """What is to be asked for in the next step."""
        self._held: list[tuple[int, int, pa.RecordBatch]] = []
        """(stream, stamp, rows) of heads that wait until it is known which plan they follow."""
        self._drafts: dict[str, PacketDraft] = {}
        self.done = (0, 0, 0)
        """Probes, matches and comparisons of plans that have gone."""
        self.planning: SitePlanning | None = None
        """Its part in changes of the plan, if it may change and streams arrive here."""
        if setup.policy is not None and name in sites.names:
            turns = Turns(setup.policy, setup.setting, setup.jep, setup.automatic)
            self.planning = SitePlanning(turns, name, header.planning)

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

    @property
    def header(self) -> SiteHeader:
        """What it knows, beside rows and packets."""
        return SiteHeader(
            self.name,
            self.setup.sites,
            dict(self.plans),
            self.step_number,
            self.token,
            self.clock,
            dict(self.newest),
            self.ended,
            self._items,
            dict(self.links.states),
            dict(self.frontiers),
            dict(self._told),
            self.eras,
            None if self.planning is None else self.planning.to_dict(),
        )

    @property
    def _arriving(self) -> list[str]:
        """The streams that arrive here."""
        return [stream for stream, home in self.setup.sites.homes if home == self.name]

    def watermark(self, stream: str) -> int:
        """The time below which a row of a stream that arrives here is late."""
        if self.ended:
            return AFTER_ALL_TIMES
        return own_watermark(self.query.streams[self.query.index(stream)], self.newest[stream])

    # -- one step

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
        outcome = SiteOutcome(report := SiteReport(self.name, self.links.step, time=now))
        admitted = admit(self, rows or {}, outcome)
        news = self.links.take_in(packets)
        for stream, fresh in admitted.items():
            self.newest[stream] = max(self.newest[stream], fresh.newest)
        self.step_number, self.token = self.links.step, token
        self._drafts = {}
        probed = counted(self)
        for origin, one in news:
            self._take(origin, one, outcome)
        messages = [message for _, one in news for message in one.messages]
        self._plan(admitted, messages, wishes, now, report)
        for request in self._requests:
            self._request(request)
        self._requests = []
        self.clock = max([self.clock, now, *(one.clock for _, one in news)]) + 1
        self.ended = self.ended or ended
        self._release()
        for stream, fresh in admitted.items():
            self._arrive(stream, fresh.rows)
        for run in self.runs.values():
            self._join(run, outcome)
        self._ask()
        self._tell(beat)
        self._purge()
        numbered = [*self.links.resend(again), *self._sent(outcome)]
        outcome.packets = [*numbered, *self.links.acknowledge()]
        self._retire()
        complete(self, report, probed, outcome)
        if store is None:
            self._changes.forget()
        else:
            self._changes.save(store, self.header.to_json())
        return outcome

    def _take(self, origin: str, news: SiteNews, outcome: SiteOutcome) -> None:
        """What another site has sent: tuples first, then what it says about those to come."""
        for shipment in news.shipments:
            if shipment.kind == "results":
                outcome.results.append(shipment.rows)
            elif shipment.kind == "tuples":
                self._enter(shipment.leg, shipment.rows)
            elif shipment.kind == "window":
                self._fill(origin, shipment)
            else:
                self._heads(shipment.leg.plan, shipment.leg.head, shipment.rows, news.clock)
        for leg, time in news.frontiers:
            self.frontiers[leg] = max(self.frontiers.get(leg, BEFORE_ALL_TIMES), time)
        for request in news.requests:
            self._request(request)
        if news.asking:
            self._draft(origin).wanted = True

    def _plan(
        self,
        admitted: Mapping[str, SiteRows],
        messages: Sequence[InTurn],
        wishes: Iterable[Wish],
        now: int,
        report: SiteReport,
    ) -> None:
        """Take part in changes of the plan, if it may change."""
        if self.planning is not None:
            rows = {stream: (fresh.rows, fresh.newest) for stream, fresh in admitted.items()}
            for message in self.planning.step(self, rows, messages, wishes, now, report):
                receiver = message.sent.receiver
                home = dict(self.setup.sites.homes).get(receiver, receiver)
                self._draft(home).messages.append(message)

    def _arrive(self, stream: str, rows: pa.RecordBatch) -> None:
        """New rows of a stream at its home."""
        if not rows.num_rows:
            return
        plan = self.eras.plan_at(self.clock)
        if self.eras.holds(self.clock):
            plan, index = NO_PLAN, self.query.index(stream)
            heads = composite(index, rows, self.clock)
            self._held.append((index, self.clock, heads))
            self._changes.add(self.clock, lane_of(index, HELD), 0, partial(encode_rows, heads))
        self._heads(plan, stream, rows, self.clock)
        key = LegKey(plan, stream, 0)
        targets = [t for part in self.parts.values() for t in part.ships[stream]]
        targets += sorted(t for _, s, t in self.eras.subscribers if s == stream)
        for target in dict.fromkeys(targets):
            self._ship(target, "stream", key, rows)

    def _heads(self, plan: int, stream: str, rows: pa.RecordBatch, stamp: int) -> None:
        """New rows of a stream, which may be kept here and may be heads here."""
        index = self.query.index(stream)
        self.windows.store(index, rows, stamp)
        if (key := LegKey(plan, stream, 0)) in self.runs:
            self._enter(key, composite(index, rows, stamp))

    def _enter(self, key: LegKey, rows: pa.RecordBatch, number: int | None = None) -> None:
        run = self.runs[key]
        run.waiting.append(item_of(self.lean, run.joins.head, rows, number))

    def _complete(self, stream: int) -> int:
        """The stamp up to which the window of a stream is complete here."""
        home = self.setup.sites.homes[stream][1]
        return self.clock if home == self.name else self.links.clock(home)

    def _join(self, run: LegRun, outcome: SiteOutcome) -> None:
        """Join what can be joined at a leg, ship what was found, and keep the others."""
        if not run.waiting:
            return
        stored = {item.number for item in run.waiting if item.number is not None}
        tuning, leg = self.setup.tuning, run.leg
        found = run.join(self._complete)
        for rows in gathered(found, tuning.result_rows, tuning.gathered_bytes):
            if leg.last and (leg.target == self.name or not self.setup.deliver):
                outcome.results.append(rows)
            else:
                kind: ShipmentKind = "results" if leg.last else "tuples"
                following = LegKey(run.key.plan, run.key.head, run.key.number + 1)
                self._ship(leg.target, kind, following, rows)
        for number in stored - {item.number for item in run.waiting}:
            self._changes.remove(number, lane_of(0, WAITING))
        for place, item in enumerate(run.waiting):
            if item.number is None:
                self._items += 1
                run.waiting[place] = replace(item, number=self._items)
                body = partial(encode_item, run.key, item.rows, self.shipped)
                self._changes.add(self._items, lane_of(0, WAITING), 0, body)

    # -- what other sites are told

    def _draft(self, target: str) -> PacketDraft:
        return self._drafts.setdefault(target, PacketDraft())

    def _ship(self, target: str, kind: ShipmentKind, leg: LegKey, rows: pa.RecordBatch) -> None:
        self._draft(target).shipments.append(Shipment(kind, leg, rows))

    def _ask(self) -> None:
        """Ask the homes of windows that tuples wait for how far they have come."""
        for run in self.runs.values() if self.setup.ask else ():
            for item in run.waiting:
                for stream, limit in run.limits(item):
                    home = self.setup.sites.homes[stream][1]
                    if home != self.name and self.links.asked(home, limit):
                        self._draft(home).asking = True

    def _tell(self, beat: bool) -> None:
        """Tell other sites how far the heads have come that go to their legs."""
        for number, part in self.parts.items():
            for stream, targets in part.ships.items():
                for target in targets:
                    self._draft(target).wanted |= beat
                key, first = LegKey(number, stream, 0), part.first_legs[stream]
                if first == self.name:
                    self.frontiers[key] = self._heads_to_come(key)
                else:
                    self._draft(first).frontiers[key] = self._heads_to_come(key)
        for key, run in self.runs.items():
            if not run.leg.last:
                following = LegKey(key.plan, key.head, key.number + 1)
                self._draft(run.leg.target).frontiers[following] = self._passed(run)

    def _sent(self, outcome: SiteOutcome) -> list[SitePacket]:
        """The packets of this step, with frontiers where those have moved."""
        for target, draft in self._drafts.items():
            moved = {
                leg: time
                for leg, time in draft.frontiers.items()
                if time > self._told.get(leg, BEFORE_ALL_TIMES)
            }
            if draft.said or any(self._is_far(leg, time) for leg, time in moved.items()):
                self._told |= moved
                outcome.news[SiteChannel("rows", target)] = draft.rows(
                    self.clock, tuple(moved.items())
                )
            if (urgent := draft.urgent()) is not None:
                outcome.news[SiteChannel("messages", target)] = urgent
        return [self.links.send(way, news) for way, news in outcome.news.items()]

    def _is_far(self, leg: LegKey, time: int) -> bool:
        """Whether a frontier has moved so far that it is told for its own sake."""
        step = self.query.bounds.widest // self.setup.tuning.frontiers_per_window
        return time == AFTER_ALL_TIMES or time - self._told.get(leg, BEFORE_ALL_TIMES) > step

    # -- what is kept

    def _purge(self) -> None:
        """Drop the rows that no head can meet any more."""
        cutoffs = dict.fromkeys(self.windows.kept, AFTER_ALL_TIMES)
        matrix = self.query.bounds.matrix
        for run in self.runs.values():
            passed = self._passed(run)
            for step in run.joins.steps:
                reach = passed - matrix[step.stream][run.joins.head]
                cutoffs[step.stream] = min(cutoffs[step.stream], reach)
        self.windows.purge(cutoffs)

    def _passed(self, run: LegRun) -> int:
        """No head that is joined at a leg later is before this event time."""
        to_come = self.frontiers.get(run.key, BEFORE_ALL_TIMES)
        return min([to_come, *(item.earliest for item in run.waiting)])

    def _install(self, number: int, jep: Jep) -> None:
        """Have the legs of a plan, and windows for them."""
        part = site_part(self.setup.sites, jep, self.name)
        self.parts[number] = part
        index = self.query.index
        for stream in sorted(map(index, part.windows)):
            self.windows.keep(stream)
        for leg in part.legs:
            key = LegKey(number, leg.head, leg.number)
            results = self.lean if leg.last else None
            joined, streams = [*map(index, leg.joined)], [*map(index, leg.streams)]
            joins = OneWayJoins(self.windows.windows, self.windows.kept, joined, streams, results)
            self.runs[key] = LegRun(key, leg, joins)

    def _restore(self, segment: int, lane: int, body: bytes) -> None:
        """Have a segment of the store again."""
        kind = kind_of(lane)
        if kind == WINDOW:
            self.windows.restore(stream_of(lane), segment, body)
        elif kind == WAITING:
            key, rows = decode_item(body, self.shipped)
            self._enter(key, rows, segment)
        elif kind == HELD:
            (rows,) = decode_rows(body)
            self._held.append((stream_of(lane), segment, rows))
        else:
            self.links.restore(kind, stream_of(lane), segment, body)

    # -- another plan

    def install(self, number: int, jep: Jep) -> None:
        """Have a new plan beside the one that runs, and get the windows that it needs here.

        All sites install it under the same number. From the next step on, windows are on their way;
        `is_full` says when they are here.
        """
        if number in self.plans or number in self.eras.abandoned:
            return
        if number <= max(self.plans) or len(self.plans) > 1:
            raise MigrationError(
                f"the site {quoted(self.name)} cannot install plan {number} beside "
                f"{', '.join(map(str, self.plans))}",
                remedy="install one plan at a time, under a higher number than all before",
            )
        (running,) = self.plans.values()
        needed = holders(self.setup.sites, running, jep, self.name)
        self._install(number, jep)
        self.plans[number] = jep
        for stream, there in needed.items():
            self._requests.append(WindowRequest(number, stream, self.name, there))
            missing = {(number, stream, holder) for holder in there}
            self.eras = replace(self.eras, missing=self.eras.missing | missing)

    def is_full(self, number: int) -> bool:
        """Whether everything is here that a plan needs."""
        return number in self.plans and all(plan != number for plan, _, _ in self.eras.missing)

    def follows(self, number: int) -> bool:
        """Whether heads to come follow a plan."""
        return self.eras.plan_at(AFTER_ALL_TIMES) == number

    def hold(self, stamp: int) -> None:
        """Let the heads from a stamp on wait until `switch` or `give_up` decides about them."""
        self.eras = replace(self.eras, hold=stamp)

    def switch(self, number: int, stamp: int) -> None:
        """Let the heads from a stamp on follow a plan. All sites switch at the same stamp."""
        if any(plan == number for _, plan in self.eras.begins):
            return
        if not self.is_full(number):
            raise MigrationError(
                f"plan {number} lacks windows at the site {quoted(self.name)}",
                remedy="switch when all sites are full",
            )
        self.eras = self.eras.switched(number, stamp)
        self.clock = max(self.clock, stamp - 1)

    def give_up(self, number: int) -> None:
        """Do without a plan that was to come. All sites give it up, or none does."""
        self.eras = self.eras.given_up(number, self.setup.tuning.abandoned_plans)
        self._requests = []
        if number in self.plans:
            self._drop(number)

    def _drop(self, number: int) -> None:
        """Have a plan no longer, nor what only that plan needs."""
        before = counted(self)
        del self.plans[number], self.parts[number]
        self.eras = self.eras.of(self.plans)
        for by_leg in (self.runs, self.frontiers, self._told):
            for key in [key for key in by_leg if key.plan == number]:
                del by_leg[key]
        needed = {self.query.index(s) for part in self.parts.values() for s in part.windows}
        self.windows.keep_only(needed)
        a, b, c = (then - now for then, now in zip(before, counted(self), strict=True))
        self.done = (self.done[0] + a, self.done[1] + b, self.done[2] + c)

    def _request(self, request: WindowRequest) -> None:
        """Pass a request for a window on, or fulfil it."""
        plan, stream, target, there, upto = request
        home = self.setup.sites.home(stream)
        if plan in self.eras.abandoned or plan < min(self.plans):
            return  # it is late
        if upto is not None:
            self._send_window(plan, stream, target, upto)
        elif home != self.name:
            self._draft(home).requests.append(request)
        else:
            # Every later row has a later stamp.
            if target != self.name:
                more = self.eras.subscribers | {(plan, stream, target)}
                self.eras = replace(self.eras, subscribers=more)
            for holder in there:
                if holder == self.name:
                    self._send_window(plan, stream, target, self.clock)
                else:
                    asked = WindowRequest(plan, stream, target, (), self.clock)
                    self._draft(holder).requests.append(asked)

    def _send_window(self, plan: int, stream: str, target: str, upto: int) -> None:
        rows = self.windows.packed(self.query.index(stream), upto)
        self._ship(target, "window", LegKey(plan, stream, upto), rows)

    def _fill(self, holder: str, shipment: Shipment) -> None:
        """A copy of a window has come."""
        plan, stream, _ = shipment.leg
        if (plan, stream, holder) in self.eras.missing:
            self.windows.unpack(self.query.index(stream), shipment.rows)
            left = self.eras.missing - {(plan, stream, holder)}
            self.eras = replace(self.eras, missing=left)

    def _release(self) -> None:
        """Send the heads on their way about which it was decided."""
        held, self._held = self._held, []
        for stream, stamp, rows in held:
            if self.eras.holds(stamp):
                self._held.append((stream, stamp, rows))
                continue
            self._changes.remove(stamp, lane_of(stream, HELD))
            name, plan = self.query.names[stream], self.eras.plan_at(stamp)
            key, first = LegKey(plan, name, 0), self.parts[plan].first_legs[name]
            if first == self.name:
                self._enter(key, rows)
            else:
                self._ship(first, "tuples", key, rows)

    def _heads_to_come(self, first: LegKey) -> int:
        """No head that this site sends to a first leg later is before this event time."""
        index = self.query.index(first.head)
        held = [item_of(self.lean, index, rows) for s, _, rows in self._held if s == index]
        if not held and first.plan < self.eras.plan_at(self.clock + 1):
            return AFTER_ALL_TIMES
        return min([self.watermark(first.head), *(item.earliest for item in held)])

    def _retire(self) -> None:
        """Drop the plans whose last heads have passed."""
        for number in [n for n in self.plans if n < self.eras.plan_at(self.clock + 1)]:
            mine = [run for key, run in self.runs.items() if key.plan == number]
            if all(self._passed(run) == AFTER_ALL_TIMES for run in mine) and not self._held:
                self._drop(number)
