"""Packets: the rows of one stream for one processor, as one binary value.

Few large values are shuffled, sorted and stored instead of many small rows. Every pack task closes
with a *beat* for every processor: how far the stream has come in event time as far as this task
has seen, and what it counted. So in a batch all processors run and see the same progress of every
stream, or none runs, if no input has a partition and there is no pack task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from plait.engine.intake.admission import AHEAD, NO_TIME, NULL_KEY, Admission
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.groups.routing.malformed import MALFORMED, apart
from plait.groups.routing.routing import Numbers, Routing
from plait.groups.routing.rows import encode_rows, gathered
from plait.groups.routing.split import cells_of, shares_of
from plait.plan.steps import on_arrival
from plait.query.query import Query, narrowed
from plait.tuning import USUAL, Tuning

CLOCK = "__plait_clock"
"""The column by which pack tasks learn the time of their batch, where a stream asks for it."""


class Packet(NamedTuple):
    """Rows for a processor (`body`), or, without a body, the closing beat of a pack task.

    Of the copies of a row that go to several processors, one is the original. Rows with a
    `reason` are not joined: they were set aside, and someone wants to see them.
    """

    processor: int
    stream: int
    rows: int
    original: bool = True
    newest: int = BEFORE_ALL_TIMES
    null_times: int = 0
    ahead: int = 0
    null_keys: int = 0
    filtered: int = 0
    malformed: int = 0
    clock: int = 0
    """When the batch was begun, in milliseconds; the same in all packets of a batch."""
    reason: str = ""
    flag: int = 0
    """The number of the PTLB move by which the rows also go to another processor, or 0."""
    table: int = 0
    """The number of the routing table; the same in all packets of a batch."""
    groups: bytes | None = None
    """In a beat: how many rows of each group the processor got, in pairs of numbers."""
    body: bytes | None = None


def lean(query: Query) -> Query:
    """The query that a processor runs: conditions on one stream are done, other columns gone."""
    done = {r for s in range(len(query.streams)) for r in on_arrival(query, s)}
    residuals = tuple(e for r, e in enumerate(query.residuals) if r not in done)
    return narrowed(replace(query, residuals=residuals))


@dataclass(frozen=True, slots=True)
class Packer:
    """Turns the rows of one stream into packets; a value that travels to where the tasks are."""

    query: Query
    stream: int
    routing: Routing
    aside: bool = False
    """Whether rows that are set aside are sent too."""
    tuning: Tuning = USUAL
    marked: bool = False
    """Whether the last column of the rows is the mark of malformed ones; see `malformed`."""
    clocked: bool = False
    """Whether a further column, `CLOCK`, has the time of the batch in microseconds."""

    def pack(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
        """The packets of one task, and its closing beats."""
        counts = Packet(0, self.stream, 0, table=self.routing.table.number)
        grouped: dict[int, Numbers] = {}
        admission = Admission(self.query, self.stream)
        needed = [f.name for f in lean(self.query).streams[self.stream].fields]
        for whole in gathered(batches, self.tuning.packet_rows, self.tuning.gathered_bytes):
            chunk, clock = _clock_apart(whole) if self.clocked else (whole, None)
            proper, malformed = apart(chunk) if self.marked else (chunk, None)
            rows, counts, aside = _admit(admission, proper, counts, clock)
            aside = {reason: bad.select(needed) for reason, bad in aside.items()}
            if malformed is not None:
                aside[MALFORMED], more = malformed, malformed.num_rows
                counts = counts._replace(rows=counts.rows + more, malformed=counts.malformed + more)
            for reason, bad in aside.items() if self.aside else ():
                body = encode_rows(bad)
                whose = self.stream % self.routing.processors
                number = self.routing.table.number
                yield Packet(
                    whose, self.stream, bad.num_rows, reason=reason, table=number, body=body
                )
            if rows.num_rows:
                yield from self._rows(rows, needed, grouped)
        for processor in range(self.routing.processors):
            yield counts._replace(processor=processor, groups=_pairs(grouped.get(processor)))

    def _rows(
        self, rows: pa.RecordBatch, needed: list[str], grouped: dict[int, Numbers]
    ) -> Iterator[Packet]:
        """The packets of some rows; `grouped` counts them by processor and group."""
        cells = cells_of(self.routing, self.query, self.stream, rows)
        sent, number = rows.select(needed), self.routing.table.number
        for share in shares_of(self.routing, self.query, self.stream, rows, cells):
            part = sent if share.rows is None else sent.take(pa.array(share.rows))
            if self.routing.by is not None:
                here = cells if share.rows is None else cells[share.rows]
                more = np.bincount(here, minlength=len(self.routing.homes))
                grouped[share.processor] = grouped.get(share.processor, 0) + more
            yield Packet(
                share.processor,
                self.stream,
                part.num_rows,
                share.original,
                flag=share.flag,
                table=number,
                body=encode_rows(part),
            )


def _clock_apart(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, int | None]:
    """The rows without the time of the batch, and that time."""
    clocks = rows.column(CLOCK)
    return rows.drop_columns([CLOCK]), clocks[0].as_py() if len(clocks) else None


def _admit(
    admission: Admission, rows: pa.RecordBatch, counts: Packet, clock: int | None
) -> tuple[pa.RecordBatch, Packet, dict[str, pa.RecordBatch]]:
    """The rows that may be in a result, as far as they tell by themselves; the bad ones."""
    found = admission.sort_out(rows, clock)
    aside = {NO_TIME: found.no_time, AHEAD: found.ahead, NULL_KEY: found.no_key}
    counts = counts._replace(
        rows=counts.rows + rows.num_rows,
        newest=max(counts.newest, found.newest),
        null_times=counts.null_times + _length(found.no_time),
        ahead=counts.ahead + _length(found.ahead),
        filtered=counts.filtered + found.filtered,
        null_keys=counts.null_keys + _length(found.no_key),
    )
    return found.rows, counts, {reason: bad for reason, bad in aside.items() if _length(bad)}


def _pairs(counts: Numbers | None) -> bytes | None:
    """The groups that have rows, and how many."""
    if counts is None:
        return None
    groups = np.flatnonzero(counts)
    return np.stack([groups, counts[groups]], axis=1).astype("<i8").tobytes()


def rows_by_group(pairs: bytes) -> dict[int, int]:
    """The inverse: the rows of each group.

    >>> rows_by_group(np.array([[3, 10], [5, 1]], "<i8").tobytes())
    {3: 10, 5: 1}
    """
    found = np.frombuffer(pairs, "<i8").reshape(-1, 2)
    return {int(group): int(rows) for group, rows in found}


def _length(rows: pa.RecordBatch | None) -> int:
    return 0 if rows is None else rows.num_rows
