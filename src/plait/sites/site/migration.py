"""Changing the plan of a site: get windows, hold heads, switch or give up, drop the old plan.

*Distributed track.* A new plan is installed beside the old one at every site. Its legs are there at
once, without heads. A site whose new legs probe windows that it lacks, or keeps for other heads
only, asks the home of the stream for them. The home names the last stamp it has given out, sends
every later row to that site as well, and has each holder send what it keeps up to that stamp.
Holders are the sites at which the old plan probes the window with the same heads: they keep what
these heads need. What comes is put together by stamp (`plait.sites.site.windows`).

*Switch-over.* A head follows the plan that holds at its stamp, so each result is found under one
plan: that of its head. Sites agree on the stamp by `plait.sites.protocol.switch_over`. One that has
promised to switch from some stamp on *holds* the heads from there on until it knows the outcome:
they are stored, shipped and kept, but not joined.

*Retirement.* After the switch no more heads come to the old legs, and their frontiers say so: they
move to the end of time, from leg to leg, behind the last heads. A site drops an old plan when all
its legs there are done, and with it the windows that nobody else needs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa

from plait.engine.intake.times import AFTER_ALL_TIMES
from plait.errors import MigrationError
from plait.groups.moves.lanes import lane_of
from plait.groups.routing.rows import decode_rows, encode_rows
from plait.query.names import quoted
from plait.sites.plans.legs import legs_of
from plait.sites.plans.plan import Jep, Sites
from plait.sites.site.eras import PlanEras
from plait.sites.site.one_way import composite
from plait.sites.site.outgoing import Outgoing
from plait.sites.site.packets import LegKey, Shipment, WindowRequest
from plait.sites.site.runs import LegRuns, item_of
from plait.sites.site.store import HELD, SegmentChanges

NO_PLAN = -1
"""In place of a plan: these rows are kept, but they are no heads yet."""


class SiteMigration:
    """The plans of a site, and a change from one to the next."""

    def __init__(
        self,
        legs: LegRuns,
        outgoing: Outgoing,
        changes: SegmentChanges,
        eras: PlanEras,
    ) -> None:
        self._setup, self._site, self._query = legs.setup, legs.site, legs.query
        self._legs, self._outgoing, self._changes = legs, outgoing, changes
        self.eras = eras
        self._requests: list[WindowRequest] = []
        """What is to be asked for in this step."""
        self._held: list[tuple[int, int, pa.RecordBatch]] = []
        """(stream, stamp, rows) of heads that wait until it is known which plan they follow."""

    @property
    def plans(self) -> dict[int, Jep]:
        """The plans that are installed, by number."""
        return self._legs.plans

    # -- what is decided

    def install(self, number: int, jep: Jep) -> None:
        """Have a new plan beside the one that runs, and get the windows that it needs here.

        All sites install it under the same number. From the next step on, windows are on their way;
        `is_full` says when they are here.
        """
        plans = self._legs.plans
        if number in plans or number in self.eras.abandoned:
            return
        if number <= max(plans) or len(plans) > 1:
            raise MigrationError(
                f"the site {quoted(self._site)} cannot install plan {number} beside "
                f"{', '.join(map(str, plans))}",
                remedy="install one plan at a time, under a higher number than all before",
            )
        (running,) = plans.values()
        needed = holders(self._setup.sites, running, jep, self._site)
        self._legs.install(number, jep)
        for stream, there in needed.items():
            self._requests.append(WindowRequest(number, stream, self._site, there))
            missing = {(number, stream, holder) for holder in there}
            self.eras = replace(self.eras, missing=self.eras.missing | missing)

    def is_full(self, number: int) -> bool:
        """Whether everything is here that a plan needs."""
        missing = any(plan == number for plan, _, _ in self.eras.missing)
        return number in self._legs.plans and not missing

    def hold(self, stamp: int) -> None:
        """Let the heads from a stamp on wait until `switch` or `give_up` decides about them."""
        self.eras = replace(self.eras, hold=stamp)

    def switch(self, number: int, stamp: int) -> None:
        """Let the heads from a stamp on follow a plan. All sites switch at the same stamp."""
        if any(plan == number for _, plan in self.eras.begins):
            return
        if not self.is_full(number):
            raise MigrationError(
                f"plan {number} lacks windows at the site {quoted(self._site)}",
                remedy="switch when all sites are full",
            )
        self.eras = self.eras.switched(number, stamp)

    def give_up(self, number: int) -> None:
        """Do without a plan that was to come. All sites give it up, or none does."""
        self.eras = self.eras.given_up(number, self._setup.tuning.abandoned_plans)
        self._requests = []
        if number in self._legs.plans:
            self._drop(number)

    def retire(self, clock: int) -> None:
        """Drop the plans whose last heads have passed."""
        for number in [n for n in self._legs.plans if n < self.eras.plan_at(clock + 1)]:
            if self._legs.is_over(number) and not self._held:
                self._drop(number)

    def _drop(self, number: int) -> None:
        self._legs.drop(number)
        self.eras = self.eras.of(self._legs.plans)
        told = self._outgoing.told
        for key in [key for key in told if key.plan == number]:
            del told[key]

    # -- windows for a plan to come

    def ask_for_windows(self, clock: int) -> None:
        """Send the requests of plans that were installed in this step."""
        for request in self._requests:
            self.request(request, clock)
        self._requests = []

    def request(self, request: WindowRequest, clock: int) -> None:
        """Pass a request for a window on, or fulfil it."""
        plan, stream, target, there, upto = request
        home = self._setup.sites.home(stream)
        if plan in self.eras.abandoned or plan < min(self._legs.plans):
            return  # it is late
        if upto is not None:
            self._send_window(request, upto)
        elif home != self._site:
            self._outgoing.to(home).requests.append(request)
        else:
            # Every later row has a later stamp.
            if target != self._site:
                more = self.eras.subscribers | {(plan, stream, target)}
                self.eras = replace(self.eras, subscribers=more)
            for holder in there:
                if holder == self._site:
                    self._send_window(request, clock)
                else:
                    asked = request._replace(holders=(), upto=clock)
                    self._outgoing.to(holder).requests.append(asked)

    def _send_window(self, request: WindowRequest, upto: int) -> None:
        rows = self._legs.windows.packed(self._query.index(request.stream), upto)
        leg = LegKey(request.plan, request.stream, upto)
        self._outgoing.ship(request.target, "window", leg, rows)

    def fill(self, holder: str, shipment: Shipment) -> None:
        """Take in a copy of a window."""
        plan, stream, _ = shipment.leg
        if (plan, stream, holder) in self.eras.missing:
            self._legs.windows.unpack(self._query.index(stream), shipment.rows)
            left = self.eras.missing - {(plan, stream, holder)}
            self.eras = replace(self.eras, missing=left)

    # -- heads

    def plan_for(self, stream: str, rows: pa.RecordBatch, stamp: int) -> int:
        """The plan that new rows follow; they are held if that is not decided."""
        if not self.eras.holds(stamp):
            return self.eras.plan_at(stamp)
        index = self._query.index(stream)
        heads = composite(index, rows, stamp)
        self._held.append((index, stamp, heads))
        self._changes.add(stamp, lane_of(index, HELD), 0, partial(encode_rows, heads))
        return NO_PLAN

    def receivers(self, stream: str) -> list[str]:
        """The other sites that get the rows of a stream that arrives here."""
        targets = [t for part in self._legs.parts.values() for t in part.ships[stream]]
        targets += sorted(t for _, s, t in self.eras.subscribers if s == stream)
        return [*dict.fromkeys(targets)]

    def restore(self, stream: int, stamp: int, body: bytes) -> None:
        """Have a segment of held heads again."""
        (rows,) = decode_rows(body)
        self._held.append((stream, stamp, rows))

    def release(self) -> None:
        """Send the heads on their way about which it was decided."""
        held, self._held = self._held, []
        for stream, stamp, rows in held:
            if self.eras.holds(stamp):
                self._held.append((stream, stamp, rows))
                continue
            self._changes.remove(stamp, lane_of(stream, HELD))
            name, plan = self._query.names[stream], self.eras.plan_at(stamp)
            key, first = LegKey(plan, name, 0), self._legs.parts[plan].first_legs[name]
            if first == self._site:
                self._legs.enter(key, rows)
            else:
                self._outgoing.ship(first, "tuples", key, rows)

    def heads_to_come(self, first: LegKey, watermark: int, clock: int) -> int:
        """No head that this site sends to a first leg later is before this event time."""
        index = self._query.index(first.head)
        held = [item_of(self._query, index, rows) for s, _, rows in self._held if s == index]
        if not held and first.plan < self.eras.plan_at(clock + 1):
            return AFTER_ALL_TIMES
        return min([watermark, *(item.earliest for item in held)])


def holders(sites: Sites, old: Jep, new: Jep, site: str) -> dict[str, tuple[str, ...]]:
    """For each stream, the other sites whose windows a site needs before it can run a new plan.

    >>> from plait.sites.plans.plan import Sep, fully_connected
    >>> sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000)
    >>> old = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (1,))))
    >>> new = Jep((Sep("a", ("b",), (0,)), Sep("b", ("a",), (1,))))
    >>> holders(sites, old, new, "n1"), holders(sites, old, new, "n2")
    ({'b': ('n2',)}, {})
    """
    before, after = _probed_at(sites, old), _probed_at(sites, new)
    found: dict[str, set[str]] = {}
    for (head, stream), here in after.items():
        if here == site and before[head, stream] != site:
            found.setdefault(stream, set()).add(before[head, stream])
    return {stream: tuple(sorted(needed)) for stream, needed in sorted(found.items())}


def _probed_at(sites: Sites, jep: Jep) -> dict[tuple[str, str], str]:
    """For each head and stream, the site at which the one probes the window of the other."""
    return {
        (sep.head, stream): leg.site
        for sep in jep.seps
        for leg in legs_of(sites, sep)
        for stream in leg.streams
    }
