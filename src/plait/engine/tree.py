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

import numpy as np
import pyarrow as pa

from plait.engine.codes import CodeBook
from plait.engine.counters import InputCounters, OperatorCounters, StateSize, StepCounters
from plait.engine.ingest import Admitted, Arrivals, Ingest
from plait.engine.output import Output
from plait.engine.slices import cut
from plait.engine.states import BaseWindow, CombinedState, State, Tuples
from plait.kernels.gather import keep_equal, keep_near, take, tighten
from plait.kernels.index import finished, new_cursor
from plait.kernels.jit import Bytes, Ints, Positions
from plait.plan.jtree import Join, Leaf, Node, check_plan
from plait.plan.steps import indexes, steps, stream_set
from plait.query.expr import Expr
from plait.query.query import Query

PORTION = 1 << 17
"""Pairs that a probe returns at a time: large enough to vectorise, small enough for the cache."""

_FAR_PAST, _FAR_FUTURE = -(2**62), 2**62


@dataclass(slots=True)
class _Step:
    """A probe, with everything looked up that does not change."""

    target: State
    classes: tuple[int, ...]
    key_sources: dict[int, int]
    """For each class, a gathered stream that has it."""
    gathered: tuple[int, ...]
    verify_times: bool
    conditions: list[Expr]
    counters: StepCounters


@dataclass(slots=True)
class _Operator:
    """A join at work."""

    states: list[State]
    paths: list[list[_Step]]
    parent: tuple[_Operator, int] | None
    counters: OperatorCounters


class TreeEngine:
    """A query and a plan at work on batches of rows.

    `hash_bits` below 64 makes hashes collide on purpose; results do not change.
    """

    def __init__(
        self, query: Query, plan: Node, *, hash_bits: int = 64, portion: int = PORTION
    ) -> None:
        check_plan(query, plan)
        self.query = query
        self.plan = plan
        self._portion = portion
        self._matrix = query.bounds.matrix
        self._uniform = query.bounds.uniform
        self._books = [CodeBook(c.type, hash_bits) for c in query.graph.classes]
        self._ingests = [Ingest(query, s, self._books) for s in range(len(query.streams))]
        needed = indexes(query, plan)
        self.bases = [
            BaseWindow(query, s, needed[frozenset({s})], hash_bits)
            for s in range(len(query.streams))
        ]
        self._output = Output(query, self.bases)
        self._combined: list[CombinedState] = []
        self._operators: list[_Operator] = []
        self._leaves: dict[int, tuple[_Operator, int]] = {}
        assert isinstance(plan, Join), "a legal plan of two or more streams is a join"
        self._build(plan, None, needed, hash_bits)

    def _build(
        self,
        join: Join,
        parent: tuple[_Operator, int] | None,
        needed: Mapping[frozenset[int], Sequence[tuple[int, ...]]],
        hash_bits: int,
    ) -> None:
        query = self.query
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
                self._build(child, (operator, c), needed, hash_bits)

    def _path(
        self, join: Join, child: int, states: list[State], counters: InputCounters
    ) -> list[_Step]:
        gathered = states[child].streams
        path = []
        for step in steps(self.query, join, child):
            target = states[step.target]
            count = StepCounters()
            counters.steps.append(count)
            path.append(
                _Step(
                    target,
                    step.classes,
                    {k: min(self.query.graph.classes[k].streams & gathered) for k in step.classes},
                    tuple(sorted(gathered)),
                    isinstance(target, CombinedState) and self._uniform is None,
                    [self.query.residuals[r] for r in step.residuals],
                    count,
                )
            )
            gathered |= target.streams
        return path

    # -- what the engine holds and has counted

    @property
    def counters(self) -> list[OperatorCounters]:
        """The counters of every join, parents before children."""
        return [operator.counters for operator in self._operators]

    def sizes(self) -> list[StateSize]:
        """Rows and bytes of every state, base windows first."""
        states: list[State] = [*self.bases, *self._combined]
        names = self.query.names
        return [
            StateSize(
                tuple(names[i] for i in sorted(state.streams)),
                len(state),
                state.nbytes,
                state.row_bytes,
                len(state.window.indexes),
            )
            for state in states
        ]

    @property
    def nbytes(self) -> int:
        """Bytes allocated for states and interned keys."""
        states: list[State] = [*self.bases, *self._combined]
        return sum(s.nbytes for s in states) + sum(b.nbytes for b in self._books)

    # -- a batch

    def schema(self, stream: int) -> pa.Schema:
        """The columns of the rows of a stream that `admit` sets aside."""
        return self._ingests[stream].schema

    def admit(self, stream: int, rows: pa.RecordBatch, watermark: int) -> Admitted:
        """Sort out the rows of a stream: what to join, and what to set aside."""
        return self._ingests[stream].admit(rows, watermark)

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
            self._expire([min(w, reached) for w in watermarks])
        self._expire(watermarks)
        self._forget_keys()

    def _climb(
        self, stream: int, arrivals: Arrivals, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        operator, child = self._leaves[stream]
        tuples = {stream: self.bases[stream].append(arrivals, start, stop)}
        yield from self._enter(operator, child, tuples)

    def _enter(self, operator: _Operator, child: int, tuples: Tuples) -> Iterator[pa.RecordBatch]:
        """New tuples of an input: keep them, then probe the other inputs."""
        n = _length(tuples)
        counters = operator.counters.inputs[child]
        counters.arrivals += n
        counters.inserts += n
        state = operator.states[child]
        if isinstance(state, CombinedState):
            state.insert(tuples)
        yield from self._probe(operator, child, 0, tuples)

    def _probe(
        self, operator: _Operator, child: int, depth: int, tuples: Tuples
    ) -> Iterator[pa.RecordBatch]:
        path = operator.paths[child]
        if depth == len(path):
            operator.counters.outputs += _length(tuples)
            if operator.parent is None:
                yield from self._output.batches(tuples)
            else:
                yield from self._enter(*operator.parent, tuples)
            return
        step = path[depth]
        n = _length(tuples)
        step.counters.probes += n
        codes = {
            k: take(self.bases[s].window.codes(k), tuples[s]) for k, s in step.key_sources.items()
        }
        keys = step.target.window.keys(step.classes, codes)
        lo, hi = self._range(step, tuples, n)
        cursor = new_cursor()
        while not finished(cursor, n):
            probes, rows, visited = step.target.window.probe(
                step.classes, keys, lo, hi, cursor, self._portion
            )
            step.counters.visited += visited
            found = self._combine(step, tuples, codes, probes, rows)
            matches = _length(found)
            step.counters.matches += matches
            if matches:
                yield from self._probe(operator, child, depth + 1, found)

    def _range(self, step: _Step, tuples: Tuples, n: int) -> tuple[Ints, Ints]:
        """The times that the tuples allow in the target, exact unless `verify_times`."""
        lo, hi = np.full(n, _FAR_PAST, np.int64), np.full(n, _FAR_FUTURE, np.int64)
        for i in step.gathered:
            back = max(self._matrix[j][i] for j in step.target.streams)
            ahead = max(self._matrix[i][j] for j in step.target.streams)
            tighten(lo, hi, self.bases[i].window.latest, tuples[i], back, ahead)
        return lo, hi

    def _combine(
        self,
        step: _Step,
        tuples: Tuples,
        codes: dict[int, Ints],
        probes: Positions,
        rows: Positions,
    ) -> Tuples:
        """The pairs as tuples, without those that fail a check the index could not make."""
        target = step.target
        keep: Bytes | None = None
        if isinstance(target, CombinedState):
            found = target.parts(rows)
            for positions in found.values():
                if len(positions) and positions.min() < 0:
                    alive = (positions >= 0).view(np.uint8)
                    keep = alive if keep is None else keep & alive
            if keep is not None:
                chosen = np.flatnonzero(keep).astype(np.int32)
                probes, rows = take(probes, chosen), take(rows, chosen)
                found = {s: take(p, chosen) for s, p in found.items()}
                keep = None
        else:
            (stream,) = target.streams
            found = {stream: rows}
        out = {s: take(p, probes) for s, p in tuples.items()} | found
        if len(step.classes) > 1:
            keep = np.ones(len(probes), np.uint8)
            for k in step.classes:
                s = min(self.query.graph.classes[k].streams & target.streams)
                keep_equal(keep, codes[k], probes, self.bases[s].window.codes(k), out[s])
        if step.verify_times:
            keep = np.ones(len(probes), np.uint8) if keep is None else keep
            for i in step.gathered:
                for j in target.streams:
                    keep_near(
                        keep, self.bases[i].window.latest, out[i],
                        self.bases[j].window.latest, out[j],
                        self._matrix[j][i], self._matrix[i][j],
                    )  # fmt: skip
        out = _filter(out, keep)
        for condition in step.conditions:
            if _length(out):
                out = _filter(out, self._output.holds(condition, out))
        return out

    def _expire(self, watermarks: Sequence[int]) -> None:
        """Drop what nothing to come can join, combinations before their parts."""
        for operator in self._operators:
            for state, counters in zip(operator.states, operator.counters.inputs, strict=True):
                if isinstance(state, CombinedState):
                    counters.deletes += state.expire(watermarks)
        for stream, base in enumerate(self.bases):
            operator, child = self._leaves[stream]
            operator.counters.inputs[child].deletes += base.expire(watermarks)

    def _forget_keys(self) -> None:
        for k, book in enumerate(self._books):
            if book.crowded:
                owners = self.query.graph.classes[k].streams
                book.forget(self.bases[s].live_codes(k) for s in owners)


def _length(tuples: Tuples) -> int:
    return len(next(iter(tuples.values())))


def _filter(tuples: Tuples, keep: Bytes | None) -> Tuples:
    if keep is None or keep.all():
        return tuples
    chosen = np.flatnonzero(keep).astype(np.int32)
    return {s: take(p, chosen) for s, p in tuples.items()}
