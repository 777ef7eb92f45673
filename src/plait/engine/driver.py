"""The driver: runs a query on batches of rows, with any tactic.

It owns the base windows and a *tactic* (`plait.engine.tactic`). It admits rows, cuts a batch into
slices, stores the tuples of one stream after the other and lets the tactic find what they complete,
drops what nothing to come can join, keeps to the memory limit, and turns what was found into rows.

*Correct output.* Over all batches, every combination of one tuple per stream that satisfies the
query, exactly once. The tactic finds them; the driver never changes what it finds.

*Invariants.* The base windows are the truth; all that a tactic keeps can be recomputed from them.
So a tactic may be exchanged between two batches (`plait.engine.migrate`). Combinations are dropped
before their parts. A tactic that has done its work, such as a parallel track without old tuples, is
replaced by its successor between two slices.

*Cost.* A few calls per slice beside the work of the tactic.

*Ties and time.* `watermarks` are those after the batch: no later batch brings an older tuple.
Within a batch, rows are dropped by the watermarks or the time that all later slices have reached,
whichever is earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Protocol

import pyarrow as pa

from plait.engine.counters import OperatorCounters, StateSize
from plait.engine.flags import Flags
from plait.engine.held import Held
from plait.engine.intake.ingest import Admitted, Arrivals
from plait.engine.memory_limit import check_memory
from plait.engine.probe import length
from plait.engine.purging import PurgeByWatermarks
from plait.engine.states import State, Tuples
from plait.engine.tactic import Tactic
from plait.engine.tactics.make import make_tactic
from plait.engine.tactics.operators import Operator
from plait.engine.tactics.routed import RoutedTactic
from plait.engine.windows import Windows
from plait.kernels.jit import Ints
from plait.plan.migration import Migration
from plait.plan.routed import Plan
from plait.query.query import Query
from plait.tuning import USUAL, Tuning


class Supervisor(Protocol):
    """Puts something between a driver and its tactic."""

    def __call__(self, tactic: Tactic, windows: Windows, /) -> Tactic: ...


class Engine:
    """Runs a query by a plan.

    `windows` are empty ones to fill; without them, the engine makes some with `hash_bits`, `purge`
    and `tuning`. `hash_bits` below 64 makes hashes collide on purpose; results do not change. A
    batch that makes the states larger than `memory_limit` bytes ends in MemoryExceeded.
    """

    supervise: ClassVar[Supervisor | None] = None
    """What goes between the driver and its tactic; tests assert the tactic's contract there."""

    def __init__(
        self,
        query: Query,
        plan: Plan,
        *,
        hash_bits: int = 64,
        windows: Windows | None = None,
        memory_limit: int | None = None,
        purge: type[PurgeByWatermarks] = PurgeByWatermarks,
        tuning: Tuning = USUAL,
    ) -> None:
        if windows is None:
            windows = Windows(query, {}, hash_bits=hash_bits, purge=purge, tuning=tuning)
        self.query = query
        self.windows = windows
        self.bases = windows.bases
        self.memory_limit = memory_limit
        self.flags = Flags(windows.bases)
        """Rows that another processor gets, too."""
        self._ended: list[Migration] = []
        self.last_ended: Migration | None = None
        """The last migration that ended during a batch."""
        self.adopt(make_tactic(windows, plan, memory_limit))

    def adopt(self, tactic: Tactic, held: Held | None = None) -> None:
        """Go on with another tactic on the same windows, between two batches or slices.

        With `held`, its results are held back there, to be emitted in timestamp order.
        """
        self.tactic = tactic
        self._held = held
        supervise = type(self).supervise
        self._at_work = tactic if supervise is None else supervise(tactic, self.windows)

    # -- what it runs

    @property
    def plan(self) -> Plan:
        """The plan that runs, or that a migration leads to."""
        return self.tactic.plan

    @property
    def migrating(self) -> bool:
        """Whether a migration is under way."""
        return self.tactic.migration is not None

    @property
    def migration(self) -> Migration | None:
        """The record of the migration under way, if there is one."""
        return self.tactic.migration

    def ended(self) -> list[Migration]:
        """Return the migrations that ended during batches since the last call."""
        ended, self._ended = self._ended, []
        return ended

    @property
    def router(self) -> RoutedTactic | None:
        """The router, if the plan is one; None for a tree of joins."""
        return self.tactic if isinstance(self.tactic, RoutedTactic) else None

    # -- what it holds and has counted

    @property
    def operators(self) -> Sequence[Operator]:
        """The joins of the plan, parents before children; a router has none."""
        return self.tactic.operators

    @property
    def counters(self) -> list[OperatorCounters]:
        """The counters of every join, parents before children; a router counts as one."""
        return self.tactic.counters

    def states(self) -> list[State]:
        """List the base windows, then the states of combinations."""
        return [*self.bases, *self.tactic.combined]

    def sizes(self) -> list[StateSize]:
        """Measure rows and bytes of every state, base windows first."""
        return self.windows.sizes(self.tactic.combined)

    @property
    def nbytes(self) -> int:
        """Bytes allocated for states, interned keys and results held back."""
        return self.windows.nbytes + self.tactic.nbytes + self.flags.nbytes + self._held_bytes

    @property
    def _held_bytes(self) -> int:
        return 0 if self._held is None else self._held.nbytes

    @property
    def holding_back(self) -> bool:
        """Whether results wait for their turn in timestamp order."""
        return self._held is not None

    # -- a batch

    def schema(self, stream: int) -> pa.Schema:
        """The columns of the rows of a stream that `admit` sets aside."""
        return self.windows.schema(stream)

    def admit(
        self,
        stream: int,
        rows: pa.RecordBatch,
        watermark: int,
        flags: Ints | None = None,
        clock: int | None = None,
    ) -> Admitted:
        """Sort the rows of a stream into those to join and those to set aside.

        `flags` are those of PTLB (`plait.engine.flags`), for rows that were sorted out before.
        `clock` is the time of the batch in microseconds, for rows that were not.
        """
        return self.windows.admit(stream, rows, watermark, flags, clock)

    def cutoff(self, stream: int, watermarks: Sequence[int]) -> int:
        """The time before which tuples of a stream can never join again."""
        return self.tactic.cutoffs(watermarks)[stream]

    def push(
        self, arrivals: Mapping[int, Arrivals], watermarks: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """Join one batch and yield its results; the iterator must be exhausted."""
        return self._batch(arrivals, watermarks, restoring=False)

    def restore(self, arrivals: Mapping[int, Arrivals], watermarks: Sequence[int]) -> None:
        """Fill the states with tuples whose results were found before."""
        for _ in self._batch(arrivals, watermarks, restoring=True):
            raise AssertionError("a restored tuple became a result")

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the results that still wait; the iterator must be exhausted."""
        yield from self._emit(self._at_work.finish())
        if self._held is not None:
            yield from self._held.finish()

    def _batch(
        self, arrivals: Mapping[int, Arrivals], watermarks: Sequence[int], *, restoring: bool
    ) -> Iterator[pa.RecordBatch]:
        cut = self.windows.slices if restoring else self._at_work.cut
        for reached, part in cut(arrivals):
            for stream in sorted(part):
                start, stop = part[stream]
                positions = self.bases[stream].append(arrivals[stream], start, stop)
                if (flags := arrivals[stream].flags) is not None:
                    self.flags.stored(stream, flags[start:stop])
                if restoring:
                    self._at_work.fill(stream, positions)
                else:
                    yield from self._emit(self._at_work.probe(stream, positions))
            if self.memory_limit is not None:
                check_memory(self.windows, self.tactic, self.memory_limit, self._held_bytes)
            yield from self._expire([min(w, reached) for w in watermarks])
        yield from self._emit(self._at_work.close_batch())
        if self._held is not None:
            yield from self._held.close_batch()
        yield from self._expire(watermarks)
        self.windows.close_batch(watermarks)

    def _emit(self, found: Iterator[Tuples]) -> Iterator[pa.RecordBatch]:
        for tuples in self._found_here(found) if self.flags else found:
            if self._held is None:
                yield from self.windows.output.batches(tuples)
            else:
                self._held.add(tuples)

    def _found_here(self, found: Iterator[Tuples]) -> Iterator[Tuples]:
        """Leave out the results that another processor finds."""
        for tuples in found:
            emitted = self.flags.emitted(tuples)
            if length(emitted):
                yield emitted

    def _expire(self, watermarks: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Drop what nothing to come can join, combinations before their parts."""
        self._at_work.expire(watermarks)
        gone = 0
        for stream, cutoff in enumerate(self._at_work.cutoffs(watermarks)):
            rows = self.bases[stream].drop_before(cutoff)
            if rows:
                self.flags.dropped(stream, rows)
                self._at_work.dropped(stream, rows)
                gone += rows
        if gone:
            yield from self._succeed()

    def _succeed(self) -> Iterator[pa.RecordBatch]:
        """Replace a tactic that has finished by its successor."""
        following = self._at_work.successor()
        if following is None:
            return
        yield from self.finish()
        record = self.tactic.migration
        self.adopt(following)
        if record is not None:
            self.last_ended = record
            self._ended.append(record)
