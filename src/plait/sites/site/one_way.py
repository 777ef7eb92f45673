"""One-way joins at a site: tuples that came from elsewhere probe the windows that are kept here.

*Correct output.* For composite tuples of some streams and a *stamp* each, exactly the combinations
with one row of each probed window that satisfy keys, bounds and conditions and whose row was
stamped before: a row of stream k is before a head of stream i with stamp s if its own stamp is less
than s, or equal to s and k < i.

*Invariants.* Rows are stored in the order of their stamps, so "before" is one id per window and
stamp (`StampedWindow`). The composite tuples stand in windows of their own, *the staging*, one row
each and without an index, only while they are joined: so the lookups, conditions and outputs of
every other engine work on them.

*Cost.* One lookup per tuple and probed window, by hash index, or by the time index alone where no
key is shared (theta joins); and work in proportion to what is found. `compared` counts what nested
loops over the windows would compare, as the paper's cost model does; nobody executes them.

*Ties and time.* See `plait.sites.site.site`, which says what a stamp is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from plait.engine.counters import StepCounters
from plait.engine.output import ResultRows
from plait.engine.probe import Lookup
from plait.engine.states import BaseWindow, Tuples
from plait.engine.windows import Windows
from plait.kernels.jit import Ids, Ints
from plait.kernels.ring import HEAD_ID, ID_MASK, first_positions
from plait.plan.steps import decided
from plait.query.expr import Column
from plait.query.query import Output, Query
from plait.tuning import Tuning

STAMP = "stamp"
"""The column of composite tuples that has the stamps of their heads."""
_ALL = 2**62


def shipped_column(stream: int, name: str) -> str:
    """What a column of a stream is called in composite tuples."""
    return f"{stream}.{name}"


def keeping_all(query: Query) -> Query:
    """The same query with every column of its streams selected, so that windows keep all of them.

    >>> from plait.testing.examples import clique
    >>> [output.name for output in keeping_all(clique(2)).select]
    ['0.ts', '0.k', '1.ts', '1.k']
    """
    select = (
        Output(shipped_column(s, f.name), Column(stream.name, f.name))
        for s, stream in enumerate(query.streams)
        for f in stream.fields
    )
    return replace(query, select=tuple(select))


def index_of(query: Query, joined: frozenset[int], stream: int) -> tuple[int, ...]:
    """The key classes by which tuples over some streams look up a window; none for a theta join."""
    return query.graph.shared(joined, {stream})


class StampedWindow:
    """The window of a stream whose rows come in the order of their stamps."""

    def __init__(self, base: BaseWindow) -> None:
        self.base = base
        self._stamps: list[int] = []
        self._starts: list[int] = []
        self._total = 0
        """Rows stored so far; `_starts` count in them."""

    def __len__(self) -> int:
        return len(self.base)

    @property
    def last_stamp(self) -> int:
        """The last stamp that rows were stored with; -1 if there were none."""
        return self._stamps[-1] if self._stamps else -1

    def append(self, windows: Windows, stream: int, rows: pa.RecordBatch, stamp: int) -> None:
        """Store rows with a stamp that is later than all before."""
        assert not self._stamps or self._stamps[-1] < stamp, "rows come in the order of stamps"
        arrivals = windows.encoded(stream, rows)
        self.base.append(arrivals, 0, len(arrivals))
        self._stamps.append(stamp)
        self._starts.append(self._total)
        self._total += len(arrivals)

    def drop_before(self, cutoff: int) -> None:
        """Drop the first rows, as long as they are older than this in event time."""
        if self.base.drop_before(cutoff):
            gone = bisect_right(self._starts, self._total - len(self.base)) - 1
            del self._stamps[: max(gone, 0)], self._starts[: max(gone, 0)]

    def clear(self) -> None:
        """Drop everything; rows with earlier stamps may come then."""
        self.base.drop_before(_ALL)
        self._stamps, self._starts, self._total = [], [], 0

    def content(self, names: Sequence[str]) -> Iterator[tuple[int, list[pa.Array]]]:
        """The live rows of each stamp, in order: the columns of these names."""
        header, gone = self.base.window.ring.header, self._total - len(self.base)
        ends = [*self._starts, self._total][1:]
        for stamp, start, end in zip(self._stamps, self._starts, ends, strict=True):
            first, size = max(start, gone) - gone, end - max(start, gone)
            if size > 0:
                positions = first_positions(header, first, size)
                yield stamp, [self.base.gather(name, positions) for name in names]

    def rows_up_to(self, stamps: Ints) -> Ints:
        """For each stamp, how many of the live rows have that stamp or an earlier one."""
        ends = np.array([*self._starts, self._total], np.int64)
        known = np.array(self._stamps, np.int64)
        first = self._total - len(self.base)
        found: Ints = ends[np.searchsorted(known, stamps, side="right")] - first
        return np.maximum(found, 0)

    def limits(self, counts: Ints) -> Ids:
        """The ids of the rows behind the first `counts` live rows."""
        first = int(self.base.window.ring.header[HEAD_ID])
        found: Ids = ((counts + first) & ID_MASK).astype(np.uint32)
        return found


@dataclass
class _Mixed:
    """Windows to look up, of which some are staging."""

    query: Query
    tuning: Tuning
    bases: list[BaseWindow]
    output: ResultRows


@dataclass(slots=True)
class JoinStep:
    """The probe of one window, and what it has counted."""

    stream: int
    lookup: Lookup
    window: StampedWindow
    counters: StepCounters = field(default_factory=StepCounters)
    compared: int = 0
    """Pairs that nested loops would have looked at."""


class OneWayJoins:
    """Joins composite tuples over `joined`, the head first, with the windows of `streams`.

    `results` is the query whose selected columns come out; without it, composite tuples do.
    """

    def __init__(
        self,
        windows: Windows,
        kept: Mapping[int, StampedWindow],
        joined: Sequence[int],
        streams: Sequence[int],
        results: Query | None,
    ) -> None:
        query = windows.query
        self._windows = windows
        self._query = query
        self.head = joined[0]
        self._joined = tuple(joined)
        tuning = windows.tuning
        bases = [
            BaseWindow(query, s, (), windows.hash_bits, tuning=tuning, seed=windows.seed)
            if s in joined
            else windows.bases[s]
            for s in range(len(query.streams))
        ]
        mixed = _Mixed(query, tuning, bases, ResultRows(query, bases))
        self._bases = bases
        self.steps: list[JoinStep] = []
        gathered = frozenset(joined)
        for stream in streams:
            classes = index_of(query, gathered, stream)
            windows.index_by({stream: [classes]})
            checked = decided(query, gathered, frozenset({stream}))
            lookup = Lookup(mixed, gathered, bases[stream], classes, checked)
            self.steps.append(JoinStep(stream, lookup, kept[stream]))
            gathered |= {stream}
        shown = results
        if shown is None:
            columns = {shipped_column(s, f.name) for s in gathered for f in query.streams[s].fields}
            shown = replace(query, select=tuple(o for o in query.select if o.name in columns))
        self._output = ResultRows(shown, bases)
        self._composite = results is None

    def joined_with(self, tuples: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What some composite tuples find; must be exhausted."""
        stamps: Ints = np.asarray(tuples.column(STAMP).to_numpy(), np.int64)
        staged: Tuples = {}
        for s in self._joined:
            names = [f.name for f in self._query.streams[s].fields]
            arrays = [tuples.column(shipped_column(s, name)) for name in names]
            part = pa.RecordBatch.from_arrays(arrays, names=names)
            arrivals = self._windows.encoded(s, part)
            staged[s] = self._bases[s].append(arrivals, 0, len(arrivals))
        head = self._bases[self.head].window.ring
        where = np.zeros(head.capacity, np.int64)
        where[staged[self.head]] = np.arange(len(stamps))
        limits, counts = [], []
        for step in self.steps:
            before = stamps if step.stream < self.head else stamps - 1
            counts.append(step.window.rows_up_to(before))
            limits.append(step.window.limits(counts[-1]))
        for found in self._climb(staged, 0, where, limits, counts):
            stamped, first = stamps[where[found[self.head]]], 0
            for rows in self._output.batches(found):
                here = stamped[first : first + rows.num_rows]
                first += rows.num_rows
                yield rows.append_column(STAMP, pa.array(here)) if self._composite else rows
        for s in self._joined:
            self._bases[s].drop_before(_ALL)

    def _climb(
        self,
        tuples: Tuples,
        depth: int,
        where: Ints,
        limits: Sequence[Ids],
        counts: Sequence[Ints],
    ) -> Iterator[Tuples]:
        if depth == len(self.steps):
            yield tuples
            return
        step, rows = self.steps[depth], where[tuples[self.head]]
        step.compared += int(counts[depth][rows].sum())
        for found in step.lookup.matches(tuples, step.counters, limits[depth][rows]):
            yield from self._climb(found, depth + 1, where, limits, counts)


def composite(stream: int, rows: pa.RecordBatch, stamp: int) -> pa.RecordBatch:
    """The rows of a stream as composite tuples, heads with a stamp.

    >>> composite(1, pa.record_batch({"k": [7]}), 3).to_pydict()
    {'1.k': [7], 'stamp': [3]}
    """
    names = [shipped_column(stream, name) for name in rows.schema.names]
    stamps = pa.array(np.full(rows.num_rows, stamp, np.int64))
    return pa.RecordBatch.from_arrays([*rows.columns, stamps], names=[*names, STAMP])
