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

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from plait.codec import from_plain, to_plain
from plait.engine.intake.codes import hash_values
from plait.errors import CheckpointDamaged, SourceError
from plait.query.query import Query
from plait.sites.planner.meter import StreamMeter, counted, measured
from plait.sites.protocol.messages import Sent, Wish, Withdraw
from plait.sites.protocol.switch_over import unanswered
from plait.sites.protocol.turns import InTurn, PlannerTurn, SitePlanner, Turns
from plait.sites.site.admission import SiteRows
from plait.sites.site.migration import SiteMigration
from plait.sites.site.rows import value_bytes
from plait.sites.site.setup import SiteReport


class SitePlanning:
    """The planner of a site, its meters, and the host's clock as far as it was told."""

    def __init__(
        self, turns: Turns, site: str, query: Query, migration: SiteMigration, saved: Any
    ) -> None:
        self._turns, self._site, self._query, self._migration = turns, site, query, migration
        self._homes = dict(turns.setting.sites.homes)
        self.time = 0
        """The time that has passed, however often the host's clock was set back."""
        self.clock = 0
        """The host's clock in the last step."""
        self.meters: dict[str, StreamMeter] = {}
        self.planner = turns.start(site)
        if saved is not None:
            self._restore(saved)
        self._plain: tuple[SitePlanner, Any] = (self.planner, to_plain(self.planner))
        self._report = SiteReport(site)
        """That of the step that is being made."""
        self._told: list[InTurn] = []
        """What other sites are told in this step."""

    def _restore(self, saved: Any) -> None:
        try:
            self.time, self.clock = int(saved["time"]), int(saved["clock"])
            self.meters = {
                str(stream): from_plain(StreamMeter, meter)
                for stream, meter in saved["meters"].items()
            }
            self.planner = from_plain(SitePlanner, saved["planner"])
        except (SourceError, KeyError, TypeError, ValueError) as error:
            raise CheckpointDamaged(
                f"what a site had saved of changes of its plan cannot be read: {error}",
                remedy="put the files of the state back from a copy of the checkpoint",
            ) from error

    def to_plain(self) -> dict[str, Any]:
        """For the header; the planner changes rarely, so its form is kept."""
        if self._plain[0] is not self.planner:
            self._plain = (self.planner, to_plain(self.planner))
        meters = {stream: to_plain(meter) for stream, meter in self.meters.items()}
        clocks = {"time": self.time, "clock": self.clock}
        return {**clocks, "meters": meters, "planner": self._plain[1]}

    def step(
        self,
        rows: Mapping[str, SiteRows],
        messages: Iterable[InTurn],
        wishes: Iterable[Wish],
        *,
        stamp: int,
        report: SiteReport,
    ) -> list[tuple[str, InTurn]]:
        """One step of a site: the messages that it sends, each with the site that gets it.

        Rows to come have this stamp or a later one. The report has the host's clock.
        """
        now = report.time
        self.time += max(0, now - self.clock)
        self.clock = now
        self._report, self._told = report, []
        for stream, fresh in rows.items():
            if fresh.rows.num_rows:
                self._measure(stream, fresh)
        self._handle(messages)
        for wish in wishes:
            if isinstance(wish, Withdraw):
                self._take(self._turns.withdraw(self.planner, wish.request))
            else:
                self._handle([InTurn(0, Sent(self._site, self._site, wish))])
        self._act(stamp)
        report.turn, report.phase = self.planner.turn, self.planner.phase
        report.wish = 0 if self.planner.wish is None else self.planner.wish.request
        report.links = [(x.origin, x.target, x.latency, x.rate) for x in self.planner.links]
        return [(self._target(message), message) for message in self._told]

    def _measure(self, stream: str, fresh: SiteRows) -> None:
        """Count rows; if an interval is over, see whether the stream has changed."""
        graph, index = self._query.graph, self._query.index(stream)
        keys = []
        for number in graph.classes_of(index):
            key = graph.classes[number]
            keys.append(hash_values(fresh.rows.column(key.columns[index][0]), key.type, 0))
        policy, rows = self._turns.policy, fresh.rows
        meter = self.meters.get(stream, StreamMeter())
        size = sum(map(value_bytes, rows.columns))
        meter = counted(meter, policy, fresh.newest, rows.num_rows, size, keys)
        adopted = self.planner.members[stream].me.statistics
        self.meters[stream], found = measured(meter, policy, adopted)
        if found is not None:
            turned, seen = self._turns.measured(self.planner, stream, found)
            self._report.measured[stream] = {**asdict(found), "notice": str(seen)}
            if turned[1]:
                self._report.notes.append(f"{stream}: {seen}")
            self._take(turned)

    def _handle(self, messages: Iterable[InTurn]) -> None:
        """Messages from elsewhere, and what the site says to itself because of them."""
        for message in messages:
            self._take(self._turns.receive(self.planner, message, self.time))

    def _take(self, turned: PlannerTurn) -> None:
        """Go on with a planner; what it sends to this very site is handled at once."""
        before = self.planner.reason
        self.planner, sent = turned
        if self.planner.reason != before:
            self._report.notes.append(self.planner.reason)
        own = [one for one in sent if self._target(one) == self._site]
        self._told += [one for one in sent if self._target(one) != self._site]
        self._handle(own)

    def _target(self, message: InTurn) -> str:
        """The site that a message goes to; in the distributed update streams are addressed."""
        receiver = message.sent.receiver
        return self._homes.get(receiver, receiver)

    def _act(self, stamp: int) -> None:
        """Do what was decided."""
        self._time_out()
        planner, migration = self.planner, self._migration
        if planner.switch is None or planner.done:
            return
        number = planner.turn
        if planner.switch.phase == "copying" and planner.plan is not None:
            migration.install(number, planner.plan)
            if migration.is_full(number):
                migration.hold(stamp)
                self._take(self._turns.full(planner, stamp))
        planner = self.planner
        assert planner.switch is not None
        if planner.switch.phase == "migrated":
            assert planner.switch.instant is not None
            if number in migration.plans and migration.eras.newest != number:
                note = f"turn {number}: {planner.plan} from stamp {planner.switch.instant}"
                self._report.notes.append(note)
            migration.switch(number, planner.switch.instant)
        elif planner.switch.phase == "given-up":
            migration.give_up(number)
        if planner.switch.over and len(migration.plans) == 1:
            self._take(self._turns.over(planner))

    def _time_out(self) -> None:
        switch = self.planner.switch
        if switch is None or switch.over:
            return
        waiting = unanswered(switch) if switch.missing else None
        self._take(self._turns.time_out(self.planner, self.time))
        after = self.planner.switch
        if after is not None and after.phase == "given-up":
            self._report.notes.append(f"turn {after.migration} is given up: {waiting}")
