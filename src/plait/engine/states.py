"""The states of a running plan: base windows of streams and combined states of joins.

*Invariants.* The base windows are the truth: a combined state holds nothing but ids of base rows
and the times that follow from them, and can be recomputed. A row of a base window lives at least
as long as any live combination that contains it: if a combination can still meet a tuple of some
stream, so can each of its parts.

*Expiry.* A row t is dead when no tuple still to come can join it: for every stream k not in t,
`min over i in t of (ts_i + D[i][k])` is below the watermark of k. Rows are dropped from the front
of the ring. A chain of the index ends at a dropped row, so a row may be dropped only when all rows
that are earlier in the order of the chains, their latest time, are dead too: when its latest time
plus the smallest bound is below the watermarks. Base rows are dead exactly then. A combination may
be dead before; such rows go when the state is compacted, which costs its size once per half as
many insertions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from plait.engine.columns import PayloadColumn, fixed_array, payload_column
from plait.engine.intake.codes import stored_type
from plait.engine.intake.ingest import (
    Arrivals,
    derived_from_key,
    derived_from_time,
    payload_columns,
)
from plait.kernels.gather import take, widen
from plait.kernels.jit import Array, Bytes, Ints, Positions
from plait.kernels.memory import HEAP, Memory, Saved
from plait.kernels.order import time_order
from plait.kernels.ring import (
    expired_prefix,
    first_positions,
    ids_of,
    last_positions,
    positions_of,
)
from plait.kernels.window import Window
from plait.query.expr import Column
from plait.query.query import Query
from plait.tuning import USUAL, Tuning

Tuples = dict[int, Positions]
"""Combined tuples as columns: for each stream, the positions in its base window."""


class BaseWindow:
    """The live tuples of one stream."""

    def __init__(
        self,
        query: Query,
        stream: int,
        indexes: Sequence[tuple[int, ...]],
        hash_bits: int,
        memory: Memory = HEAP,
        tuning: Tuning = USUAL,
        seed: int = 0,
    ) -> None:
        self.streams = frozenset({stream})
        classes = query.graph.classes_of(stream)
        self.window = Window(
            classes, indexes, hash_bits=hash_bits, memory=memory, tuning=tuning, seed=seed
        )
        self._stream = query.streams[stream]
        self._waits = [d for k, d in enumerate(query.bounds.matrix[stream]) if k != stream]
        self._others = [k for k in range(len(query.streams)) if k != stream]
        self._payload: dict[str, PayloadColumn] = {}
        self._from_key: dict[str, int] = {}
        self._from_time: set[str] = set()
        for name in payload_columns(query, stream):
            column = Column(self._stream.name, name)
            key_class = derived_from_key(query, column)
            if derived_from_time(query, column):
                self._from_time.add(name)
            elif key_class is not None:
                self._from_key[name] = key_class
            else:
                type_ = stored_type(query.type_of(column))
                self._payload[name] = payload_column(self.window.ring, name, type_)

    def __len__(self) -> int:
        return len(self.window)

    @property
    def nbytes(self) -> int:
        """Bytes allocated for columns and indexes."""
        return self.window.nbytes + sum(c.nbytes for c in self._payload.values())

    @property
    def row_bytes(self) -> int:
        """Bytes of the columns of one tuple."""
        return self.window.row_bytes

    def append(self, arrivals: Arrivals, start: int, stop: int) -> Positions:
        """Store the tuples `start` to `stop` of a batch and return their positions."""
        rows = slice(start, stop)
        codes = {k: c[rows] for k, c in arrivals.codes.items()}
        runs = self.window.append(arrivals.times[rows], codes)
        for name, column in self._payload.items():
            column.write(arrivals.payload[name].slice(start, stop - start), runs)
        return last_positions(self.window.ring.header, stop - start)

    def cutoff(self, watermarks: Sequence[int]) -> int:
        """The time before which tuples can join nothing that is still to come."""
        waits = zip(self._others, self._waits, strict=True)
        return min(watermarks[k] - wait for k, wait in waits)

    def drop_before(self, cutoff: int) -> int:
        """Drop the oldest tuples before a time; return their number."""
        dead = self.older_than(cutoff)
        if dead:
            self.window.drop(dead)
            for column in self._payload.values():
                column.drop()
        return dead

    def older_than(self, cutoff: int) -> int:
        """Count the oldest tuples before a time."""
        return expired_prefix(self.window.ring.header, self.window.latest, cutoff)

    def live_codes(self, key_class: int) -> Ints:
        """Return the codes of all live tuples in a key class."""
        header = self.window.ring.header
        return take(self.window.codes(key_class), first_positions(header, 0, len(self)))

    def to_state(self) -> Saved:
        """Describe the tuples, between two batches."""
        payload = [column.to_state() for column in self._payload.values()]
        return {"window": self.window.to_state(), "payload": payload}

    def set_state(self, saved: Saved) -> None:
        """Take over the tuples of another window of the stream; this one is empty."""
        self.window.set_state(saved["window"])
        for column, kept in zip(self._payload.values(), saved["payload"], strict=True):
            column.set_state(kept)

    def gather(self, name: str, positions: Positions) -> pa.Array:
        """Gather the values of a column at some positions."""
        if name in self._from_time:
            return fixed_array(self._stream.type_of(name), take(self.window.latest, positions))
        if name in self._from_key:
            return fixed_array(pa.int64(), take(self.window.codes(self._from_key[name]), positions))
        return self._payload[name].gather(positions)


class CombinedState:
    """The live combinations of several streams: ids of their tuples, indexed by shared keys."""

    def __init__(
        self,
        query: Query,
        streams: frozenset[int],
        bases: Sequence[BaseWindow],
        indexes: Sequence[tuple[int, ...]],
        hash_bits: int,
    ) -> None:
        self.streams = streams
        self._order = sorted(streams)
        self._bases = bases
        self._matrix = query.bounds.matrix
        self._others = [k for k in range(len(query.streams)) if k not in streams]
        self._classes = query.graph.classes
        first = bases[0].window
        self._tuning = first.ring.tuning
        self.window = Window(
            (),
            indexes,
            spans=True,
            hash_bits=hash_bits,
            memory=first.ring.memory,
            tuning=first.ring.tuning,
            seed=first.seed,
        )
        self._owners = self._owners_of(indexes)
        for s in self._order:
            self.window.ring.add_column(f"id:{s}", np.uint32)
        self._since_compaction = 0

    def __len__(self) -> int:
        return len(self.window)

    @property
    def nbytes(self) -> int:
        """Bytes allocated for ids, times and indexes."""
        return self.window.nbytes

    @property
    def row_bytes(self) -> int:
        """Bytes of the columns of one combination."""
        return self.window.row_bytes

    def _owners_of(self, indexes: Iterable[tuple[int, ...]]) -> dict[int, int]:
        """Choose a stream of this state for each class of the indexes."""
        return {k: min(self._classes[k].streams & self.streams) for by in indexes for k in by}

    def index_by(self, indexes: Iterable[tuple[int, ...]]) -> None:
        """Add missing indexes; the codes of stored rows are those of their parts."""
        missing = [by for by in indexes if by not in self.window.indexes]
        if not missing:
            return
        ring = self.window.ring
        parts = self.parts(np.arange(ring.capacity, dtype=np.int32))
        codes = {
            k: take(self._bases[s].window.codes(k), np.maximum(parts[s], 0))
            for k, s in self._owners_of(missing).items()
        }
        for by in missing:
            self.window.add_index(by, codes)
        self._owners = self._owners_of(self.window.indexes)

    def index_only_by(self, indexes: Iterable[tuple[int, ...]]) -> None:
        """Drop the other indexes."""
        for by in set(self.window.indexes) - set(indexes):
            self.window.drop_index(by)
        self._owners = self._owners_of(self.window.indexes)

    def to_state(self) -> Saved:
        """Describe the combinations, between two batches."""
        return {"window": self.window.to_state(), "inserted": self._since_compaction}

    def set_state(self, saved: Saved) -> None:
        """Take over the combinations of another state of these streams; this one is empty."""
        self.window.set_state(saved["window"])
        self._owners = self._owners_of(self.window.indexes)
        self._since_compaction = int(saved["inserted"])

    def span(self, tuples: Tuples) -> tuple[Ints, Ints]:
        """Return the latest and the earliest time of combinations."""
        first = self._order[0]
        latest = take(self._bases[first].window.latest, tuples[first])
        earliest = latest.copy()
        for s in self._order[1:]:
            widen(latest, earliest, self._bases[s].window.latest, tuples[s])
        return latest, earliest

    def insert(self, tuples: Tuples) -> None:
        """Store combinations."""
        self._store(tuples, *self.span(tuples))

    def fill(self, tuples: Tuples, watermarks: Sequence[int]) -> int:
        """Store the live combinations in the order of time; return their number.

        The same as inserting them, but chains are built without detours, and rows leave from the
        front as if they had come one after the other.
        """
        latest, earliest = self.span(tuples)
        # The reach of a row is at least its earliest time plus the smallest bound.
        safe = self._cutoff(watermarks)
        order = time_order(latest, self._tuning.span_rows)
        if len(earliest) and earliest.min() < safe:
            suspects = np.flatnonzero(earliest < safe).astype(np.int32)
            alive = np.ones(len(latest), np.bool_)
            few = {s: take(positions, suspects) for s, positions in tuples.items()}
            alive[suspects] = self.alive(few, watermarks)
            order = order[alive[order]]
        ordered = {s: take(positions, order) for s, positions in tuples.items()}
        self._store(ordered, take(latest, order), take(earliest, order))
        return len(order)

    def _store(self, tuples: Tuples, latest: Ints, earliest: Ints) -> None:
        codes = {
            k: take(self._bases[s].window.codes(k), tuples[s]) for k, s in self._owners.items()
        }
        ids: dict[str, Array] = {
            f"id:{s}": ids_of(self._bases[s].window.ring.header, tuples[s]) for s in self._order
        }
        self.window.append(latest, codes, earliest, ids)
        self._since_compaction += len(latest)

    def parts(self, rows: Positions) -> Tuples:
        """Return the positions of the tuples that rows combine, -1 for tuples already dropped."""
        columns = self.window.ring.columns
        return {
            s: positions_of(self._bases[s].window.ring.header, take(columns[f"id:{s}"], rows))
            for s in self._order
        }

    def dead(self, rows: Positions, watermarks: Sequence[int]) -> Bytes:
        """Return one byte per row, 1 if nothing to come can join it."""
        return np.logical_not(self.alive(self.parts(rows), watermarks)).view(np.uint8)

    def alive(self, tuples: Tuples, watermarks: Sequence[int]) -> Bytes:
        """Return one byte per tuple, 1 if it may still become part of a result.

        The tuples are combinations of this state, or parts of such: of a part it says whether a
        combination here that contains it can become a result.
        """
        n = len(next(iter(tuples.values())))
        gone = np.zeros(n, np.bool_)
        reach = np.full((len(self._others), n), 2**62, np.int64)
        for s, positions in tuples.items():
            gone |= positions < 0
            times = take(self._bases[s].window.latest, np.maximum(positions, 0))
            for o, k in enumerate(self._others):
                np.minimum(reach[o], times + self._matrix[s][k], out=reach[o])
        hopeless = np.ones(n, np.bool_)
        for o, k in enumerate(self._others):
            hopeless &= reach[o] < watermarks[k]
        return np.logical_not(gone | hopeless).view(np.uint8)

    def expire(self, watermarks: Sequence[int]) -> int:
        """Drop dead rows at the front, and from time to time all dead rows."""
        dropped = self.drop_before(self._cutoff(watermarks))
        if self._since_compaction > max(self._tuning.compact_rows, len(self.window) // 2):
            dropped += self._compact(watermarks)
        return dropped

    def expired(self, watermarks: Sequence[int]) -> int:
        """Count the rows at the front that nothing to come can join."""
        cutoff = self._cutoff(watermarks)
        return expired_prefix(self.window.ring.header, self.window.latest, cutoff)

    def _cutoff(self, watermarks: Sequence[int]) -> int:
        """The latest time below which a row can join nothing that is still to come."""
        return min(
            watermarks[k] - min(self._matrix[s][k] for s in self._order) for k in self._others
        )

    def drop_before(self, cutoff: int) -> int:
        """Drop rows at the front whose latest time is before `cutoff`; return their number."""
        dropped = expired_prefix(self.window.ring.header, self.window.latest, cutoff)
        if dropped:
            self.window.drop(dropped)
        return dropped

    @property
    def earliest(self) -> int | None:
        """The earliest time of a tuple in any combination; reads all of them."""
        if not len(self.window):
            return None
        rows = first_positions(self.window.ring.header, 0, len(self.window))
        return int(take(self.window.earliest, rows).min())

    def _compact(self, watermarks: Sequence[int]) -> int:
        self._since_compaction = 0
        header = self.window.ring.header
        rows = first_positions(header, 0, len(self.window))
        kept = rows[self.dead(rows, watermarks) == 0]
        dropped = len(rows) - len(kept)
        if 4 * dropped < len(rows):
            return 0
        columns = self.window.ring.columns
        latest = take(self.window.latest, kept)
        earliest = take(columns["earliest"], kept)
        ids: dict[str, Array] = {f"id:{s}": take(columns[f"id:{s}"], kept) for s in self._order}
        parts = self.parts(kept)
        codes = {k: take(self._bases[s].window.codes(k), parts[s]) for k, s in self._owners.items()}
        self.window.drop(len(rows))
        self.window.append(latest, codes, earliest, ids)
        return dropped


State = BaseWindow | CombinedState
