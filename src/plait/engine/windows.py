"""The base windows of a query, with their intake and output: all that engines share.

The base windows are the truth. An engine adds what it needs to find results (combined states, or
queues of tuples under way) and may be exchanged for another one between two batches: the windows
stay, indexes that the new engine needs are built, and everything else follows from the windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from plait.engine.counters import StateSize
from plait.engine.intake.codes import CodeBook
from plait.engine.intake.ingest import Admitted, Arrivals, Ingest
from plait.engine.intake.pending import Pending
from plait.engine.intake.slices import Slice, cut
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.output import ResultRows
from plait.engine.purging import PurgeByWatermarks
from plait.engine.states import BaseWindow, State
from plait.kernels.jit import Ints
from plait.kernels.memory import HEAP, Memory, Saved
from plait.query.query import Query
from plait.tuning import USUAL, Tuning

Indexes = Mapping[int, Iterable[tuple[int, ...]]]
"""For each stream, the tuples of key classes by which its window is looked up."""


class Windows:
    """One base window per stream, the codes of the keys, the intake and the output.

    `hash_bits` below 64 makes hashes collide on purpose; results do not change. The
    hashes depend on `seed`: without it, nobody can choose keys that collide. `memory` allocates
    the windows and the states that engines compute from them. `purge` makes the rule by which every
    tree of joins over these windows drops rows. `tuning` has the sizes that speed depends on.
    """

    def __init__(
        self,
        query: Query,
        indexes: Indexes,
        *,
        hash_bits: int = 64,
        memory: Memory = HEAP,
        purge: type[PurgeByWatermarks] = PurgeByWatermarks,
        tuning: Tuning = USUAL,
        seed: int = 0,
    ) -> None:
        self.query = query
        self.tuning = tuning
        self.purging = purge(query)
        self.hash_bits = hash_bits
        self.seed = seed
        self.memory = memory
        self._books = [
            CodeBook(c.type, hash_bits, memory, tuning, seed) for c in query.graph.classes
        ]
        self._pending = Pending()
        self._ingests = [Ingest(query, s, self._books) for s in range(len(query.streams))]
        self.bases = [
            BaseWindow(query, s, tuple(indexes.get(s, ())), hash_bits, memory, tuning, seed)
            for s in range(len(query.streams))
        ]
        self.output = ResultRows(query, self.bases)
        self.watermarks = [BEFORE_ALL_TIMES] * len(query.streams)
        """The watermarks after the last batch."""

    def index_by(self, indexes: Indexes) -> None:
        """Add missing indexes."""
        for stream, wanted in indexes.items():
            for classes in wanted:
                self.bases[stream].window.add_index(classes)

    def index_only_by(self, indexes: Indexes) -> None:
        """Drop all other indexes."""
        for stream, wanted in indexes.items():
            window = self.bases[stream].window
            for classes in set(window.indexes) - set(wanted):
                window.drop_index(classes)

    def schema(self, stream: int) -> pa.Schema:
        """The columns of the rows of a stream that `admit` sets aside."""
        return self._ingests[stream].schema

    def admit(
        self,
        stream: int,
        rows: pa.RecordBatch,
        watermark: int,
        flags: Ints | None = None,
        clock: int | None = None,
    ) -> Admitted:
        """Sort the rows of a stream into those to join and those to set aside."""
        admitted = self._ingests[stream].admit(rows, watermark, flags, clock)
        self._pending.add(admitted.arrivals)
        return admitted

    def encoded(self, stream: int, rows: pa.RecordBatch) -> Arrivals:
        """Encode rows that were admitted elsewhere, in their order.

        Their codes count as in use only once they are stored.
        """
        return self._ingests[stream].encoded(rows)

    def slices(self, arrivals: Mapping[int, Arrivals], larger: int = 1) -> list[tuple[int, Slice]]:
        """Cut a batch along event time, in slices `larger` times the usual size."""
        step = self.query.bounds.widest // self.tuning.slices_per_window
        return cut(arrivals, step, self.tuning.slice_rows * larger)

    def cutoff(self, stream: int, watermarks: Sequence[int]) -> int:
        """The time before which tuples of a stream can never join again."""
        return self.bases[stream].cutoff(watermarks)

    def close_batch(self, watermarks: Sequence[int]) -> None:
        """Note the watermarks, and forget unused keys from time to time."""
        self.watermarks = list(watermarks)
        self.forget_keys()

    def forget_keys(self) -> None:
        """Free the memory of keys that no live or pending tuple has, if there are many."""
        for k, book in enumerate(self._books):
            if book.crowded:
                owners = self.query.graph.classes[k].streams
                stored = (self.bases[s].live_codes(k) for s in owners)
                book.forget(chain(stored, self._pending.codes(k)))

    def to_state(self) -> Saved:
        """Describe all stored rows, between two batches."""
        return {
            "watermarks": list(self.watermarks),
            "books": [book.to_state() for book in self._books],
            "bases": [base.to_state() for base in self.bases],
        }

    def set_state(self, saved: Saved) -> None:
        """Take over the rows of other windows of this query; these are empty."""
        if len(saved["watermarks"]) != len(self.bases):
            raise ValueError("these windows are of another query")
        self.watermarks = [int(w) for w in saved["watermarks"]]
        for book, known in zip(self._books, saved["books"], strict=True):
            book.set_state(known)
        for base, stored in zip(self.bases, saved["bases"], strict=True):
            base.set_state(stored)

    def sizes(self, combined: Sequence[State] = ()) -> list[StateSize]:
        """Measure every base window, then the combined states."""
        names = self.query.names
        return [
            StateSize(
                tuple(names[i] for i in sorted(state.streams)),
                len(state),
                state.nbytes,
                state.row_bytes,
                len(state.window.indexes),
            )
            for state in (*self.bases, *combined)
        ]

    @property
    def nbytes(self) -> int:
        """Bytes allocated for base windows and interned keys."""
        return sum(s.nbytes for s in self.bases) + sum(b.nbytes for b in self._books)
