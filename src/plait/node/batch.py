"""What a node is given in one step: rows by stream, and what is already known about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.errors import SourceError, TableChanged
from plait.groups.routing.packets import Packet, rows_by_group
from plait.groups.routing.rows import decode_rows
from plait.groups.routing.table import Table
from plait.kernels.jit import Ints
from plait.node.reports.report import add
from plait.query.query import Query

Rows: TypeAlias = pa.Table | pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Aside:
    """Rows of a stream that were not joined, and why."""

    stream: int
    reason: str
    rows: pa.RecordBatch


@dataclass(slots=True)
class PackedCounts:
    """Rows by stream: how many came, and how many were set aside for each reason but lateness."""

    rows: dict[str, int] = field(default_factory=dict)
    null_times: dict[str, int] = field(default_factory=dict)
    ahead: dict[str, int] = field(default_factory=dict)
    null_keys: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    malformed: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Batch:
    """The rows of one step.

    If `counts` is given, the rows were sorted out before they came: each can be in a result as far
    as it tells by itself, and only the node's watermark can still make it late.
    """

    rows: dict[int, pa.RecordBatch] = field(default_factory=dict)
    newest: dict[int, int] = field(default_factory=dict)
    """The newest event time of each stream, for rows that were sorted out before."""
    counts: PackedCounts | None = None
    originals: dict[int, int] = field(default_factory=dict)
    """How many rows of a stream are no copies of rows that went to another node, too.

    They come first. A stream that is not listed has no copies.
    """
    bodies: dict[int, dict[int, list[bytes]]] = field(default_factory=dict)
    """The rows of a stream as they came, encoded, by their flag, if they did."""
    flags: dict[int, Ints] = field(default_factory=dict)
    """For each row of a stream the move by which it is flagged, 0 for none; see `engine.flags`.

    A stream that is not listed has no flagged rows.
    """
    table: int | None = None
    """The number of the routing table by which the rows came here; None if they were not routed."""
    groups: dict[str, dict[int, int]] = field(default_factory=dict)
    """How many rows of each group came, by stream."""
    routed: dict[str, int] = field(default_factory=dict)
    """Rows that were sent to this node, copies included."""
    aside: list[Aside] = field(default_factory=list)
    """Rows that were set aside before, if somebody wants to see them."""
    clock: int | None = None
    """When the batch began, in milliseconds; the same for all nodes and in a replay.

    Without a clock no stream is ever idle.
    """
    present: int | None = None
    """The time of the clock in microseconds, for rows that nobody has sorted out before.

    Without it no row is ahead of the clock.
    """


def batch_of_rows(query: Query, given: Mapping[str, Rows], present: int | None = None) -> Batch:
    """A batch of plain rows, which the node sorts out itself."""
    rows = {query.index(name): _one_batch(some) for name, some in given.items()}
    return Batch(rows, present=present)


def batch_of_packets(packets: Iterable[Packet], query: Query) -> Batch:
    """A batch that pack tasks have sorted out and counted."""
    counts = PackedCounts()
    batch = Batch(counts=counts)
    clock = 0
    originals: dict[int, list[tuple[int, pa.RecordBatch]]] = {}
    copies: dict[int, list[tuple[int, pa.RecordBatch]]] = {}
    tables = set()
    for packet in packets:
        stream, name = packet.stream, query.names[packet.stream]
        clock = max(clock, packet.clock)
        tables.add(packet.table)
        if packet.body is None:
            if packet.newest > BEFORE_ALL_TIMES:
                batch.newest[stream] = max(batch.newest.get(stream, packet.newest), packet.newest)
            add(counts.rows, name, packet.rows)
            add(counts.null_times, name, packet.null_times)
            add(counts.ahead, name, packet.ahead)
            add(counts.null_keys, name, packet.null_keys)
            add(counts.filtered, name, packet.filtered)
            add(counts.malformed, name, packet.malformed)
            for group, rows_there in rows_by_group(packet.groups or b"").items():
                here = batch.groups.setdefault(name, {})
                here[group] = here.get(group, 0) + rows_there
            continue
        (rows,) = decode_rows(packet.body)
        if packet.reason:
            batch.aside.append(Aside(stream, packet.reason, rows))
            continue
        (originals if packet.original else copies).setdefault(stream, []).append(
            (packet.flag, rows)
        )
        batch.bodies.setdefault(stream, {}).setdefault(packet.flag, []).append(packet.body)
        add(batch.routed, name, packet.rows)
    for stream in sorted(originals.keys() | copies.keys()):
        mine = originals.get(stream, [])
        parts = [*mine, *copies.get(stream, [])]
        batch.originals[stream] = sum(rows.num_rows for _, rows in mine)
        batch.rows[stream] = pa.concat_batches([rows for _, rows in parts])
        if any(flag for flag, _ in parts):
            flags, lengths = zip(*((flag, rows.num_rows) for flag, rows in parts), strict=True)
            batch.flags[stream] = np.repeat(np.array(flags, np.int64), lengths)
    batch.clock = clock
    batch.table = _the_one(tables)
    return batch


def check_table(batch: Batch, table: Table) -> None:
    """Refuse a batch that came here by another table than the one that holds for it."""
    if batch.table is not None:
        _the_one({batch.table, table.number})


def _the_one(tables: set[int]) -> int | None:
    """The table by which all packets of a batch were routed."""
    if len(tables) > 1:
        listed = ", ".join(map(str, sorted(tables)))
        raise TableChanged(
            f"the rows of one batch were routed by tables {listed}: a table became visible while "
            "tasks of the batch in which it begins were running",
            remedy="start the query again from its checkpoint: the batch is repeated by one table",
        )
    return next(iter(tables), None)


def _one_batch(rows: Rows) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch):
        return rows
    if not isinstance(rows, pa.Table):
        raise SourceError(
            f"a batch is given as a {type(rows).__name__}", remedy="give a pyarrow Table"
        )
    combined = rows.combine_chunks().to_batches()
    if len(combined) == 1:
        return combined[0]
    if not combined:
        return pa.RecordBatch.from_pylist([], rows.schema)
    return pa.concat_batches(combined)
