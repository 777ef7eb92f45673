"""Parallel track: old and new boxes run side by side until nothing old is left (CAPE 4.2).

Two plans of a query differ in some *boxes* (`plait.plan.boxes`): connected sub-plans with the same
inputs and the same output in both. Only the boxes are replaced. Everything outside of them, joins
and states, runs on and serves both plans. During the stage

- the feeds below a box have two readers, the old box and the new one, on the same state;
- the new box takes part in nothing old: of what enters it, and of what its lookups in those shared
  states find, only combinations of new tuples count. Its own states begin empty;
- the root of the old box holds back what is new in all parts (`Valve`);
- what either root puts out goes on to the one feed above the box: it enters the state there once,
  and climbs on once. Where the box is the root of the plan, it is a result.

*Correct output.* As for one plan: every result once. What the windows of the boxes' streams hold
when the stage begins is old, what comes is new (`plait.engine.mark`). A combination is old if any
of its parts is.

*Why it is exact.* By induction from the leaves: every feed outside the boxes gets each combination
of its streams once, when the last of its tuples climbs. For a stream and a join outside that is the
delta rule (`plait.engine.tactics.tree`). For the output of a box, take a combination c. The old box
runs as before and finds c once. If c has an old part, the valve lets it pass, and the new box never
finds it, since that part never takes part there. If c is new, the valve holds it back. All parts of
c came after the stage began, so the new box has seen each: an input of the box has, by induction,
all new combinations of its streams, and the new box's own states have all new combinations that
these make. So the new box finds c once. Both boxes work on the new tuples of one stream before the
next stream is taken; meanwhile only states over that stream grow, and only states without it are
probed. So for each box, and for the joins above, the delta rule holds as if it were alone. Boxes
below one another, or beside one another, need no further argument: each has feeds outside the boxes
as its inputs.

*The end.* Old rows are the first of their windows. When the last one is dropped, no live
combination contains one (a base row outlives its combinations), so the old boxes can find only
what the new boxes find as well. They go, between two slices of a batch, and the tree that remains
is an ordinary one. The states of the new boxes are then all that they need: whatever can still be
of use is new.

*Recovery.* At any batch boundary every result of the tuples so far was found, so a tree of the new
plan that is rebuilt from the base windows goes on just as well: nothing of the stage needs to be
durable.

*Cost.* That of the plan, and of the new boxes beside the old ones. New boxes see few rows at first:
lookups end at the earliest new row.

*Ties and time.* A row is old or new by its arrival. In which order results are emitted is not
decided here (`plait.engine.held`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from plait.engine.counters import OperatorCounters
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import Slice
from plait.engine.mark import Mark
from plait.engine.states import CombinedState, Tuples
from plait.engine.tactic import Tactic
from plait.engine.tactics.builder import Builder
from plait.engine.tactics.operators import Feed, Operator, Valve
from plait.engine.tactics.tree import TreeTactic
from plait.kernels.jit import Positions
from plait.kernels.memory import Saved
from plait.plan.boxes import Box, boxes
from plait.plan.jtree import Join, Node, check_plan, preorder
from plait.plan.migration import Migration, ResultOrder
from plait.plan.steps import StreamSet, indexes, stream_set


@dataclass(slots=True)
class ReplacedBox:
    """A box that is replaced: its old joins, and the new ones with the feeds between them."""

    box: Box
    old: dict[StreamSet, Operator]
    joins: dict[StreamSet, Operator]
    feeds: dict[StreamSet, Feed]

    @property
    def valve(self) -> Valve:
        """The filter at the root of the old box."""
        found = self.old[self.box.streams].valve
        assert found is not None
        return found

    @property
    def outputs(self) -> int:
        """The number of combinations from the new box."""
        return self.joins[self.box.streams].counters.outputs


class ParallelTrack:
    """A tree of joins with the boxes of another plan beside its own; it goes on as that plan's.

    `order` and `start` are for the record.
    """

    waiting = False

    def __init__(
        self, tree: TreeTactic, plan: Node, *, order: ResultOrder = "any", start: int = 0
    ) -> None:
        self.windows = tree.windows
        query = self.windows.query
        check_plan(query, plan)
        self.plan = plan
        self.tree = tree
        different = boxes(query, tree.plan, plan)
        streams = frozenset[int]().union(*(box.streams for box in different))
        self.mark = Mark(self.windows.bases, streams)
        self._batches = 0
        tree.index_only_what_is_needed(combined_only=True)
        self.replaced = [self._begin(box) for box in different]
        new = {s: operator for r in self.replaced for s, operator in r.joins.items()}
        old = [operator for r in self.replaced for operator in r.old.values()]
        inside = {s for r in self.replaced for s in r.old if s != r.box.streams}
        self._was = Migration(
            "parallel-track",
            tree.plan,
            plan,
            order,
            start,
            boxes=different,
            shared=sum(len(state) for state in tree.combined if state.streams not in inside),
        )
        tree.arrange(plan, new, old)

    def _begin(self, box: Box) -> ReplacedBox:
        """Put the new box beside the old one."""
        tree, query = self.tree, self.windows.query
        sets = [stream_set(query, join) for join in preorder(box.old)]
        below = {streams: tree.feeds[streams] for streams in box.inputs}
        inside = [s for s in sets if not any(s <= streams for streams in below)]
        old = {s: tree.joins[s] for s in inside}
        old[box.streams].valve = Valve(self.mark)
        needed = indexes(query, self.plan)
        for streams, feed in below.items():
            if isinstance(feed.state, CombinedState):
                feed.state.index_by(needed[streams])
            else:
                (stream,) = streams
                self.windows.index_by({stream: needed[streams]})
        assert isinstance(box.new, Join)
        new = Builder(self.windows, needed, below)
        new.add(box.new, tree.feeds[box.streams])
        for operator in new.joins.values():
            operator.see_only_new(self.mark)
        return ReplacedBox(box, old, new.joins, new.feeds)

    def _end(self) -> TreeTactic:
        """Remove the old boxes, and return the tree that remains."""
        tree = self.tree
        for replaced in self.replaced:
            gone = set(map(id, replaced.old.values()))
            for streams in replaced.box.inputs:
                feed = tree.feeds[streams]
                feed.readers = [reader for reader in feed.readers if id(reader[0]) not in gone]
            for streams in replaced.old:
                del tree.joins[streams]
                if streams != replaced.box.streams:
                    del tree.feeds[streams]
        for replaced in self.replaced:
            tree.joins |= replaced.joins
            tree.feeds |= replaced.feeds
            for operator in replaced.joins.values():
                operator.see_only_new(None)
        tree.plan = self.plan
        tree.arrange(self.plan)
        tree.index_only_what_is_needed()
        return tree

    def describe(self, *, pause: float, reason: str) -> None:
        """Add to the record what only the caller knows."""
        self._was = replace(self._was, pause=pause, reason=reason)

    # -- what it holds and has counted

    @property
    def migration(self) -> Migration:
        """The record of the migration so far."""
        return replace(
            self._was,
            old_results=sum(replaced.valve.passed for replaced in self.replaced),
            new_results=sum(replaced.outputs for replaced in self.replaced),
        )

    @property
    def operators(self) -> list[Operator]:
        """The joins of the new plan, shared ones included, then those of the old boxes."""
        return self.tree.operators

    @property
    def combined(self) -> list[CombinedState]:
        """The states of the new plan, shared ones included, then those of the old boxes."""
        return self.tree.combined

    @property
    def counters(self) -> list[OperatorCounters]:
        """In the order of `operators`."""
        return self.tree.counters

    @property
    def nbytes(self) -> int:
        """Bytes allocated for combined states."""
        return self.tree.nbytes

    def to_state(self) -> Saved:
        """Describe the progress of the stage, between two batches."""
        was = self._was
        return {
            "old": self.tree.to_state(),
            "new": [_new_to_state(replaced) for replaced in self.replaced],
            "passed": [replaced.valve.passed for replaced in self.replaced],
            "mark": self.mark.to_state(),
            "batches": self._batches,
            "record": [was.start, was.pause, was.reason, was.shared],
        }

    def set_state(self, saved: Saved) -> None:
        """Go on from another stage between the same plans, on windows that were restored."""
        self.tree.set_state(saved["old"])
        for replaced, kept in zip(self.replaced, saved["new"], strict=True):
            _set_new(replaced, kept)
        for replaced, passed in zip(self.replaced, saved["passed"], strict=True):
            replaced.valve.passed = int(passed)
        self.mark.set_state(saved["mark"])
        if self.mark.passed:
            raise ValueError("these windows have no old rows")
        self._batches = int(saved["batches"])
        start, pause, reason, shared = saved["record"]
        self._was = replace(self._was, start=start, pause=pause, reason=reason, shared=shared)

    # -- a batch

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        """As the tree does."""
        self._batches += 1
        return self.tree.cut(arrivals)

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        """Take new tuples of a stream up to the root, in the old boxes and the new ones."""
        self._arrived(stream, positions)
        return self.tree.probe(stream, positions)

    def fill(self, stream: int, positions: Positions) -> None:
        """Fill the states of both plans."""
        self._arrived(stream, positions)
        self.tree.fill(stream, positions)

    def _arrived(self, stream: int, positions: Positions) -> None:
        times = self.windows.bases[stream].window.latest
        self.mark.arrived(stream, int(times[positions[0]]))

    def expire(self, watermarks: Sequence[int]) -> None:
        """Drop the combinations that nothing to come can join."""
        self.tree.expire(watermarks)

    def cutoffs(self, watermarks: Sequence[int]) -> list[int]:
        """As the tree does."""
        return self.tree.cutoffs(watermarks)

    def dropped(self, stream: int, rows: int) -> None:
        """Count the rows that left a base window; the first ones are old."""
        self.tree.dropped(stream, rows)
        self.mark.dropped(stream, rows)

    def close_batch(self) -> Iterator[Tuples]:
        """Nothing waits after a batch."""
        yield from ()

    def finish(self) -> Iterator[Tuples]:
        """Nothing waits after a batch."""
        yield from ()

    def successor(self) -> Tactic | None:
        """The tree of the new plan, when the last old tuple is gone."""
        if not self.mark.passed:
            return None
        assert self._was.start is not None
        self._was = replace(self._was, end=self._was.start + self._batches)
        return self._end()


def _new_to_state(replaced: ReplacedBox) -> Saved:
    states = [feed.state for feed in replaced.feeds.values()]
    return {
        "operators": [o.to_state(range(len(o.inputs))) for o in replaced.joins.values()],
        "combined": [s.to_state() for s in states if isinstance(s, CombinedState)],
    }


def _set_new(replaced: ReplacedBox, saved: Saved) -> None:
    for operator, counted in zip(replaced.joins.values(), saved["operators"], strict=True):
        operator.set_state(counted)
    for feed, kept in zip(replaced.feeds.values(), saved["combined"], strict=True):
        assert isinstance(feed.state, CombinedState)
        feed.state.set_state(kept)
