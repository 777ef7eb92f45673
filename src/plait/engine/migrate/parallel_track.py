"""Parallel track: both plans run until the old one has nothing old left (CAPE 4.2).

*Correct output.* As for one plan: every result once. What the windows hold when the stage begins is
old, what comes is new (`plait.engine.mark`). A result with an old part is found by the old plan,
one of new parts only by the new plan.

*Invariants.* The base windows are there once and both trees stand on them; a tuple is stored
once, then climbs in the old tree and in the new one, before the next stream is taken. So for each
tree the rule of deltas holds as if it were alone: windows and its own states have what came
before, and nothing else. The new tree's states begin empty, and its lookups in base windows see
new rows only, so by induction all that it ever combines is new. The old tree runs as before, and
only its root holds back results that are new in all parts: further below, a new combination may
still meet something old.

*The end.* Old rows are the first of their windows; when the last is dropped, no live combination
contains one (a base row outlives its combinations), so the old tree can find nothing but new
results, which are not its own. It goes, between two slices of a batch, and the new tree goes on
as an ordinary engine. Its states are then all it needs: whatever can still be of use is new.

*Recovery.* At any batch boundary every result of the tuples so far was found (or waits in the
buffer), so a plan rebuilt from the base windows goes on just as well: nothing of the stage needs
to be durable unless results are held back.

*Cost.* That of both plans, with one set of base windows. New plans see few rows at first: lookups
end at the earliest new row of a stream.

*Ties and time.* A row is old or new by its arrival. With `order="timestamp"` the new plan's
results are held back until the old plan is gone, and what is emitted is ordered by its latest
time, the old plan's batch by batch: then of two results the later one has a tuple that arrived
no earlier than the other's of the same stream. If streams come in order of time, that is the
timestamp order of lemma 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from plait.engine.counters import OperatorCounters, StateSize
from plait.engine.ingest import Admitted, Arrivals
from plait.engine.mark import Mark
from plait.engine.migrate.held import Held
from plait.engine.probe import chosen_tuples, length
from plait.engine.states import State, Tuples
from plait.engine.tree import TreeEngine
from plait.kernels.memory import NotSaved, Saved
from plait.plan.boxes import Box
from plait.plan.jtree import Node
from plait.plan.migration import Migration, Order
from plait.plan.steps import stream_set


class ParallelTrack:
    """Two trees on the same windows, to be used like one engine; `new` goes on alone at the end."""

    def __init__(
        self, old: TreeEngine, plan: Node, *, order: Order = "any", start: int = 0
    ) -> None:
        self.query = old.query
        self.plan = plan
        self.windows = old.windows
        self.bases = old.bases
        self.memory_limit = old.memory_limit
        self.new = TreeEngine(
            old.query,
            plan,
            windows=old.windows,
            memory_limit=old.memory_limit,
        )
        self.old: TreeEngine | None = old
        self.tracks = {"old": old.counters, "new": self.new.counters}
        """What each plan counted; the old one's counters stay when it goes."""
        old.index_only_what_is_needed(combined_only=True)
        self.mark = Mark(self.bases)
        self._held = Held(self.windows) if order == "timestamp" else None
        self._batches = 0
        whole = stream_set(self.query, plan)
        leaves = tuple(frozenset({s}) for s in sorted(whole))
        box = Box(whole, leaves, old.plan, plan)
        self._was = Migration("parallel-track", old.plan, plan, order, start, boxes=(box,))
        self._results = {"old": 0, "new": 0}
        old.root = self._from_old
        self.new.root = self._from_new
        self.new.see_only_new(self.mark)
        if self.mark.passed:
            self._leave_old()

    def describe(self, *, pause: float, reason: str) -> None:
        """Put into the record what only the caller knows."""
        self._was = replace(self._was, pause=pause, reason=reason)

    def to_state(self) -> Saved:
        """How far the stage has come, between two batches of it."""
        if self.old is None or self._held is not None:
            raise NotSaved("results that are held back")
        was = self._was
        return {
            "old": self.old.to_state(),
            "new": self.new.to_state(),
            "mark": self.mark.to_state(),
            "batches": self._batches,
            "results": [self._results["old"], self._results["new"]],
            "record": [was.start, was.pause, was.reason],
        }

    def set_state(self, saved: Saved) -> None:
        """Go on from another stage between the same plans, on windows that are the same already."""
        if self.old is None:
            raise ValueError("there is nothing old in these windows")
        self.old.set_state(saved["old"])
        self.new.set_state(saved["new"])
        self.mark.set_state(saved["mark"])
        self._batches = int(saved["batches"])
        self._results["old"], self._results["new"] = map(int, saved["results"])
        start, pause, reason = saved["record"]
        self._was = replace(self._was, start=start, pause=pause, reason=reason)

    # -- what the engine holds and has counted

    @property
    def migrating(self) -> bool:
        """Whether the old plan is still there."""
        return self.old is not None

    @property
    def record(self) -> Migration:
        """The migration as it stands."""
        old, new = self._results["old"], self._results["new"]
        return replace(self._was, old_results=old, new_results=new)

    @property
    def counters(self) -> list[OperatorCounters]:
        """The counters of every join, of the new plan and then of the old one while it is there."""
        return [*self.new.counters, *(self.old.counters if self.old else ())]

    def states(self) -> list[State]:
        """The base windows, then the states of combinations of both plans."""
        return [*self.new.states(), *(self.old.combined if self.old else ())]

    def sizes(self) -> list[StateSize]:
        """Rows and bytes of every state, base windows first."""
        return self.windows.sizes(self.states()[len(self.bases) :])

    @property
    def nbytes(self) -> int:
        """Bytes allocated for states, interned keys and results held back."""
        return self.new.nbytes + self._elsewhere

    @property
    def _elsewhere(self) -> int:
        old = sum(s.nbytes for s in self.old.combined) if self.old else 0
        return old + (self._held.nbytes if self._held else 0)

    # -- a batch

    def schema(self, stream: int) -> pa.Schema:
        """The columns of the rows of a stream that `admit` sets aside."""
        return self.windows.schema(stream)

    def admit(self, stream: int, rows: pa.RecordBatch, watermark: int) -> Admitted:
        """Sort out the rows of a stream: what to join, and what to set aside."""
        return self.windows.admit(stream, rows, watermark)

    def cutoff(self, stream: int, watermarks: Sequence[int]) -> int:
        """Tuples of a stream that are older than this can never join again."""
        return self.windows.cutoff(stream, watermarks)

    def push(
        self, arrivals: Mapping[int, Arrivals], watermarks: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """Join one batch; yields its results, and must be exhausted."""
        if self.old is None:
            yield from self.new.push(arrivals, watermarks)
            return
        self._batches += 1
        for reached, part in self.windows.slices(arrivals):
            for stream in sorted(part):
                yield from self._climb(stream, arrivals[stream], *part[stream])
            if self.memory_limit is not None:
                self.new.check_memory(self._elsewhere)
            yield from self._expire([min(w, reached) for w in watermarks])
        yield from self._expire(watermarks)
        if self._held is not None:
            yield from self._held.release("old")
        self.windows.close_batch(watermarks)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The results that were held back; must be exhausted."""
        if self._held is not None:
            yield from self._held.release("old")
            yield from self._held.release("new")

    def restore(self, arrivals: Mapping[int, Arrivals], watermarks: Sequence[int]) -> None:
        """Take in tuples whose results were found before: fill the states, find nothing."""
        trees = [self.new, *([self.old] if self.old else [])]
        for tree in trees:
            tree.restoring = True
        try:
            for _ in self.push(arrivals, watermarks):
                raise AssertionError("a restored tuple reached the root's output")
        finally:
            for tree in trees:
                tree.restoring = False

    def _climb(
        self, stream: int, arrivals: Arrivals, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        positions = self.bases[stream].append(arrivals, start, stop)
        if self.old is not None:
            self.mark.arrived(stream, int(arrivals.times[start]))
            self.old.input_of(stream).inserts += len(positions)
            yield from self.old.climb(stream, positions)
        else:
            self.new.input_of(stream).inserts += len(positions)
        yield from self.new.climb(stream, positions)

    def _expire(self, watermarks: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Drop what nothing to come can join; and the old plan with the last old tuple."""
        self.new.expire_combinations(watermarks)
        if self.old is not None:
            self.old.expire_combinations(watermarks)
        counted = self.old or self.new
        for stream, base in enumerate(self.bases):
            dropped = base.expire(watermarks)
            counted.input_of(stream).deletes += dropped
            self.mark.dropped(stream, dropped)
        if self.old is not None and self.mark.passed:
            yield from self.finish()
            self._leave_old()

    def _leave_old(self) -> None:
        assert self._was.start is not None
        self._was = replace(self._was, end=self._was.start + self._batches)
        self.old = None
        self._held = None
        self.new.see_only_new(None)
        self.new.root = self.windows.output.batches
        self.new.index_only_what_is_needed()

    def _from_old(self, tuples: Tuples) -> Iterator[pa.RecordBatch]:
        """The old root: results that are new in all parts are the new plan's."""
        tuples = chosen_tuples(tuples, self.mark.old_tuples(tuples))
        yield from self._emit("old", tuples)

    def _from_new(self, tuples: Tuples) -> Iterator[pa.RecordBatch]:
        yield from self._emit("new", tuples)

    def _emit(self, track: str, tuples: Tuples) -> Iterator[pa.RecordBatch]:
        n = length(tuples)
        if not n:
            return
        self._results[track] += n
        if self._held is None:
            yield from self.windows.output.batches(tuples)
        else:
            self._held.add(track, tuples)
