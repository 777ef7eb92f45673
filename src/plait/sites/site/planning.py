"""A site that changes its plan: measure streams, take part in turns, install, switch or give up.

This is the site's side of `plait.sites.protocol.turns`. In each step, before rows are stamped:

1. the rows that have come are counted (`plait.sites.planner.meter`), and a stream that has changed
   more than the policy's threshold asks for a turn, if sites may change the plan by themselves;
2. wishes from outside are heard (`Wish`), by the keeper of turns or, if they are withdrawn, by all;
   messages of turns are handled; what a site says to itself is handled in the same step;
3. what has been decided is done: install the plan, hold heads once all windows are here, switch or
   give up, and tell the keeper when one plan is left.

*Invariants.* Messages travel in the packets of the site, so they come once each and in order.
Planner and meters are in the header, so they are saved in the same step as what follows from them:
a crash at any point repeats the step.

*A site that never answers.* The others lose patience by the host's clock, `now`; a host that gives
none waits for ever. A clock that is set forward makes them give up early, one that is set back does
not make them wait longer. They give up where that is possible, and their notes name who did not
answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plait.codec import from_plain, to_plain
from plait.engine.intake.codes import hash_values
from plait.errors import CheckpointDamaged, SourceError
from plait.sites.planner.meter import StreamMeter, counted, measured
from plait.sites.protocol.messages import Sent, Wish, Withdraw
from plait.sites.protocol.switch_over import unanswered
from plait.sites.protocol.turns import InTurn, SitePlanner, Turned, Turns
from plait.sites.protocol.wire import planner_from_plain, planner_to_plain
from plait.sites.site.rows import value_bytes

if TYPE_CHECKING:
    from plait.sites.site.setup import SiteReport
    from plait.sites.site.site import Site


class SitePlanning:
    """The planner of a site, its meters, and the host's clock as far as it was told."""

    def __init__(self, turns: Turns, site: str, saved: Mapping[str, Any] | None) -> None:
        self._turns = turns
        self.time = 0
        """The time that has passed, however often the host's clock was set back."""
        self.clock = 0
        """The host's clock in the last step."""
        self.meters: dict[str, StreamMeter] = {}
        self.planner = turns.start(site)
        if saved is not None:
            self._restore(saved)
        self._plain: tuple[SitePlanner, Any] = (self.planner, planner_to_plain(self.planner))

    def _restore(self, saved: Mapping[str, Any]) -> None:
        try:
            self.time = int(saved["time"])
            self.clock = int(saved.get("clock", self.time))
            self.meters = {
                str(stream): from_plain(StreamMeter, meter)
                for stream, meter in saved["meters"].items()
            }
            self.planner = planner_from_plain(saved["planner"])
        except (SourceError, KeyError, TypeError, ValueError) as error:
            raise CheckpointDamaged(
                f"what a site had saved of changes of its plan cannot be read: {error}",
                remedy="put the files of the state back from a copy of the checkpoint",
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """For the header; the planner changes rarely, so its form is kept."""
        if self._plain[0] is not self.planner:
            self._plain = (self.planner, planner_to_plain(self.planner))
        meters = {stream: to_plain(meter) for stream, meter in self.meters.items()}
        clocks = {"time": self.time, "clock": self.clock}
        return {**clocks, "meters": meters, "planner": self._plain[1]}

    def step(
        self,
        site: Site,
        rows: Mapping[str, tuple[pa.RecordBatch, int]],
        messages: Iterable[InTurn],
        wishes: Iterable[Wish],
        now: int,
        report: SiteReport,
    ) -> list[InTurn]:
        """One step of a site: what it has to say to others. Rows come with their newest time."""
        self.time += max(0, now - self.clock)
        self.clock = now
        work = _Work(self._turns, self.planner, site, self.time, report)
        for stream, (batch, newest) in rows.items():
            work.saw(self, stream, batch, newest)
        work.handle(messages)
        work.hear(wishes)
        work.act()
        self.planner = work.planner
        report.time, report.turn, report.phase = now, self.planner.turn, self.planner.phase
        report.wish = 0 if self.planner.wish is None else self.planner.wish.request
        report.links = [(x.origin, x.target, x.latency, x.rate) for x in self.planner.links]
        return work.told


class _Work:
    """A planner in one step of its site."""

    def __init__(
        self, turns: Turns, planner: SitePlanner, site: Site, time: int, report: SiteReport
    ) -> None:
        self.turns, self.planner, self.site, self.time = turns, planner, site, time
        self.report = report
        self.told: list[InTurn] = []
        self._homes = dict(turns.setting.sites.homes)

    def saw(self, planning: SitePlanning, stream: str, rows: pa.RecordBatch, newest: int) -> None:
        """Count rows; if an interval is over, see whether the stream has changed."""
        if not rows.num_rows or self.site.ended:
            return
        query, policy = self.site.query, self.turns.policy
        index = query.index(stream)
        keys = []
        for number in query.graph.classes_of(index):
            key = query.graph.classes[number]
            keys.append(hash_values(rows.column(key.columns[index][0]), key.type, 0))
        meter = planning.meters.get(stream, StreamMeter())
        size = sum(map(value_bytes, rows.columns))
        meter = counted(meter, policy, newest, rows.num_rows, size, keys)
        adopted = self.planner.members[stream].me.statistics
        planning.meters[stream], found = measured(meter, policy, adopted)
        if found is not None:
            turned, seen = self.turns.measured(self.planner, stream, found)
            self.report.measured[stream] = {**asdict(found), "notice": str(seen)}
            if turned[1]:
                self.report.notes.append(f"{stream}: {seen}")
            self._take(turned)

    def hear(self, wishes: Iterable[Wish]) -> None:
        """What is wanted from outside."""
        me = self.planner.me
        for wish in wishes:
            if isinstance(wish, Withdraw):
                self._take(self.turns.withdraw(self.planner, wish.request))
            else:
                self.handle([InTurn(0, Sent(me, me, wish))])

    def handle(self, messages: Iterable[InTurn]) -> None:
        """Messages from elsewhere, and what the site says to itself because of them."""
        for message in messages:
            self._take(self.turns.receive(self.planner, message, self.time))

    def _take(self, turned: Turned) -> None:
        """Go on with a planner; what it sends to this very site is handled at once."""
        before = self.planner.reason
        self.planner, sent = turned
        if self.planner.reason != before:
            self.report.notes.append(self.planner.reason)
        own: deque[InTurn] = deque()
        for one in sent:
            (own if self.target(one) == self.site.name else self.told).append(one)
        self.handle(own)

    def target(self, message: InTurn) -> str:
        """The site that a message goes to; in the distributed update streams are addressed."""
        receiver = message.sent.receiver
        return self._homes.get(receiver, receiver)

    def act(self) -> None:
        """Do what was decided."""
        site, notes = self.site, self.report.notes
        switch = self.planner.switch
        if switch is not None and not switch.over:
            waiting = unanswered(switch) if switch.missing else None
            self._take(self.turns.time_out(self.planner, self.time))
            after = self.planner.switch
            if after is not None and after.phase == "given-up":
                notes.append(f"turn {after.migration} is given up: {waiting}")
        planner = self.planner
        if planner.switch is None or planner.done:
            return
        number, phase = planner.turn, planner.switch.phase
        if phase == "copying" and planner.plan is not None:
            site.install(number, planner.plan)
            if site.is_full(number):
                stamp = site.clock + 1
                site.hold(stamp)
                self._take(self.turns.full(planner, stamp))
        planner = self.planner
        assert planner.switch is not None
        if planner.switch.phase == "migrated":
            assert planner.switch.instant is not None
            if number in site.plans and len(site.plans) > 1 and not site.follows(number):
                notes.append(f"turn {number}: {planner.plan} from stamp {planner.switch.instant}")
            site.switch(number, planner.switch.instant)
        elif planner.switch.phase == "given-up":
            site.give_up(number)
        if planner.switch.over and len(site.plans) == 1:
            self._take(self.turns.over(planner))
