"""Legs at work: tuples wait until the windows they probe are complete, then they are joined.

A set of composite tuples that has come to a leg is an *item*. It is joined as soon as the site
knows all rows of the probed windows that are before its heads; `plait.sites.site.site` says when
that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from plait.engine.intake.times import event_times
from plait.query.query import Query
from plait.sites.plans.legs import Leg
from plait.sites.site.one_way import STAMP, OneWayJoins, shipped_column
from plait.sites.site.packets import LegKey, RowWriter, Shipment, SiteNews, decode_news, encode_news


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


def encode_item(leg: LegKey, rows: pa.RecordBatch, shipped: RowWriter) -> bytes:
    """The segment of an item."""
    return encode_news(SiteNews(shipments=(Shipment("tuples", leg, rows),)), shipped)


def decode_item(body: bytes, shipped: RowWriter) -> tuple[LegKey, pa.RecordBatch]:
    """The inverse of `encode_item`."""
    (shipment,) = decode_news(body, shipped).shipments
    return shipment.leg, shipment.rows


@dataclass(slots=True)
class LegRun:
    """A leg at work."""

    key: LegKey
    leg: Leg
    joins: OneWayJoins
    waiting: list[WaitingTuples] = field(default_factory=list)

    def limits(self, item: WaitingTuples) -> Iterator[tuple[int, int]]:
        """The windows that an item probes, and the stamp up to which each must be complete."""
        for step in self.joins.steps:
            yield step.stream, item.latest - (step.stream > self.joins.head)

    def join(self, complete: Callable[[int], int]) -> Iterator[pa.RecordBatch]:
        """What the items find whose windows are complete; the others stay. Must be exhausted."""
        ready: list[WaitingTuples] = []
        waiting: list[WaitingTuples] = []
        for item in self.waiting:
            now = all(complete(stream) >= limit for stream, limit in self.limits(item))
            (ready if now else waiting).append(item)
        self.waiting = waiting
        if ready:
            yield from self.joins.joined_with(pa.concat_batches([item.rows for item in ready]))
