"""Run a query without a plan: route tuples from window to window until they are complete.

The windows of the streams are the SteMs: the same windows and indexes that a tree of joins has.
A tuple under way has a *history*, the streams it has gathered (its DONE bits), from which follows
where it can go next (READY): to any other stream that shares a key with what is gathered. A policy
chooses one; the tuple is looked up there, and what it finds has a longer history. This module has
all of that but the queues. `plait.engine.tactics.eddy` routes one tuple at a time from one queue,
`plait.engine.tactics.teddy` routes packets.

*Correct output.* As for a tree of joins: over all batches, every combination of one tuple per
stream that satisfies the query, exactly once, whatever the policy chooses.

*Invariants.* Tuples of one stream that are stored together are a *block*; blocks are numbered in
the order in which they are stored. A tuple is stored (by the driver) before it, or anything it
became part of, is looked up (the insert/probe invariant). A tuple under way carries the number of
the block it began with, and finds only rows that were stored before that block. Blocks have one
stream each, so the tuples of a result have different blocks, and the result is found on the way
that began with the newest of them, and on no other: from there all others are older, whatever
order they are visited in; from anywhere else the newest one is too new. Rows are stored in the
order of their ids, so «before block b» is one id per window, remembered for each block under way
(`Frontiers`).

*Cost.* As for an mjoin, for each tuple and visit one lookup and work in proportion to what is
found; and for each packet a routing decision.

*Ties and time.* Event time plays no part in who meets whom, so rows may come in any order. But
nothing may be dropped that a tuple under way still needs. Let T be the earliest event time of the
tuples with which those under way began: a row they can still find, or already hold, is within the
bounds of such a tuple, so it outlives watermarks of T; and so does the tuple itself if each
watermark also stays within its reach, T + D[i][k] for every other stream i.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from plait.engine.counters import InputCounters, OperatorCounters, StepCounters
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import Slice
from plait.engine.probe import Lookup, length
from plait.engine.states import CombinedState, Tuples
from plait.engine.tactic import Tactic
from plait.engine.tactics.operators import Operator
from plait.engine.tactics.policies import History, RoutingPolicy, make_policy
from plait.engine.windows import Windows
from plait.kernels.jit import Array, Ids, Positions
from plait.kernels.memory import NotSaved, Saved
from plait.kernels.ring import ids_of, positions_of
from plait.plan.migration import Migration
from plait.plan.routed import Routed
from plait.plan.steps import decided
from plait.query.query import Query
from plait.tuning import USUAL, Tuning

BLOCK = -1
"""Where a packet keeps the block numbers of its tuples, beside the streams."""

_BLOCK_MASK = 0x7FFF_FFFF


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Counts of a metaqueue: how full it was at its turns, and how long its tuples waited."""

    streams: tuple[str, ...]
    packets: int
    tuples: int
    occupancy: float
    """The mean number of tuples at its turns."""
    most: int
    """The largest number of tuples at a turn."""
    threshold: int
    mean_rounds: float
    longest_rounds: int
    mean_seconds: float
    longest_seconds: float


@dataclass(slots=True)
class TuplePacket:
    """Tuples with the same history: the ids of their parts by stream, and their blocks.

    Block numbers are kept modulo 2^31.
    """

    columns: dict[int, Array]
    oldest: int
    """The block of the oldest tuple, or an earlier one."""
    earliest: int
    """The earliest event time of their first tuples, or an earlier one."""

    def __len__(self) -> int:
        return len(self.columns[BLOCK])


@dataclass(slots=True)
class Visit:
    """One way onwards from a history: its lookup, target and counters."""

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
        """Number a new block, stored when the windows' next ids are `ends`."""
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


class RoutedTactic:
    """Everything that Eddies and Teddies share; only their queues differ."""

    migration: Migration | None = None
    operators: Sequence[Operator] = ()
    combined: Sequence[CombinedState] = ()
    nbytes = 0

    def __init__(self, windows: Windows, plan: Routed) -> None:
        self.windows = windows
        self.plan = plan
        query = windows.query
        size = len(query.streams)
        windows.index_by(visit_indexes(query, windows.tuning))
        self._query = query
        self._bases = windows.bases
        self._complete = (1 << size) - 1
        self._neighbours = [sum(1 << j for j in query.graph.neighbours(i)) for i in range(size)]
        self._stations: dict[History, Station] = {}
        self._frontiers = Frontiers(size, windows.tuning)
        matrix = query.bounds.matrix
        self._slack = [min(matrix[i][k] for i in range(size)) for k in range(size)]
        self._inputs = [InputCounters() for _ in range(size)]
        self._outputs = 0
        self.decisions = 0
        self.policy: RoutingPolicy = make_policy(plan.policy, plan.seed, self._ready)

    def to_state(self) -> Saved:
        """What it has beside its windows and its plan, when no tuple is under way."""
        if self.waiting:
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
        """Go on from another router of this plan, on windows that are the same already."""
        self._frontiers.begin(int(saved["block"]))
        for counters, counted in zip(self._inputs, saved["inputs"], strict=True):
            counters.set_state(counted)
        self._outputs = int(saved["outputs"])
        self.decisions = int(saved["decisions"])
        self.policy.set_state(saved["policy"])
        for done, target, counted in saved["visits"]:
            self._visit(self._station(int(done)), int(target)).counters.set_state(counted)

    # -- what it holds and has counted

    @property
    def counters(self) -> list[OperatorCounters]:
        """One operator; the steps of an input are the visits of its window by every history."""
        for stream, counters in enumerate(self._inputs):
            counters.steps = [v.counters for v in self.visits() if v.target == stream]
        return [OperatorCounters(str(self.plan), self._inputs, self._outputs)]

    def visits(self) -> list[Visit]:
        """The ways that were taken so far, with their counters."""
        return [visit for station in self._stations.values() for visit in station.visits.values()]

    @property
    def waiting(self) -> bool:
        """Whether tuples are under way."""
        return self._waiting() is not None

    def metaqueues(self) -> list[QueueCounts]:
        """What every metaqueue did so far, short histories first."""
        return []

    # -- a batch

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        """The portions of a batch in which new tuples enter."""
        raise NotImplementedError

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        """Queue new tuples, and route until only new ones could keep the router busy."""
        self._take_in(self._station(1 << stream), self._block(stream, positions))
        return self._run()

    def fill(self, stream: int, positions: Positions) -> None:
        """Count the tuples; they are in their window, and nothing else keeps them."""
        self._block(stream, positions)

    def expire(self, watermarks: Sequence[int]) -> None:
        """Forget the blocks that no tuple under way began with."""
        waiting = self._waiting()
        self._frontiers.forget(waiting[0] if waiting else self._frontiers.next)

    def cutoffs(self, watermarks: Sequence[int]) -> list[int]:
        """Compute cutoffs from the watermarks, keeping rows that tuples under way need."""
        waiting = self._waiting()
        if waiting is not None:
            slack = zip(watermarks, self._slack, strict=True)
            watermarks = [min(w, waiting[1] + min(0, least)) for w, least in slack]
        return [base.cutoff(watermarks) for base in self._bases]

    def dropped(self, stream: int, rows: int) -> None:
        """Count the rows that left a window."""
        self._inputs[stream].deletes += rows

    def close_batch(self) -> Iterator[Tuples]:
        """Process the tuples that may not wait for the next batch."""
        yield from ()

    def finish(self) -> Iterator[Tuples]:
        """Process all waiting tuples."""
        yield from ()

    def successor(self) -> Tactic | None:
        """It goes on."""
        return None

    # -- what the kinds of queues decide

    def _take_in(self, station: Station, block: TuplePacket) -> None:
        """Queue new tuples."""
        raise NotImplementedError

    def _run(self) -> Iterator[Tuples]:
        """Route until only new tuples could keep the router busy."""
        raise NotImplementedError

    def _queue(self, station: Station, packet: TuplePacket) -> Iterator[Tuples]:
        """Queue the matches of a visit; may route some of them at once to make room."""
        raise NotImplementedError

    def _waiting(self) -> tuple[int, int] | None:
        """The oldest block and the earliest time of what is waiting, if anything is."""
        raise NotImplementedError

    # -- the mechanism

    def _block(self, stream: int, positions: Positions) -> TuplePacket:
        """Tuples that were just stored, as one block that is ready to be routed."""
        window = self._bases[stream].window
        n = len(positions)
        self._inputs[stream].arrivals += n
        self._inputs[stream].inserts += n
        block = self._frontiers.add([b.window.ring.next_id for b in self._bases])
        ids = ids_of(window.ring.header, positions)
        blocks = np.full(n, block & _BLOCK_MASK, np.int32)
        return TuplePacket({stream: ids, BLOCK: blocks}, block, int(window.latest[positions[0]]))

    def _route(self, station: Station, target: int, packet: TuplePacket) -> Iterator[Tuples]:
        """Let a packet visit a window; yield results and queue the rest."""
        visit = self._visit(station, target)
        self.decisions += 1
        counters = visit.counters
        before = counters.probes + counters.visited + counters.matches
        produced = -counters.matches
        blocks: Positions = packet.columns[BLOCK]
        tuples: Tuples = {
            s: positions_of(self._bases[s].window.ring.header, packet.columns[s])
            for s in station.streams
        }
        limits: Ids | None = None
        if self._frontiers.end(packet.oldest, target) != self._bases[target].window.ring.next_id:
            limits = self._frontiers.limits(blocks, target)
        after = visit.after
        if after.done != self._complete:
            tuples[BLOCK] = blocks
        for found in visit.lookup.matches(tuples, counters, limits):
            if after.done == self._complete:
                self._outputs += length(found)
                yield found
            else:
                columns: dict[int, Array] = {
                    s: found[s] if s == BLOCK
                    else ids_of(self._bases[s].window.ring.header, found[s])
                    for s in found
                }  # fmt: skip
                yield from self._queue(after, TuplePacket(columns, packet.oldest, packet.earliest))
        produced += counters.matches
        work = counters.probes + counters.visited + counters.matches - before
        self.policy.observe(station.done, target, len(packet), produced, work)

    def _station(self, done: History) -> Station:
        if done not in self._stations:
            streams = tuple(s for s in range(len(self._bases)) if done >> s & 1)
            self._stations[done] = Station(done, streams, tuple(self._ready(done)))
        return self._stations[done]

    def _ready(self, done: History) -> list[int]:
        reach = 0
        for s, neighbours in enumerate(self._neighbours):
            if done >> s & 1:
                reach |= neighbours
        return [s for s in range(len(self._bases)) if reach & ~done & self._complete & 1 << s]

    def _visit(self, station: Station, target: int) -> Visit:
        visit = station.visits.get(target)
        if visit is None:
            gathered = frozenset(station.streams)
            checked = decided(self._query, gathered, frozenset({target}))
            classes = self._query.graph.shared(gathered, {target})
            base = self._bases[target]
            by = classes if classes in base.window.indexes else classes[:1]
            lookup = Lookup(self.windows, gathered, base, classes, checked, by)
            visit = Visit(lookup, target, self._station(station.done | 1 << target))
            station.visits[target] = visit
        return visit


def visit_indexes(query: Query, tuning: Tuning = USUAL) -> dict[int, tuple[tuple[int, ...], ...]]:
    """List for each stream the key classes by which some history can look its window up.

    With many streams, or many combinations of classes, only single classes are indexed; the others
    are compared.

    >>> from plait.testing.examples import chain
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
