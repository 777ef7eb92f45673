"""Legs at work: tuples wait until the windows they probe are complete, then they are joined.

A set of composite tuples that has come to a leg is an *item*. It is joined as soon as the site
knows all rows of the probed windows that are before its heads; `plait.sites.site.site` says when
that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from plait.engine.intake.times import AFTER_ALL_TIMES, BEFORE_ALL_TIMES, event_times
from plait.engine.windows import Windows
from plait.groups.moves.lanes import lane_of
from plait.groups.routing.rows import gathered
from plait.query.query import Query
from plait.sites.plans.legs import Leg, SitePart, site_part
from plait.sites.plans.plan import Jep
from plait.sites.site.header import SiteHeader
from plait.sites.site.one_way import STAMP, OneWayJoins, composite, keeping_all, shipped_column
from plait.sites.site.outgoing import Outgoing
from plait.sites.site.packets import (
    LegKey,
    RowWriter,
    Shipment,
    ShipmentKind,
    SiteNews,
    decode_news,
    encode_news,
)
from plait.sites.site.setup import SiteSetup
from plait.sites.site.store import WAITING, SegmentChanges
from plait.sites.site.windows import SiteWindows

WorkCounts = tuple[int, int, int]
"""Probes, matches and comparisons."""


@dataclass(frozen=True, slots=True)
class WaitingTuples:
    """Composite tuples that wait at a leg."""

    rows: pa.RecordBatch
    latest: int
    """The last stamp of their heads."""
    earliest: int
    """The earliest event time of their heads."""
    number: int | None = None
    """That of their segment, once they have one."""


def item_of(
    query: Query, head: int, rows: pa.RecordBatch, number: int | None = None
) -> WaitingTuples:
    """Composite tuples with what decides about their turn."""
    time = shipped_column(head, query.streams[head].time)
    latest = pc.max(rows.column(STAMP)).as_py()
    return WaitingTuples(rows, latest, int(event_times(rows.column(time)).min()), number)


@dataclass(slots=True)
class LegRun:
    """A leg at work."""

    key: LegKey
    leg: Leg
    joins: OneWayJoins
    waiting: list[WaitingTuples] = field(default_factory=list)

    @property
    def following(self) -> LegKey:
        """The leg that takes what this one finds."""
        return self.key._replace(number=self.key.number + 1)

    def limits(self, item: WaitingTuples) -> Iterator[tuple[int, int]]:
        """The windows that an item probes, and the stamp up to which each must be complete."""
        for step in self.joins.steps:
            yield step.stream, item.latest - (step.stream > self.joins.head)

    def take_ready(self, complete: Callable[[int], int]) -> list[WaitingTuples]:
        """Take out the items whose windows are complete; the others stay."""
        ready: list[WaitingTuples] = []
        waiting: list[WaitingTuples] = []
        for item in self.waiting:
            now = all(complete(stream) >= limit for stream, limit in self.limits(item))
            (ready if now else waiting).append(item)
        self.waiting = waiting
        return ready


class LegRuns:
    """The legs of the plans that are installed at a site, and the windows that they probe."""

    def __init__(
        self,
        setup: SiteSetup,
        header: SiteHeader,
        query: Query,
        changes: SegmentChanges,
        shipped: RowWriter,
    ) -> None:
        self.setup, self.query, self.site = setup, query, header.site
        self._changes, self._shipped = changes, shipped
        windows = Windows(
            keeping_all(query), {}, hash_bits=setup.hash_bits, tuning=setup.tuning, seed=setup.seed
        )
        self.windows = SiteWindows(windows, changes)
        self.frontiers = dict(header.frontiers)
        """For each leg here, also of plans to come: no head that comes later is before this."""
        self.items = header.items
        """Sets of tuples that have waited so far; their segments are numbered."""
        self.plans: dict[int, Jep] = {}
        self.parts: dict[int, SitePart] = {}
        self.runs: dict[LegKey, LegRun] = {}
        self._gone: WorkCounts = (0, 0, 0)
        """The work of plans that have gone."""
        for number, jep in header.plans.items():
            self.install(number, jep)

    def install(self, number: int, jep: Jep) -> None:
        """Have the legs of a plan, and windows for them."""
        self.plans[number] = jep
        self.parts[number] = part = site_part(self.setup.sites, jep, self.site)
        index = self.query.index
        for stream in sorted(map(index, part.windows)):
            self.windows.keep(stream)
        for leg in part.legs:
            key = LegKey(number, leg.head, leg.number)
            joins = OneWayJoins(
                self.windows.windows,
                self.windows.kept,
                joined=[*map(index, leg.joined)],
                streams=[*map(index, leg.streams)],
                results=self.query if leg.last else None,
            )
            self.runs[key] = LegRun(key, leg, joins)

    def drop(self, number: int) -> None:
        """Have a plan no longer, nor the windows that only that plan needs."""
        before = self.work()
        del self.plans[number], self.parts[number]
        for by_leg in (self.runs, self.frontiers):
            for key in [key for key in by_leg if key.plan == number]:
                del by_leg[key]
        needed = {self.query.index(s) for part in self.parts.values() for s in part.windows}
        self.windows.keep_only(needed)
        gone = zip(self._gone, before, self.work(), strict=True)
        a, b, c = (so_far + then - now for so_far, then, now in gone)
        self._gone = (a, b, c)

    def work(self) -> WorkCounts:
        """The work of all legs since the site was loaded."""
        steps = [step for run in self.runs.values() for step in run.joins.steps]
        probes, matches, compared = self._gone
        return (
            probes + sum(step.counters.probes for step in steps),
            matches + sum(step.counters.matches for step in steps),
            compared + sum(step.compared for step in steps),
        )

    def enter(self, key: LegKey, rows: pa.RecordBatch, number: int | None = None) -> None:
        """Composite tuples have come to a leg."""
        run = self.runs[key]
        run.waiting.append(item_of(self.query, run.joins.head, rows, number))

    def enter_heads(self, plan: int, stream: str, rows: pa.RecordBatch, stamp: int) -> None:
        """New rows of a stream have come, which may be kept here and may be heads here."""
        index = self.query.index(stream)
        self.windows.store(index, rows, stamp)
        if (key := LegKey(plan, stream, 0)) in self.runs:
            self.enter(key, composite(index, rows, stamp))

    def restore(self, number: int, body: bytes) -> None:
        """Have a segment of waiting tuples again."""
        (shipment,) = decode_news(body, self._shipped).shipments
        self.enter(shipment.leg, shipment.rows, number)

    def join(self, complete: Callable[[int], int], outgoing: Outgoing) -> list[pa.RecordBatch]:
        """Join what can be joined, ship what was found, and return the results for this site.

        `complete` says up to which stamp the window of a stream is complete here.
        """
        results: list[pa.RecordBatch] = []
        for run in self.runs.values():
            if ready := run.take_ready(complete):
                self._join(run, ready, outgoing, results)
            for place, item in enumerate(run.waiting):
                if item.number is None:
                    self._save(run, place, item)
        return results

    def _join(
        self,
        run: LegRun,
        ready: list[WaitingTuples],
        outgoing: Outgoing,
        results: list[pa.RecordBatch],
    ) -> None:
        tuning, leg = self.setup.tuning, run.leg
        kind: ShipmentKind = "results" if leg.last else "tuples"
        found = run.joins.joined_with(pa.concat_batches([item.rows for item in ready]))
        for rows in gathered(found, tuning.result_rows, tuning.gathered_bytes):
            if leg.last and (leg.target == self.site or not self.setup.deliver):
                results.append(rows)
            else:
                outgoing.ship(leg.target, kind, run.following, rows)
        for item in ready:
            if item.number is not None:
                self._changes.remove(item.number, lane_of(0, WAITING))

    def _save(self, run: LegRun, place: int, item: WaitingTuples) -> None:
        self.items += 1
        run.waiting[place] = replace(item, number=self.items)
        news = SiteNews(shipments=(Shipment("tuples", run.key, item.rows),))
        body = partial(encode_news, news, self._shipped)
        self._changes.add(self.items, lane_of(0, WAITING), 0, body)

    def awaited(self) -> Iterator[tuple[str, int, int]]:
        """(home, stamp, tuples) of items that wait for the clock of another site."""
        for run in self.runs.values():
            for item in run.waiting:
                needed: dict[str, int] = {}
                for stream, limit in run.limits(item):
                    home = self.setup.sites.homes[stream][1]
                    needed[home] = max(limit, needed.get(home, 0))
                for home, limit in needed.items():
                    if home != self.site:
                        yield home, limit, item.rows.num_rows

    def passed(self, run: LegRun) -> int:
        """No head that is joined at a leg later is before this event time."""
        to_come = self.frontiers.get(run.key, BEFORE_ALL_TIMES)
        return min([to_come, *(item.earliest for item in run.waiting)])

    def is_over(self, plan: int) -> bool:
        """Whether the last heads of a plan have passed all its legs here."""
        mine = [run for key, run in self.runs.items() if key.plan == plan]
        return all(self.passed(run) == AFTER_ALL_TIMES for run in mine)

    def purge(self) -> None:
        """Drop the rows that no head can meet any more."""
        cutoffs = dict.fromkeys(self.windows.kept, AFTER_ALL_TIMES)
        matrix = self.query.bounds.matrix
        for run in self.runs.values():
            passed = self.passed(run)
            for step in run.joins.steps:
                reach = passed - matrix[step.stream][run.joins.head]
                cutoffs[step.stream] = min(cutoffs[step.stream], reach)
        self.windows.purge(cutoffs)
