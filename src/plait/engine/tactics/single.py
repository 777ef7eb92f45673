"""Route single tuples in compiled code: the decisions and lookups of Eddies.

*Correct output.* That of `plait.engine.tactics.routed` for packets of one tuple. New tuples are
worked off completely before the next rows are stored, so all that is stored is older than they are
or of their own block: no tuple is too new for another, and positions stay valid.

*Invariants.* The tables of the kernel hold addresses of columns. The arrays behind them are kept
here as long as the tables are, and before every call they are compared with those of the windows:
when one has been replaced, because a window grew or was indexed anew, all places are filled anew.
Stations and ways are described when a tuple first comes there.

*Decisions.* A policy that is a draw by tickets (`policies.Drawing`) is carried out inside the
kernel. Any other policy is asked for every tuple; then only the visit is compiled.

*Cost.* A few microseconds for a call, and per decision what the lookup costs. Conditions that a
lookup cannot check are not known here: queries that have some are routed by `routed.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_

import numpy as np

from plait.engine.states import Tuples
from plait.engine.tactics.policies import Drawing, History, RoutingPolicy
from plait.engine.tactics.routed import Station, Visit
from plait.engine.windows import Windows
from plait.kernels import single
from plait.kernels.hashing import make_secret
from plait.kernels.index import KEY, LATEST
from plait.kernels.jit import Array, Ints, Positions
from plait.kernels.window import Window

Place = tuple[Array, int, int]
"""A column: the array that holds it, the words of a row, and the word."""


class SingleTuples:
    """The queue and the tables of tuples that are routed one by one.

    `station` and `visit` are the router's: they describe where tuples can go, and count.
    """

    def __init__(
        self,
        windows: Windows,
        station: Callable[[History], Station],
        visit: Callable[[Station, int], Visit],
    ) -> None:
        size = len(windows.bases)
        self._windows = windows
        self._station, self._visit = station, visit
        self._secret = make_secret(windows.seed, windows.hash_bits)
        self._numbers: dict[History, int] = {}
        self._stations: list[Station] = []
        self._visits: list[Visit] = []
        self._arrays: list[Array] = []
        self._rings: Ints = np.zeros((size, 4), np.int64)
        self._ready: Ints = np.zeros((0, size + 1), np.int64)
        self._onward: Ints = np.zeros((0, size), np.int64)
        self._ways: Ints = np.zeros((0, single.WAY_WORDS), np.int64)
        self._places: Ints = np.zeros((0, single.PLACE_WORDS_EACH), np.int64)
        self._counts: Ints = np.zeros((0, 3), np.int64)
        self._queue: Positions = np.zeros((windows.tuning.eddy_queue, size + 1), np.int32)
        self._results: Positions = np.zeros((size, windows.tuning.portion_rows), np.int32)
        self._state: Ints = np.zeros(single.STATE_WORDS, np.int64)
        self._state[single.TARGET] = -1

    @property
    def waiting(self) -> bool:
        """Whether tuples are under way."""
        return bool(self._state[single.HEAD] < self._state[single.TAIL])

    @property
    def decisions(self) -> int:
        """All decisions so far."""
        return int(self._state[single.DECISIONS])

    @property
    def longest(self) -> int:
        """The longest that the queue has been."""
        return int(self._state[single.LONGEST])

    def run(self, stream: int, positions: Positions, policy: RoutingPolicy) -> Iterator[Tuples]:
        """Route new tuples of a stream until they are results or die."""
        self._line_up(stream, positions)
        self._look_at_windows()
        if isinstance(policy, Drawing):
            yield from self._draw(policy)
        else:
            yield from self._ask(policy)

    def _draw(self, policy: Drawing) -> Iterator[Tuples]:
        seed, tickets = policy.lend(len(self._rings))
        chance = np.array([seed], np.uint64)
        reason = single.FULL
        while reason != single.DONE:
            reason = self._route(chance, tickets, float(policy.memory), -1)
            yield from self._handle(reason)
        policy.take_back(tickets)

    def _ask(self, policy: RoutingPolicy) -> Iterator[Tuples]:
        chance, tickets = np.zeros(1, np.uint64), np.zeros(len(self._rings))
        state, streams = self._state, len(self._rings)
        while state[single.HEAD] < state[single.TAIL]:
            station = self._stations[self._queue[state[single.HEAD], streams]]
            target = policy.choose(station.done, station.ready).target
            reason = single.FULL
            while reason not in (single.DECIDED, single.DONE):
                reason = self._route(chance, tickets, 0.0, target)
                if reason != single.DECIDED:
                    yield from self._handle(reason)
            produced, work = int(state[single.PRODUCED]), int(state[single.WORK])
            policy.observe(station.done, target, 1, produced, work)
        yield from self._handle(self._route(chance, tickets, 0.0, -1))

    def _route(self, chance: Array, tickets: Array, memory: float, given: int) -> int:
        return single.route(
            self._rings,
            self._ready,
            self._onward,
            self._ways,
            self._places,
            self._secret,
            chance,
            tickets,
            memory,
            given,
            self._queue,
            self._results,
            self._counts,
            self._state,
        )

    def _handle(self, reason: int) -> Iterator[Tuples]:
        """Serve a return of the kernel; results are handed out when there is no more room
        for them, and in the end."""
        if reason == single.CROWDED:
            self._queue = _doubled(self._queue, len(self._queue) + 1)
        elif reason == single.UNKNOWN:
            station = self._queue[self._state[single.HEAD], len(self._rings)]
            self._describe(int(station), int(self._state[single.TARGET]))
        else:
            self._count()
            found = int(self._state[single.FOUND])
            if found:
                self._state[single.FOUND] = 0
                yield {s: column[:found].copy() for s, column in enumerate(self._results)}

    def _line_up(self, stream: int, positions: Positions) -> None:
        """Queue new tuples; nothing else waits."""
        n, usual = len(positions), self._windows.tuning.eddy_queue
        if len(self._queue) > max(n, usual):  # it has grown: give the room back
            self._queue = np.zeros((usual, len(self._rings) + 1), np.int32)
        self._queue = _doubled(self._queue, n)
        self._queue[:n, stream] = positions
        self._queue[:n, -1] = self._number(1 << stream)
        self._state[single.HEAD], self._state[single.TAIL] = 0, n

    def _count(self) -> None:
        """Pass on what was counted."""
        for way in np.flatnonzero(self._counts.any(axis=1)).tolist():
            counters = self._visits[way].counters
            probes, visited, matches = self._counts[way].tolist()
            counters.probes += probes
            counters.visited += visited
            counters.matches += matches
        self._counts[:] = 0

    # -- the tables

    def _number(self, done: History) -> int:
        """The number of a station; it is described if it is new."""
        if done not in self._numbers:
            number = self._numbers[done] = len(self._stations)
            station = self._station(done)
            self._stations.append(station)
            self._ready = _doubled(self._ready, number + 1)
            self._ready[number, 0] = len(station.ready)
            self._ready[number, 1 : len(station.ready) + 1] = station.ready
            self._onward = _doubled(self._onward, number + 1)
            self._onward[number] = -1
        return self._numbers[done]

    def _describe(self, number: int, target: int) -> None:
        """A way that is taken for the first time."""
        way = len(self._visits)
        visit = self._visit(self._stations[number], target)
        complete = visit.after.done == (1 << len(self._rings)) - 1
        after = -1 if complete else self._number(visit.after.done)
        self._visits.append(visit)
        self._ways = _doubled(self._ways, way + 1)
        self._counts = _doubled(self._counts, way + 1)
        self._counts[way] = 0
        before = self._ways[way - 1] if way else np.zeros(single.WAY_WORDS, np.int64)
        begins = before[single.WAY_PLACES : single.WAY_REACH + 1].sum()
        lookup = visit.lookup
        self._ways[way] = 0
        self._ways[way, single.WAY_TARGET] = target
        self._ways[way, single.WAY_AFTER] = after
        self._ways[way, single.WAY_PLACES] = begins
        self._ways[way, single.WAY_KEYS] = len(lookup.by)
        self._ways[way, single.WAY_CHECKS] = len(lookup.verified)
        self._ways[way, single.WAY_REACH] = len(lookup.reach)
        ends = int(begins) + len(lookup.by) + len(lookup.verified) + len(lookup.reach)
        self._places = _doubled(self._places, ends)
        self._onward[number, target] = way
        self._fill(way)

    def _look_at_windows(self) -> None:
        """Fill the places anew if an array was replaced; windows do not change during a run."""
        arrays: list[Array] = []
        for ring, base in zip(self._rings, self._windows.bases, strict=True):
            window = base.window
            ring[:] = window.ring.header
            arrays += window.ring.columns.values()
            arrays += [index.heads for index in window.indexes.values()]
        if len(arrays) != len(self._arrays) or not all(map(is_, arrays, self._arrays)):
            self._arrays = arrays
            for way in range(len(self._visits)):
                self._fill(way)

    def _fill(self, way: int) -> None:
        """Write the addresses of everything that a way reads."""
        bases, row = self._windows.bases, self._ways[way]
        lookup = self._visits[way].lookup
        window = lookup.target.window
        index = window.indexes[lookup.by]
        row[single.WAY_NODES] = window.ring.columns[index.nodes].ctypes.data
        row[single.WAY_HEADS] = index.heads.ctypes.data
        row[single.WAY_BUCKETS] = len(index.heads)
        place = int(row[single.WAY_PLACES])
        for k in lookup.by:
            source = lookup.key_sources[k]
            self._place(place, source, _codes(bases[source].window, k))
            place += 1
        for k, _ in lookup.verified:
            source = lookup.key_sources[k]
            self._place(place, source, _codes(bases[source].window, k))
            array, words, word = _codes(window, k)
            self._places[place, single.OTHER_ADDRESS :] = (array.ctypes.data, words, word)
            place += 1
        for source, back, ahead in lookup.reach:
            self._place(place, source, _times(bases[source].window))
            self._places[place, single.BACK], self._places[place, single.AHEAD] = back, ahead
            place += 1

    def _place(self, place: int, stream: int, column: Place) -> None:
        array, words, word = column
        self._places[place, : single.OTHER_ADDRESS] = (stream, array.ctypes.data, words, word)


def _codes(window: Window, key_class: int) -> Place:
    """Where the codes of a key class are: in the nodes of its index, or by themselves."""
    index = window.indexes.get((key_class,))
    if index is None:
        return window.ring.columns[f"code:{key_class}"], 1, 0
    nodes = window.ring.columns[index.nodes]
    return nodes, nodes.shape[1], KEY


def _times(window: Window) -> Place:
    """Find the array with the times of rows."""
    for index in window.indexes.values():
        nodes = window.ring.columns[index.nodes]
        return nodes, nodes.shape[1], LATEST
    return window.ring.columns["latest"], 1, 0


def _doubled(table: Array, rows: int) -> Array:
    """The table with room for so many rows."""
    if rows <= len(table):
        return table
    larger = np.zeros((max(rows, 2 * len(table)), *table.shape[1:]), table.dtype)
    larger[: len(table)] = table
    return larger
