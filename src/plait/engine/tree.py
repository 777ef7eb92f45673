"""Runs any jtree: binary trees, the mjoin, and every mixture.

*Correct output.* Over all batches, every combination of one tuple per stream that agrees in all
key classes, lies within the bounds and satisfies the residual conditions, exactly once.

*Invariants.* One stream's new tuples are taken at a time, in the order of the streams: they enter
their window, climb from their leaf to the root, and at each join probe the states of the other
inputs and then, one level up, enter the state that keeps the join's own results. So when stream i
climbs, the states hold this slice's tuples of the streams before it and not yet of those after it,
and each result appears when the last of its tuples, in that order, climbs: once, however the input
was cut into batches.

*Cost.* Per new tuple and level: one lookup per probe, and work in proportion to what is found.
Tuples are positions in base windows all the way; columns are gathered at the root. A probe that
finds very much is taken in portions that climb to the root one after the other, so
memory is bounded by depth and not by the size of the result.

*Ties and time.* Nothing depends on the order of rows within a batch. After each slice the states
drop what nothing to come can join: that is bounded by the watermarks after the batch and, within
it, by the time up to which the batch has been worked off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from plait.engine.counters import InputCounters, OperatorCounters, StateSize, StepCounters
from plait.engine.ingest import Admitted, Arrivals
from plait.engine.mark import Mark
from plait.engine.probe import Lookup, length
from plait.engine.purging import Purge, lemma_cutoff
from plait.engine.states import CombinedState, State, Tuples
from plait.engine.times import BEFORE_ALL_TIMES
from plait.engine.windows import Windows
from plait.errors import MemoryExceeded
from plait.kernels.gather import take
from plait.kernels.jit import Positions
from plait.kernels.memory import Saved
from plait.kernels.ring import last_positions
from plait.plan.jtree import Join, Leaf, Node, check_plan
from plait.plan.steps import indexes, steps, stream_set
from plait.query.query import Query
from plait.tuning import USUAL, Tuning


@dataclass(slots=True)
class Operator:
    """A join at work: the states of its inputs, and for each input the probes it makes.

    `passed` is, for each input, the largest earliest time of a tuple that entered by it: what
    purges the other states by lemma 2.2.
    """

    states: list[State]
    paths: list[list[tuple[Lookup, StepCounters]]]
    parent: tuple[Operator, int] | None
    counters: OperatorCounters
    passed: list[int]

    def purged_before(self, query: Query, child: int) -> int:
        """Rows in the state of an input are purged by lemma 2.2 if their latest time is older."""
        entered = zip((s.streams for s in self.states), self.passed, strict=True)
        others = [other for c, other in enumerate(entered) if c != child]
        return lemma_cutoff(query, self.states[child].streams, others)

    @property
    def kept(self) -> CombinedState | None:
        """The state that keeps what this join finds; the root's results are not kept."""
        if self.parent is None:
            return None
        above, child = self.parent
        state = above.states[child]
        assert isinstance(state, CombinedState)
        return state


class TreeEngine:
    """A query and a plan at work on batches of rows.

    `hash_bits` below 64 makes hashes collide on purpose; results do not change. With `windows`,
    the engine stands on what another one stored; its combined states are those of `shared`, by
    stream set, and empty otherwise: `plait.engine.migrate` fills them. With a `memory_limit` in
    bytes, a batch that makes the states larger than that ends in MemoryExceeded. Rows are purged by
    the rule of the windows, or by `purge` if these are new; the same holds for their `tuning`.
    """

    migrating = False

    def __init__(
        self,
        query: Query,
        plan: Node,
        *,
        hash_bits: int = 64,
        windows: Windows | None = None,
        shared: Mapping[frozenset[int], CombinedState] | None = None,
        memory_limit: int | None = None,
        purge: Purge = "watermark",
        tuning: Tuning = USUAL,
    ) -> None:
        check_plan(query, plan)
        self.query = query
        self.plan = plan
        self.memory_limit = memory_limit
        self.restoring = False
        """Whether tuples only fill the states, and the root looks up nothing."""
        self._needed = indexes(query, plan)
        by_stream = {s: self._needed[frozenset({s})] for s in range(len(query.streams))}
        if windows is None:
            windows = Windows(query, by_stream, hash_bits=hash_bits, purge=purge, tuning=tuning)
        else:
            windows.index_by(by_stream)
        self.windows = windows
        self.bases = windows.bases
        self.combined: list[CombinedState] = []
        self.operators: list[Operator] = []
        self.root: Callable[[Tuples], Iterator[pa.RecordBatch]] = windows.output.batches
        """What becomes of the combinations that the root finds."""
        self._leaves: dict[int, tuple[Operator, int]] = {}
        self._mark: Mark | None = None
        assert isinstance(plan, Join), "a legal plan of two or more streams is a join"
        self._build(plan, None, shared or {})

    def _build(
        self,
        join: Join,
        parent: tuple[Operator, int] | None,
        shared: Mapping[frozenset[int], CombinedState],
    ) -> None:
        query, hash_bits = self.query, self.windows.hash_bits
        states: list[State] = []
        for child in join.children:
            streams = stream_set(query, child)
            if isinstance(child, Leaf):
                states.append(self.bases[query.index(child.stream)])
                continue
            by = self._needed[streams]
            if streams in shared:
                state = shared[streams]
                state.index_by(by)
            else:
                state = CombinedState(query, streams, self.bases, by, hash_bits)
            self.combined.append(state)
            states.append(state)
        counters = OperatorCounters(str(join), [InputCounters() for _ in join.children])
        passed = [BEFORE_ALL_TIMES] * len(states)
        operator = Operator(states, [], parent, counters, passed)
        for c in range(len(join.children)):
            operator.paths.append(self._path(join, c, states, counters.inputs[c]))
        self.operators.append(operator)
        for c, child in enumerate(join.children):
            if isinstance(child, Leaf):
                self._leaves[query.index(child.stream)] = (operator, c)
            else:
                self._build(child, (operator, c), shared)

    def _path(
        self, join: Join, child: int, states: list[State], counters: InputCounters
    ) -> list[tuple[Lookup, StepCounters]]:
        gathered = states[child].streams
        path = []
        for step in steps(self.query, join, child):
            target = states[step.target]
            count = StepCounters()
            counters.steps.append(count)
            lookup = Lookup(self.windows, gathered, target, step.classes, step.residuals)
            path.append((lookup, count))
            gathered |= target.streams
        return path

    def see_only_new(self, mark: Mark | None) -> None:
        """Let lookups in base windows find only what is new to a mark, or again everything."""
        self._mark = mark
        for operator in self.operators:
            for path in operator.paths:
                for lookup, _ in path:
                    lookup.mark = mark

    def index_only_what_is_needed(self, *, combined_only: bool = False) -> None:
        """Drop the indexes that only another plan needed, base windows' or not."""
        if not combined_only:
            by_stream = {s: self._needed[frozenset({s})] for s in range(len(self.bases))}
            self.windows.index_only_by(by_stream)
        for state in self.combined:
            state.index_only_by(self._needed[state.streams])

    def to_state(self) -> Saved:
        """What it has beside its windows and its plan, between two batches."""
        return {
            "combined": [state.to_state() for state in self.combined],
            "counters": [counters.to_state() for counters in self.counters],
            "passed": [list(operator.passed) for operator in self.operators],
        }

    def set_state(self, saved: Saved) -> None:
        """Go on from another tree of the same plan, on windows that are the same already."""
        for state, kept in zip(self.combined, saved["combined"], strict=True):
            state.set_state(kept)
        for counters, counted in zip(self.counters, saved["counters"], strict=True):
            counters.set_state(counted)
        for operator, passed in zip(self.operators, saved["passed"], strict=True):
            operator.passed = [int(time) for time in passed]

    # -- what the engine holds and has counted

    @property
    def counters(self) -> list[OperatorCounters]:
        """The counters of every join, parents before children."""
        return [operator.counters for operator in self.operators]

    def input_of(self, stream: int) -> InputCounters:
        """The counters of the input that a stream is."""
        operator, child = self._leaves[stream]
        return operator.counters.inputs[child]

    def sizes(self) -> list[StateSize]:
        """Rows and bytes of every state, base windows first."""
        return self.windows.sizes(self.combined)

    def states(self) -> list[State]:
        """The base windows, then the states of combinations."""
        return [*self.bases, *self.combined]

    def state_rows(self) -> list[list[int]]:
        """For each join, parents before children, the rows of the state of each input.

        Rows of a stream that this tree does not see, and rows that were purged by the lemma but
        are held for combinations, are not among them.
        """
        return [
            [self._rows(operator, c) for c in range(len(operator.states))]
            for operator in self.operators
        ]

    def _rows(self, operator: Operator, child: int) -> int:
        state = operator.states[child]
        if isinstance(state, CombinedState):
            return len(state)
        (stream,) = state.streams
        out = 0 if self._mark is None else self._mark.old[stream]
        if self.windows.purge == "lemma":
            out = max(out, state.older_than(operator.purged_before(self.query, child)))
        return len(state) - out

    @property
    def nbytes(self) -> int:
        """Bytes allocated for states and interned keys."""
        return self.windows.nbytes + sum(s.nbytes for s in self.combined)

    # -- a batch

    def schema(self, stream: int) -> pa.Schema:
        """The columns of the rows of a stream that `admit` sets aside."""
        return self.windows.schema(stream)

    def admit(self, stream: int, rows: pa.RecordBatch, watermark: int) -> Admitted:
        """Sort out the rows of a stream: what to join, and what to set aside."""
        return self.windows.admit(stream, rows, watermark)

    def push(
        self, arrivals: Mapping[int, Arrivals], watermarks: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """Join one batch; yields its results, and must be exhausted.

        `watermarks` are those after the batch: no later batch brings an older tuple.
        """
        for reached, part in self.windows.slices(arrivals):
            for stream in sorted(part):
                positions = self.bases[stream].append(arrivals[stream], *part[stream])
                self.input_of(stream).inserts += len(positions)
                yield from self.climb(stream, positions)
            self.check_memory()
            self._expire([min(w, reached) for w in watermarks])
        self._expire(watermarks)
        self.windows.close_batch(watermarks)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Nothing waits after a batch."""
        yield from ()

    def cutoff(self, stream: int, watermarks: Sequence[int]) -> int:
        """Tuples of a stream that are older than this can never join again."""
        return self.windows.cutoff(stream, watermarks)

    def restore(self, arrivals: Mapping[int, Arrivals], watermarks: Sequence[int]) -> None:
        """Take in tuples whose results were found before: fill the states, find nothing.

        Everything below the root is recomputed; the root, which has no state, is not probed.
        """
        self.restoring = True
        try:
            for _ in self.push(arrivals, watermarks):
                raise AssertionError("a restored tuple reached the root's output")
        finally:
            self.restoring = False

    def climb(self, stream: int, positions: Positions) -> Iterator[pa.RecordBatch]:
        """Take new tuples of a stream, just stored in its window, up to the root."""
        yield from self._enter(*self._leaves[stream], {stream: positions})

    def _enter(self, operator: Operator, child: int, tuples: Tuples) -> Iterator[pa.RecordBatch]:
        """New tuples of an input: keep them, then probe the other inputs."""
        n = length(tuples)
        counters = operator.counters.inputs[child]
        counters.arrivals += n
        state = operator.states[child]
        if isinstance(state, CombinedState):
            counters.inserts += n
            state.insert(tuples)
        if self.windows.purge == "lemma" and n:
            entered = take(state.window.earliest, last_positions(state.window.ring.header, n))
            operator.passed[child] = max(operator.passed[child], int(entered.max()))
        if operator.parent is None and self.restoring:
            return
        yield from self._probe(operator, child, 0, tuples)

    def _probe(
        self, operator: Operator, child: int, depth: int, tuples: Tuples
    ) -> Iterator[pa.RecordBatch]:
        path = operator.paths[child]
        if depth == len(path):
            operator.counters.outputs += length(tuples)
            if operator.parent is None:
                yield from self.root(tuples)
            else:
                yield from self._enter(*operator.parent, tuples)
            return
        lookup, count = path[depth]
        for found in lookup.matches(tuples, count):
            yield from self._probe(operator, child, depth + 1, found)

    def check_memory(self, elsewhere: int = 0) -> None:
        """Refuse to hold more than the limit, with so many bytes elsewhere."""
        if self.memory_limit is None:
            return
        total = self.nbytes + elsewhere
        if total > self.memory_limit:
            largest = max(self.sizes(), key=lambda size: size.bytes)
            raise MemoryExceeded("⋈".join(largest.streams), largest.bytes, total, self.memory_limit)

    def expire_combinations(self, watermarks: Sequence[int]) -> None:
        """Drop the combinations that nothing to come can join."""
        if self.windows.purge == "lemma":
            self._purge_by_lemma()
            return
        for operator in self.operators:
            for state, counters in zip(operator.states, operator.counters.inputs, strict=True):
                if isinstance(state, CombinedState):
                    counters.deletes += state.expire(watermarks)

    def _purge_by_lemma(self) -> None:
        """Drop the combinations that tuples have purged; hold the base rows of the others."""
        for operator in self.operators:
            for c, state in enumerate(operator.states):
                cutoff = operator.purged_before(self.query, c)
                if not isinstance(state, CombinedState):
                    if self._mark is not None:
                        (stream,) = state.streams
                        cutoff = max(cutoff, self._mark.earliest_new[stream])
                    state.hold(cutoff)
                    continue
                operator.counters.inputs[c].deletes += state.drop_before(cutoff)
                earliest = state.earliest
                if earliest is not None:
                    for stream in state.streams:
                        self.bases[stream].hold(earliest)

    def _expire(self, watermarks: Sequence[int]) -> None:
        """Drop what nothing to come can join, combinations before their parts."""
        self.expire_combinations(watermarks)
        for stream, base in enumerate(self.bases):
            self.input_of(stream).deletes += base.expire(watermarks)
