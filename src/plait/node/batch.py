"""What a node is given in one step: rows by stream, and what is already known about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from plait.engine.times import BEFORE_ALL_TIMES
from plait.errors import SourceError
from plait.query.query import Query
from plait.route.packets import Packet
from plait.route.rows import decode_rows

Rows: TypeAlias = pa.Table | pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Aside:
    """Rows of a stream that were not joined, and why."""

    stream: int
    reason: str
    rows: pa.RecordBatch


@dataclass(slots=True)
class Counts:
    """Rows by stream: how many came, and how many were set aside for each reason but lateness."""

    rows: dict[str, int] = field(default_factory=dict)
    null_times: dict[str, int] = field(default_factory=dict)
    null_keys: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Batch:
    """The rows of one step.

    If `counts` is given, the rows were sorted out before they came: each can be in a result as far
    as it tells by itself, and only the node's watermark can still make it late.
    """

    rows: dict[int, pa.RecordBatch] = field(default_factory=dict)
    newest: dict[int, int] = field(default_factory=dict)
    """The newest event time of each stream, for rows that were sorted out before."""
    counts: Counts | None = None
    originals: dict[int, int] = field(default_factory=dict)
    """How many rows of a stream are no copies of rows that went to another node, too.

    They come first. A stream that is not listed has no copies.
    """
    bodies: dict[int, list[bytes]] = field(default_factory=dict)
    """The rows of a stream as they came, encoded, if they did."""
    routed: dict[str, int] = field(default_factory=dict)
    """Rows that were sent to this node, copies included."""
    aside: list[Aside] = field(default_factory=list)
    """Rows that were set aside before, if somebody wants to see them."""
    clock: int | None = None
    """When the batch began, in milliseconds; the same for all nodes and in a replay.

    Without a clock no stream is ever idle.
    """


def batch_of_rows(query: Query, given: Mapping[str, Rows]) -> Batch:
    """A batch of plain rows, which the node sorts out itself."""
    return Batch({query.index(name): _one_batch(rows) for name, rows in given.items()})


def batch_of_packets(packets: Iterable[Packet], query: Query) -> Batch:
    """A batch that pack tasks have sorted out and counted."""
    counts = Counts()
    batch = Batch(counts=counts)
    clock = 0
    originals: dict[int, list[pa.RecordBatch]] = {}
    copies: dict[int, list[pa.RecordBatch]] = {}
    for packet in packets:
        stream, name = packet.stream, query.names[packet.stream]
        clock = max(clock, packet.clock)
        if packet.body is None:
            if packet.newest > BEFORE_ALL_TIMES:
                batch.newest[stream] = max(batch.newest.get(stream, packet.newest), packet.newest)
            add(counts.rows, name, packet.rows)
            add(counts.null_times, name, packet.null_times)
            add(counts.null_keys, name, packet.null_keys)
            add(counts.filtered, name, packet.filtered)
            continue
        (rows,) = decode_rows(packet.body)
        if packet.reason:
            batch.aside.append(Aside(stream, packet.reason, rows))
            continue
        (originals if packet.original else copies).setdefault(stream, []).append(rows)
        batch.bodies.setdefault(stream, []).append(packet.body)
        add(batch.routed, name, packet.rows)
    for stream in sorted(originals.keys() | copies.keys()):
        mine = originals.get(stream, [])
        batch.originals[stream] = sum(rows.num_rows for rows in mine)
        batch.rows[stream] = pa.concat_batches([*mine, *copies.get(stream, [])])
    batch.clock = clock
    return batch


def add(counts: dict[str, int], name: str, n: int) -> None:
    """Count `n` more; what never happened is not listed."""
    if n:
        counts[name] = counts.get(name, 0) + n


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
