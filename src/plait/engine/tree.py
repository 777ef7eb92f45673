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
finds very much is taken in portions (`portion`) that climb to the root one after the other, so
memory is bounded by depth and not by the size of the result.

*Ties and time.* Nothing depends on the order of rows within a batch. After each slice the states
drop what nothing to come can join: that is bounded by the watermarks after the batch and, within
it, by the time up to which the batch has been worked off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from plait.engine.counters import InputCounters, OperatorCounters, StateSize, StepCounters
from plait.engine.ingest import Admitted, Arrivals
from plait.engine.probe import PORTION, Lookup, length
from plait.engine.slices import cut
from plait.engine.states import CombinedState, State, Tuples
from plait.engine.windows import Windows
from plait.errors import MemoryExceeded
from plait.kernels.ring import first_positions
from plait.plan.jtree import Join, Leaf, Node, check_plan
from plait.plan.steps import indexes, steps, stream_set
from plait.query.query import Query


@dataclass(slots=True)
class _Operator:
    """A join at work: the states of its inputs, and for each input the probes it makes."""

    states: list[State]
    paths: list[list[tuple[Lookup, StepCounters]]]
    parent: tuple[_Operator, int] | None
    counters: OperatorCounters


class TreeEngine:
    """A query and a plan at work on batches of rows.

    `hash_bits` below 64 makes hashes collide on purpose; results do not change. With `windows`,
    the engine goes on from what another one stored: its combined states are computed from there.
    With a `memory_limit` in bytes, a batch that makes the states larger than that ends in
    MemoryExceeded.
    """

    def __init__(
        self,
        query: Query,
        plan: Node,
        *,
        hash_bits: int = 64,
        portion: int = PORTION,
        windows: Windows | None = None,
        memory_limit: int | None = None,
    ) -> None:
        check_plan(query, plan)
        self.query = query
        self.plan = plan
        self._portion = portion
        self._memory_limit = memory_limit
        self._restoring = False
        needed = indexes(query, plan)
        by_stream = {s: needed[frozenset({s})] for s in range(len(query.streams))}
        if windows is None:
            windows = Windows(query, by_stream, hash_bits=hash_bits)
        else:
            windows.index_by(by_stream)
        self.windows = windows
        self.bases = windows.bases
        self._combined: list[CombinedState] = []
        self._operators: list[_Operator] = []
        self._leaves: dict[int, tuple[_Operator, int]] = {}
        assert isinstance(plan, Join), "a legal plan of two or more streams is a join"
        self._build(plan, None, needed)
        if any(len(base) for base in self.bases):
            self._fill()

    def _build(
        self,
        join: Join,
        parent: tuple[_Operator, int] | None,
        needed: Mapping[frozenset[int], Sequence[tuple[int, ...]]],
    ) -> None:
        query, hash_bits = self.query, self.windows.hash_bits
        states: list[State] = []
        for child in join.children:
            streams = stream_set(query, child)
            if isinstance(child, Leaf):
                states.append(self.bases[query.index(child.stream)])
            else:
                state = CombinedState(query, streams, self.bases, needed[streams], hash_bits)
                self._combined.append(state)
                states.append(state)
        counters = OperatorCounters(str(join), [InputCounters() for _ in join.children])
        operator = _Operator(states, [], parent, counters)
        for c in range(len(join.children)):
            operator.paths.append(self._path(join, c, states, counters.inputs[c]))
        self._operators.append(operator)
        for c, child in enumerate(join.children):
            if isinstance(child, Leaf):
                self._leaves[query.index(child.stream)] = (operator, c)
            else:
                self._build(child, (operator, c), needed)

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

    def _fill(self) -> None:
        """Compute every combined state from the base windows.

        The whole content of one input of a join, looked up in all the others, is every
        combination once.
        """
        for operator in reversed(self._operators):
            if operator.parent is None:
                continue
            above, child = operator.parent
            kept = above.states[child]
            assert isinstance(kept, CombinedState)
            first = operator.states[0]
            rows = first_positions(first.window.ring.header, 0, len(first))
            if isinstance(first, CombinedState):
                tuples = first.parts(rows)
            else:
                (stream,) = first.streams
                tuples = {stream: rows}
            self._fill_from(kept, [lookup for lookup, _ in operator.paths[0]], tuples)

    def _fill_from(self, kept: CombinedState, path: Sequence[Lookup], tuples: Tuples) -> None:
        if not path:
            kept.insert(tuples)
            return
        for found in path[0].matches(tuples, self._portion, StepCounters()):
            self._fill_from(kept, path[1:], found)

    # -- what the engine holds and has counted

    @property
    def counters(self) -> list[OperatorCounters]:
        """The counters of every join, parents before children."""
        return [operator.counters for operator in self._operators]

    def sizes(self) -> list[StateSize]:
        """Rows and bytes of every state, base windows first."""
        return self.windows.sizes(self._combined)

    def states(self) -> list[State]:
        """The base windows, then the states of combinations."""
        return [*self.bases, *self._combined]

    @property
    def nbytes(self) -> int:
        """Bytes allocated for states and interned keys."""
        return self.windows.nbytes + sum(s.nbytes for s in self._combined)

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
        slices = cut(arrivals, self.query.bounds.widest // 4)
        for reached, part in slices:
            for stream in sorted(part):
                start, stop = part[stream]
                yield from self._climb(stream, arrivals[stream], start, stop)
            if self._memory_limit is not None:
                self._check_memory(self._memory_limit)
            self._expire([min(w, reached) for w in watermarks])
        self._expire(watermarks)
        self.windows.forget_keys()

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
        self._restoring = True
        try:
            for _ in self.push(arrivals, watermarks):
                raise AssertionError("a restored tuple reached the root's output")
        finally:
            self._restoring = False

    def _climb(
        self, stream: int, arrivals: Arrivals, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        operator, child = self._leaves[stream]
        tuples = {stream: self.bases[stream].append(arrivals, start, stop)}
        yield from self._enter(operator, child, tuples)

    def _enter(self, operator: _Operator, child: int, tuples: Tuples) -> Iterator[pa.RecordBatch]:
        """New tuples of an input: keep them, then probe the other inputs."""
        n = length(tuples)
        counters = operator.counters.inputs[child]
        counters.arrivals += n
        counters.inserts += n
        state = operator.states[child]
        if isinstance(state, CombinedState):
            state.insert(tuples)
        if operator.parent is None and self._restoring:
            return
        yield from self._probe(operator, child, 0, tuples)

    def _probe(
        self, operator: _Operator, child: int, depth: int, tuples: Tuples
    ) -> Iterator[pa.RecordBatch]:
        path = operator.paths[child]
        if depth == len(path):
            operator.counters.outputs += length(tuples)
            if operator.parent is None:
                yield from self.windows.output.batches(tuples)
            else:
                yield from self._enter(*operator.parent, tuples)
            return
        lookup, count = path[depth]
        for found in lookup.matches(tuples, self._portion, count):
            yield from self._probe(operator, child, depth + 1, found)

    def _check_memory(self, limit: int) -> None:
        """Refuse to hold more than the limit; what expires goes after that."""
        total = self.nbytes
        if total > limit:
            largest = max(self.sizes(), key=lambda size: size.bytes)
            raise MemoryExceeded("⋈".join(largest.streams), largest.bytes, total, limit)

    def _expire(self, watermarks: Sequence[int]) -> None:
        """Drop what nothing to come can join, combinations before their parts."""
        for operator in self._operators:
            for state, counters in zip(operator.states, operator.counters.inputs, strict=True):
                if isinstance(state, CombinedState):
                    counters.deletes += state.expire(watermarks)
        for stream, base in enumerate(self.bases):
            operator, child = self._leaves[stream]
            operator.counters.inputs[child].deletes += base.expire(watermarks)
