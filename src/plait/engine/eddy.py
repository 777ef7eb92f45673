"""Runs a query without a plan: tuples are routed from window to window until they are complete.

The windows of the streams are the SteMs: the same windows and indexes that the tree engine has.
A tuple under way has a *history*, the streams it has gathered (its DONE bits), from which follows
where it can go next (READY): to any other stream that shares a key with what is gathered. A policy
chooses one; the tuple is looked up there, and what it finds has a longer history. This module has
all of that, and Eddies, which route one tuple at a time from one queue; `plait.engine.teddy` has
Teddies, which route packets and differ in the queueing alone.

*Correct output.* As for the tree engine: over all batches, every combination of one tuple per
stream that satisfies the query, exactly once, whatever the policy chooses.

*Invariants.* Tuples of one stream that are stored together are a *block*; blocks are numbered in
the order in which they are stored. A tuple is stored before it, or anything it became part of, is
looked up (the insert/probe invariant). A tuple under way carries the number of the block it began
with, and finds only rows that were stored before that block. Blocks have one stream each, so the
tuples of a result have different blocks, and the result is found on the way that began with the
newest of them, and on no other: from there all others are older, whatever order they are visited
in; from anywhere else the newest one is too new. Rows are stored in the order of their ids, so
«before block b» is one id per window, remembered for each block under way (`Frontiers`).

*Cost.* As for an mjoin, for each tuple and visit one lookup and work in proportion to what is
found; and for each packet a routing decision.

*Ties and time.* Event time plays no part in who meets whom, so rows may come in any order. But
nothing may be dropped that a tuple under way still needs. Let T be the earliest event time of the
tuples with which those under way began: a row they can still find, or already hold, is within the
bounds of such a tuple, so it outlives watermarks of T; and so does the tuple itself if each
watermark also stays within its reach, T + D[i][k] for every other stream i.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from plait.engine.counters import InputCounters, OperatorCounters, StateSize, StepCounters
from plait.engine.ingest import Admitted, Arrivals
from plait.engine.probe import Lookup, length
from plait.engine.routing import History, Policy, make_policy
from plait.engine.slices import Slice, cut_rows
from plait.engine.states import Tuples
from plait.engine.windows import Windows
from plait.kernels.jit import Array, Ids, Positions
from plait.kernels.memory import NotSaved, Saved
from plait.kernels.ring import ID_MASK, ids_of, positions_of
from plait.plan.routed import Eddies, Routed
from plait.query.expr import streams_of
from plait.query.query import Query
from plait.tuning import USUAL, Tuning

BLOCK = -1
"""Where a packet keeps the block numbers of its tuples, beside the streams."""

_BLOCK_MASK = 0x7FFF_FFFF


@dataclass(slots=True)
class Packet:
    """Tuples with the same history: the ids of their parts by stream, and their blocks.

    Block numbers are kept modulo 2^31.
    """

    columns: dict[int, Array]
    oldest: int
    """A block that none of them is older than."""
    earliest: int
    """An event time that none of the tuples they began with is before."""

    def __len__(self) -> int:
        return len(self.columns[BLOCK])


@dataclass(slots=True)
class Visit:
    """One way onwards from a history: the lookup, what it leads to, and what it counted."""

    lookup: Lookup
    target: int
    after: Station
    counters: StepCounters = field(default_factory=StepCounters)


@dataclass(slots=True)
class Station:
    """A history: the streams that are done, those that are ready, and the ways there."""

    done: History
    streams: tuple[int, ...]
    ready: tuple[int, ...]
    visits: dict[int, Visit] = field(default_factory=dict)


class Frontiers:
    """For each block under way, where each window ended when the block was stored.

    >>> frontiers = Frontiers(2)
    >>> block = frontiers.add([10, 20])
    >>> frontiers.limits(np.array([block, block], np.int32), 1).tolist()
    [20, 20]
    """

    def __init__(self, streams: int, tuning: Tuning = USUAL) -> None:
        self._fewest = tuning.frontier_blocks
        self._table: Ids = np.zeros((self._fewest, streams), np.uint32)
        self._first = tuning.first_id
        self._begin = 0
        self.next = tuning.first_id
        """The number of the next block."""

    def add(self, ends: Sequence[int]) -> int:
        """The number of a new block, stored when the windows' next ids are `ends`."""
        row = self._row(self.next)
        if row == len(self._table):
            live = self._table[self._begin :]
            self._table = np.zeros((max(self._fewest, 2 * len(live)), live.shape[1]), np.uint32)
            self._table[: len(live)] = live
            self._begin, row = 0, len(live)
        self._table[row] = ends
        self.next += 1
        return self.next - 1

    def limits(self, blocks: Positions, stream: int) -> Ids:
        """For each tuple, the id of the first row of a window that is too new for it.

        `blocks` are the numbers modulo 2^31, all of them still remembered.
        """
        ahead = (blocks - np.int32(self._first & _BLOCK_MASK)) & np.int32(_BLOCK_MASK)
        found: Ids = self._table[ahead + self._begin, stream]
        return found

    def end(self, block: int, stream: int) -> int:
        """The id of the first row of a window that is too new for a block."""
        return int(self._table[self._row(block), stream])

    def begin(self, block: int) -> None:
        """Go on with this number; nothing is under way."""
        self._begin, self._first, self.next = 0, block, block

    def forget(self, before: int) -> None:
        """Forget the blocks before this one."""
        self._begin = self._row(before)
        self._first = before

    def _row(self, block: int) -> int:
        return block - self._first + self._begin


class RoutedEngine:
    """What Eddies and Teddies share: everything but the queues."""

    migrating = False
    memory_limit = None

    def __init__(
        self,
        query: Query,
        settings: Routed,
        *,
        hash_bits: int = 64,
        windows: Windows | None = None,
        tuning: Tuning = USUAL,
    ) -> None:
        self.query = query
        self.settings = settings
        size = len(query.streams)
        needed = visit_indexes(query, tuning if windows is None else windows.tuning)
        if windows is None:
            windows = Windows(query, needed, hash_bits=hash_bits, tuning=tuning)
        else:
            windows.index_by(needed)
        self.windows = windows
        self.bases = windows.bases
        self._complete = (1 << size) - 1
        self._neighbours = [sum(1 << j for j in query.graph.neighbours(i)) for i in range(size)]
        self._stations: dict[History, Station] = {}
        self._frontiers = Frontiers(size, windows.tuning)
        matrix = query.bounds.matrix
        self._slack = [min(matrix[i][k] for i in range(size)) for k in range(size)]
        self._inputs = [InputCounters() for _ in range(size)]
        self._outputs = 0
        self.decisions = 0
        self.policy: Policy = make_policy(settings.policy, settings.seed, self._ready)

    def to_state(self) -> Saved:
        """What it has beside its windows and settings, when no tuple is under way."""
        if self._waiting() is not None:
            raise NotSaved("tuples under way")
        return {
            "block": self._frontiers.next,
            "inputs": [counters.to_state() for counters in self._inputs],
            "outputs": self._outputs,
            "decisions": self.decisions,
            "policy": self.policy.to_state(),
            "visits": [
                [station.done, target, visit.counters.to_state()]
                for station in self._stations.values()
                for target, visit in station.visits.items()
            ],
        }

    def set_state(self, saved: Saved) -> None:
        """Go on from another router of these settings, on windows that are the same already."""
        self._frontiers.begin(int(saved["block"]))
        for counters, counted in zip(self._inputs, saved["inputs"], strict=True):
            counters.set_state(counted)
        self._outputs = int(saved["outputs"])
        self.decisions = int(saved["decisions"])
        self.policy.set_state(saved["policy"])
        for done, target, counted in saved["visits"]:
            self._visit(self._station(int(done)), int(target)).counters.set_state(counted)

    # -- what the engine holds and has counted

    @property
    def counters(self) -> list[OperatorCounters]:
        """One operator; the steps of an input are the visits of its window by every history."""
        for stream, counters in enumerate(self._inputs):
            counters.steps = [v.counters for v in self.visits() if v.target == stream]
        return [OperatorCounters(str(self.settings), self._inputs, self._outputs)]

    def visits(self) -> list[Visit]:
        """The ways that were taken so far, with their counters."""
        return [visit for station in self._stations.values() for visit in station.visits.values()]

    def sizes(self) -> list[StateSize]:
        """Rows and bytes of every window."""
        return self.windows.sizes()

    @property
    def nbytes(self) -> int:
        """Bytes allocated for windows and interned keys."""
        return self.windows.nbytes

    def schema(self, stream: int) -> pa.Schema:
        """The columns of the rows of a stream that `admit` sets aside."""
        return self.windows.schema(stream)

    def cutoff(self, stream: int, watermarks: Sequence[int]) -> int:
        """Tuples of a stream that are older than this can never join again."""
        return self.windows.cutoff(stream, self._held_back(watermarks))

    # -- a batch

    def admit(self, stream: int, rows: pa.RecordBatch, watermark: int) -> Admitted:
        """Sort out the rows of a stream: what to join, and what to set aside."""
        return self.windows.admit(stream, rows, watermark)

    def push(
        self, arrivals: Mapping[int, Arrivals], watermarks: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """Join one batch; yields results, and must be exhausted.

        `watermarks` are those after the batch: no later batch brings an older tuple.
        """
        for reached, part in self._cut(arrivals):
            for stream in sorted(part):
                self._take_in(stream, arrivals[stream], *part[stream])
                yield from self._run()
            self._expire([min(w, reached) for w in watermarks])
        yield from self._close_batch()
        self._expire(watermarks)
        self.windows.close_batch(watermarks)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Work off what is still waiting; yields results, and must be exhausted."""
        raise NotImplementedError

    def restore(self, arrivals: Mapping[int, Arrivals], watermarks: Sequence[int]) -> None:
        """Take in tuples whose results were found before: fill the windows, find nothing."""
        for stream, rows in arrivals.items():
            if len(rows):
                self._store(stream, rows, 0, len(rows))
        self._expire(watermarks)
        self.windows.close_batch(watermarks)

    # -- what the kinds of queues decide

    def _cut(self, arrivals: Mapping[int, Arrivals]) -> list[tuple[int, Slice]]:
        """The portions of a batch in which new tuples enter."""
        raise NotImplementedError

    def _take_in(self, stream: int, arrivals: Arrivals, start: int, stop: int) -> None:
        """Queue new tuples."""
        raise NotImplementedError

    def _run(self) -> Iterator[pa.RecordBatch]:
        """Route until only new tuples could keep the router busy."""
        raise NotImplementedError

    def _close_batch(self) -> Iterator[pa.RecordBatch]:
        """Work off what may not wait for the next batch."""
        yield from ()

    def _queue(self, station: Station, packet: Packet) -> Iterator[pa.RecordBatch]:
        """Queue what a visit found; may route some of it at once to make room."""
        raise NotImplementedError

    def _waiting(self) -> tuple[int, int] | None:
        """The oldest block and the earliest time of what is waiting, if anything is."""
        raise NotImplementedError

    # -- the mechanism

    def _store(self, stream: int, arrivals: Arrivals, start: int, stop: int) -> Packet:
        """Put tuples into their window, as one block that is ready to be routed."""
        ring = self.bases[stream].window.ring
        first = ring.next_id
        self.bases[stream].append(arrivals, start, stop)
        n = stop - start
        self._inputs[stream].arrivals += n
        self._inputs[stream].inserts += n
        block = self._frontiers.add([b.window.ring.next_id for b in self.bases])
        ids = ((first + np.arange(n, dtype=np.int64)) & ID_MASK).astype(np.uint32)
        blocks = np.full(n, block & _BLOCK_MASK, np.int32)
        return Packet({stream: ids, BLOCK: blocks}, block, int(arrivals.times[start]))

    def _route(self, station: Station, target: int, packet: Packet) -> Iterator[pa.RecordBatch]:
        """Have a packet visit a window; results are yielded, all else is queued."""
        visit = self._visit(station, target)
        self.decisions += 1
        counters = visit.counters
        before = counters.probes + counters.visited + counters.matches
        produced = -counters.matches
        blocks: Positions = packet.columns[BLOCK]
        tuples: Tuples = {
            s: positions_of(self.bases[s].window.ring.header, packet.columns[s])
            for s in station.streams
        }
        limits: Ids | None = None
        if self._frontiers.end(packet.oldest, target) != self.bases[target].window.ring.next_id:
            limits = self._frontiers.limits(blocks, target)
        after = visit.after
        if after.done != self._complete:
            tuples[BLOCK] = blocks
        for found in visit.lookup.matches(tuples, counters, limits):
            if after.done == self._complete:
                self._outputs += length(found)
                yield from self.windows.output.batches(found)
            else:
                columns: dict[int, Array] = {
                    s: found[s] if s == BLOCK
                    else ids_of(self.bases[s].window.ring.header, found[s])
                    for s in found
                }  # fmt: skip
                yield from self._queue(after, Packet(columns, packet.oldest, packet.earliest))
        produced += counters.matches
        work = counters.probes + counters.visited + counters.matches - before
        self.policy.observe(station.done, target, len(packet), produced, work)

    def _station(self, done: History) -> Station:
        if done not in self._stations:
            streams = tuple(s for s in range(len(self.bases)) if done >> s & 1)
            self._stations[done] = Station(done, streams, tuple(self._ready(done)))
        return self._stations[done]

    def _ready(self, done: History) -> list[int]:
        reach = 0
        for s, neighbours in enumerate(self._neighbours):
            if done >> s & 1:
                reach |= neighbours
        return [s for s in range(len(self.bases)) if reach & ~done & self._complete & 1 << s]

    def _visit(self, station: Station, target: int) -> Visit:
        visit = station.visits.get(target)
        if visit is None:
            gathered = frozenset(station.streams)
            needs = [frozenset(map(self.query.index, streams_of(r))) for r in self.query.residuals]
            both = gathered | {target}
            checked = [
                r
                for r, streams in enumerate(needs)
                if streams <= both and not streams <= gathered and streams != {target}
            ]
            classes = self.query.graph.shared(gathered, {target})
            base = self.bases[target]
            by = classes if classes in base.window.indexes else classes[:1]
            lookup = Lookup(self.windows, gathered, base, classes, checked, by)
            visit = Visit(lookup, target, self._station(station.done | 1 << target))
            station.visits[target] = visit
        return visit

    def _held_back(self, watermarks: Sequence[int]) -> list[int]:
        """The watermarks, as far as they leave alone what tuples under way need."""
        waiting = self._waiting()
        if waiting is None:
            return list(watermarks)
        slack = zip(watermarks, self._slack, strict=True)
        return [min(w, waiting[1] + min(0, least)) for w, least in slack]

    def _expire(self, watermarks: Sequence[int]) -> None:
        """Drop what neither tuples to come nor tuples under way can join."""
        waiting = self._waiting()
        self._frontiers.forget(waiting[0] if waiting else self._frontiers.next)
        watermarks = self._held_back(watermarks)
        for base, counters in zip(self.bases, self._inputs, strict=True):
            counters.deletes += base.expire(watermarks)


def visit_indexes(query: Query, tuning: Tuning = USUAL) -> dict[int, tuple[tuple[int, ...], ...]]:
    """For each stream, the key classes by which some history can look its window up.

    With many streams, or many combinations of classes, only single classes are indexed; the others
    are compared.

    >>> from plait.plan.examples import chain
    >>> visit_indexes(chain(3))
    {0: ((0,),), 1: ((0,), (1,)), 2: ((1,),)}
    """
    graph, size = query.graph, len(query.streams)
    found = {}
    for target in range(size):
        singles = [(k,) for k in graph.classes_of(target) if len(graph.classes[k].streams) > 1]
        wanted: set[tuple[int, ...]] = set()
        if size <= tuning.router_streams:
            others = [s for s in range(size) if s != target]
            for mask in range(1, 1 << len(others)):
                part = [s for b, s in enumerate(others) if mask >> b & 1]
                if graph.connected(part) and (classes := graph.shared(part, {target})):
                    wanted.add(classes)
        if not wanted or len(wanted) > tuning.router_indexes:
            wanted = set(singles)
        found[target] = tuple(sorted(wanted))
    return found


@dataclass(slots=True)
class _Fresh:
    """A new tuple that is not stored yet."""

    arrivals: Arrivals
    row: int


class EddyEngine(RoutedEngine):
    """Eddies: one queue, one tuple at a time, stored when it is looked up for the first time."""

    def __init__(
        self,
        query: Query,
        settings: Eddies,
        *,
        hash_bits: int = 64,
        windows: Windows | None = None,
        tuning: Tuning = USUAL,
    ) -> None:
        super().__init__(query, settings, hash_bits=hash_bits, windows=windows, tuning=tuning)
        self._intake = settings.intake
        self._tuples: deque[tuple[Station, Packet | _Fresh]] = deque()
        self.longest_queue = 0

    def to_state(self) -> Saved:
        """Also how long the queue has been."""
        return {**super().to_state(), "longest": self.longest_queue}

    def set_state(self, saved: Saved) -> None:
        """Go on from another engine of these settings."""
        super().set_state(saved)
        self.longest_queue = int(saved["longest"])

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Nothing waits after a batch."""
        yield from ()

    def _cut(self, arrivals: Mapping[int, Arrivals]) -> list[tuple[int, Slice]]:
        return cut_rows(arrivals, self._intake)

    def _take_in(self, stream: int, arrivals: Arrivals, start: int, stop: int) -> None:
        station = self._station(1 << stream)
        self._tuples.extend((station, _Fresh(arrivals, row)) for row in range(start, stop))

    def _run(self) -> Iterator[pa.RecordBatch]:
        while self._tuples:
            self.longest_queue = max(self.longest_queue, len(self._tuples))
            station, item = self._tuples.popleft()
            if isinstance(item, _Fresh):
                item = self._store(station.streams[0], item.arrivals, item.row, item.row + 1)
            choice = self.policy.choose(station.done, station.ready)
            yield from self._route(station, choice.target, item)

    def _queue(self, station: Station, packet: Packet) -> Iterator[pa.RecordBatch]:
        for i in range(len(packet)):
            columns = {s: column[i : i + 1] for s, column in packet.columns.items()}
            self._tuples.append((station, Packet(columns, packet.oldest, packet.earliest)))
        yield from ()

    def _waiting(self) -> tuple[int, int] | None:
        # Rows are dropped between two intakes only, when the queue is empty.
        assert not self._tuples
        return None
