"""Run any jtree: binary trees, the mjoin, and every mixture.

*Correct output.* Over all batches, every combination of one tuple per stream that agrees in all
key classes, lies within the bounds and satisfies the residual conditions, exactly once.

*Invariants.* One stream's new tuples are taken at a time, in the order of the streams. The driver
has stored them in their window. They climb from their leaf to the root: at each join they probe
the states of the other inputs, and what they find enters the state of the feed above. So when
stream i climbs, the states hold this slice's tuples of the streams before it and not yet of those
after it, and each result appears when the last of its tuples, in that order, climbs: once, however
the input was cut into batches. While stream i climbs, tuples enter only states over stream i, and
only states without stream i are probed; so what climbs first makes no difference.

*Cost.* Per new tuple and level: one lookup per probe, and work in proportion to what is found.
Tuples are positions in base windows all the way. A probe that finds very much is taken in portions
that climb to the root one after the other, so memory is bounded by depth and not by the size of
the result.

*Ties and time.* Nothing depends on the order of rows within a batch. After each slice the states
drop what nothing to come can join: that is bounded by the watermarks after the batch and, within
it, by the time up to which the batch has been joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from plait.engine.counters import InputCounters, OperatorCounters
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import Slice
from plait.engine.probe import chosen_tuples, length
from plait.engine.states import CombinedState, Tuples
from plait.engine.tactic import Tactic
from plait.engine.tactics.builder import NO_STATES, Builder
from plait.engine.tactics.operators import Feed, Operator
from plait.engine.windows import Windows
from plait.kernels.jit import Positions
from plait.kernels.memory import Saved
from plait.plan.jtree import Join, Node, check_plan, preorder
from plait.plan.migration import Migration
from plait.plan.steps import StreamSet, indexes, stream_set

_NO_JOINS: Mapping[StreamSet, Operator] = {}


class TreeTactic:
    """A tree of joins on the base windows of a query.

    Its combined states are those of `shared`, by stream set, and empty otherwise:
    `plait.engine.migrate` fills them.
    """

    migration: Migration | None = None
    waiting = False

    def __init__(
        self, windows: Windows, plan: Node, shared: Mapping[StreamSet, CombinedState] = NO_STATES
    ) -> None:
        check_plan(windows.query, plan)
        assert isinstance(plan, Join), "a legal plan of two or more streams is a join"
        self.plan: Node = plan
        self.windows = windows
        self._query = windows.query
        self._purging = windows.purging
        self._restoring = False
        self._leaves = [Feed(base) for base in windows.bases]
        windows.index_by(self._by_stream(plan))
        self.feeds: dict[StreamSet, Feed] = {
            frozenset({stream}): feed for stream, feed in enumerate(self._leaves)
        }
        """Every feed of the plan, by stream set."""
        root = Feed(None)
        built = Builder(windows, indexes(self._query, plan), dict(self.feeds), shared)
        built.add(plan, root)
        self.joins = built.joins
        """Every join of the plan, by stream set."""
        self.feeds |= built.feeds | {stream_set(self._query, plan): root}
        self.operators: list[Operator] = []
        """The joins of the plan, parents first."""
        self.combined: list[CombinedState] = []
        """The combined states, in the order of the joins that read them."""
        self._kept: list[tuple[Feed, CombinedState]] = []
        self.arrange(plan)

    # -- how it is put together

    def arrange(
        self,
        plan: Node,
        new: Mapping[StreamSet, Operator] = _NO_JOINS,
        old: Sequence[Operator] = (),
    ) -> None:
        """Run the joins of a plan: `new` ones and its own, and `old` ones beside them."""
        sets = [stream_set(self._query, join) for join in preorder(plan)]
        self.operators = [*(new[s] if s in new else self.joins[s] for s in sets), *old]
        feeds = {id(feed): feed for operator in self.operators for feed in operator.inputs}
        self._kept = [
            (feed, feed.state) for feed in feeds.values() if isinstance(feed.state, CombinedState)
        ]
        self.combined = [state for _, state in self._kept]

    def index_only_what_is_needed(self, *, combined_only: bool = False) -> None:
        """Drop the indexes that only another plan needed."""
        if not combined_only:
            self.windows.index_only_by(self._by_stream(self.plan))
        needed = indexes(self._query, self.plan)
        for state in self.combined:
            state.index_only_by(needed[state.streams])

    def _by_stream(self, plan: Node) -> dict[int, tuple[tuple[int, ...], ...]]:
        needed = indexes(self._query, plan)
        return {s: needed[frozenset({s})] for s in range(len(self.windows.bases))}

    # -- what it holds and has counted

    @property
    def counters(self) -> list[OperatorCounters]:
        """The counters of every join, parents before children."""
        return [operator.counters for operator in self.operators]

    def input_of(self, stream: int) -> InputCounters:
        """The counters of the input that reads a stream."""
        operator, child = self._leaves[stream].readers[0]
        return operator.counters.inputs[child]

    @property
    def nbytes(self) -> int:
        """Bytes allocated for combined states."""
        return sum(state.nbytes for state in self.combined)

    def to_state(self) -> Saved:
        """Describe its state beside windows and plan, in the order of the plan.

        A join that was there before the plan may have its inputs in another order.
        """
        saved = []
        for join in preorder(self.plan):
            operator = self.joins[stream_set(self._query, join)]
            sets = [state.streams for state in operator.states]
            order = [sets.index(stream_set(self._query, child)) for child in join.children]
            saved.append(operator.to_state(order))
        return {"operators": saved, "combined": [state.to_state() for state in self._in_order()]}

    def set_state(self, saved: Saved) -> None:
        """Go on from another tree of the same plan, on windows that were restored."""
        operators = [self.joins[stream_set(self._query, join)] for join in preorder(self.plan)]
        for operator, counted in zip(operators, saved["operators"], strict=True):
            operator.set_state(counted)
        for state, kept in zip(self._in_order(), saved["combined"], strict=True):
            state.set_state(kept)

    def _in_order(self) -> list[CombinedState]:
        """The combined states of its plan."""
        sets = [stream_set(self._query, join) for join in preorder(self.plan)]
        states = [self.feeds[streams].state for streams in sets]
        return [state for state in states if isinstance(state, CombinedState)]

    # -- a batch

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        """Cut a batch into slices of event time."""
        return self.windows.slices(arrivals)

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        """Probe with new tuples of a stream, up to the root."""
        return self._enter(self._leaves[stream], {stream: positions})

    def fill(self, stream: int, positions: Positions) -> None:
        """Recompute everything below the root; the root, which has no state, is not probed."""
        self._restoring = True
        try:
            for _ in self.probe(stream, positions):
                raise AssertionError("a restored tuple became a result")
        finally:
            self._restoring = False

    def _enter(self, feed: Feed, tuples: Tuples) -> Iterator[Tuples]:
        """Store new combinations at a feed, then let its readers probe with them."""
        state = feed.state
        if state is None:
            yield tuples
            return
        combined = isinstance(state, CombinedState)
        if isinstance(state, CombinedState):
            state.insert(tuples)
        first, child = feed.readers[0]
        first.counters.inputs[child].inserts += length(tuples)
        for operator, child in feed.readers:
            given = tuples
            if operator.mark is not None and combined:
                old = operator.mark.old_tuples(tuples)
                given = chosen_tuples(tuples, np.logical_not(old).view(np.uint8))
            operator.counters.inputs[child].arrivals += length(given)
            self._purging.enter(operator, child, given)
            if self._restoring and operator.above.state is None:
                continue
            yield from self._probe(operator, child, 0, given)

    def _probe(
        self, operator: Operator, child: int, depth: int, tuples: Tuples
    ) -> Iterator[Tuples]:
        path = operator.paths[child]
        if depth == len(path):
            operator.counters.outputs += length(tuples)
            if operator.valve is not None:
                tuples = operator.valve.old(tuples)
                if not length(tuples):
                    return
            yield from self._enter(operator.above, tuples)
            return
        lookup, count = path[depth]
        for found in lookup.matches(tuples, count):
            yield from self._probe(operator, child, depth + 1, found)

    def expire(self, watermarks: Sequence[int]) -> None:
        """Drop the combinations that nothing to come can join."""
        for feed, state in self._kept:
            gone = self._purging.expire(feed, state, watermarks)
            operator, child = feed.readers[0]
            operator.counters.inputs[child].deletes += gone

    def cutoffs(self, watermarks: Sequence[int]) -> list[int]:
        """The times before which base windows may drop rows."""
        found = [base.cutoff(watermarks) for base in self.windows.bases]
        self._purging.hold(found, self._leaves, self._kept)
        return found

    def dropped(self, stream: int, rows: int) -> None:
        """Count the rows that left a base window."""
        self.input_of(stream).deletes += rows

    def close_batch(self) -> Iterator[Tuples]:
        """Nothing waits after a batch."""
        yield from ()

    def finish(self) -> Iterator[Tuples]:
        """Nothing waits after a batch."""
        yield from ()

    def successor(self) -> Tactic | None:
        """Return None: a tree never finishes by itself."""
        return None
