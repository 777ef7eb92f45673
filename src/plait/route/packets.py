"""Packets: the rows of one stream for one processor, as one binary value.

Few large values are shuffled, sorted and stored instead of many small rows. Every pack task closes
with a *beat* for every processor: how far the stream has come in event time as far as this task
has seen, and what it counted. So every processor runs in every batch, and all of them see the same
progress of every stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.engine.admission import NO_TIME, NULL_KEY, Admission
from plait.engine.codes import hash_values
from plait.engine.times import BEFORE_ALL_TIMES
from plait.plan.steps import on_arrival
from plait.query.query import Query, narrowed
from plait.route.routing import Hashes, Routing
from plait.route.rows import encode_rows, gathered
from plait.tuning import USUAL, Tuning


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
    null_keys: int = 0
    filtered: int = 0
    clock: int = 0
    """When the batch was begun, in milliseconds; the same in all packets of a batch."""
    reason: str = ""
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

    def pack(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
        """The packets of one task, and its closing beats."""
        counts = Packet(0, self.stream, 0)
        admission = Admission(self.query, self.stream)
        needed = [f.name for f in lean(self.query).streams[self.stream].fields]
        for chunk in gathered(batches, self.tuning.packet_rows, self.tuning.gathered_bytes):
            rows, counts, aside = _admit(admission, chunk, counts)
            for reason, bad in aside.items() if self.aside else ():
                body = encode_rows(bad.select(needed))
                whose = self.stream % self.routing.processors
                yield Packet(whose, self.stream, bad.num_rows, reason=reason, body=body)
            if rows.num_rows:
                for processor, part, original in self._split(rows, needed):
                    body = encode_rows(part)
                    yield Packet(processor, self.stream, part.num_rows, original, body=body)
        for processor in range(self.routing.processors):
            yield counts._replace(processor=processor)

    def _split(
        self, rows: pa.RecordBatch, needed: list[str]
    ) -> Iterator[tuple[int, pa.RecordBatch, bool]]:
        """The rows for each processor, and whether they are the originals."""
        graph = self.query.graph
        hashes: dict[int, Hashes] = {}
        for k in graph.classes_of(self.stream):
            if self.routing.shares[k] > 1:
                name = graph.classes[k].columns[self.stream][0]
                type_, seed = graph.classes[k].type, self.routing.seed
                hashes[k] = hash_values(rows.column(name), type_, seed)
        sent = rows.select(needed)
        table = np.array(self.routing.table)
        cells = self.routing.cells(hashes, rows.num_rows)
        for copy, offset in enumerate(self.routing.replicas(graph.classes_of(self.stream))):
            for processor, part in _by_processor(sent, table[cells + offset]):
                yield processor, part, copy == 0


def _admit(
    admission: Admission, rows: pa.RecordBatch, counts: Packet
) -> tuple[pa.RecordBatch, Packet, dict[str, pa.RecordBatch]]:
    """The rows that may be in a result, as far as they tell by themselves; the bad ones."""
    found = admission.sort_out(rows)
    aside = {NO_TIME: found.no_time, NULL_KEY: found.no_key}
    counts = counts._replace(
        rows=counts.rows + rows.num_rows,
        newest=max(counts.newest, found.newest),
        null_times=counts.null_times + _length(found.no_time),
        filtered=counts.filtered + found.filtered,
        null_keys=counts.null_keys + _length(found.no_key),
    )
    return found.rows, counts, {reason: bad for reason, bad in aside.items() if _length(bad)}


def _length(rows: pa.RecordBatch | None) -> int:
    return 0 if rows is None else rows.num_rows


def _by_processor(
    rows: pa.RecordBatch, processors: npt.NDArray[np.int64]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    if (processors == processors[0]).all():
        yield int(processors[0]), rows
        return
    order = np.argsort(processors, kind="stable")
    numbers = np.arange(int(processors.max()) + 2)
    for number, (start, stop) in enumerate(pairwise(np.searchsorted(processors[order], numbers))):
        if stop > start:
            yield number, rows.take(pa.array(order[start:stop]))
