"""A tactic under supervision: every clause of `plait.engine.tactic` is asserted.

`Engine.supervise = Checked` puts it around the tactic of every engine made from then on. What is
broken ends in `ContractBroken`, which names the clause.

*Cost.* About that of sorting everything that is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from plait.engine.counters import OperatorCounters
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import Slice
from plait.engine.states import CombinedState, Tuples
from plait.engine.tactic import Tactic
from plait.engine.tactics.operators import Operator
from plait.engine.windows import Windows
from plait.kernels.jit import Positions
from plait.kernels.memory import Saved
from plait.kernels.ring import CAPACITY, COUNT, HEAD_POSITION, ids_of
from plait.plan.migration import Migration
from plait.plan.routed import Plan

_ODD = np.uint64(0x9E3779B97F4A7C15)


class ContractBroken(AssertionError):
    """A tactic did what its contract forbids."""


def _must(holds: object, clause: str, what: str) -> None:
    if not holds:
        raise ContractBroken(f"{clause}: {what}")


class Checked:
    """A tactic that is watched."""

    def __init__(self, tactic: Tactic, windows: Windows) -> None:
        self._tactic = tactic
        self._windows = windows
        self._found: list[npt.NDArray[np.uint64]] = []
        """What was found in this batch, a hash for each combination."""

    # -- a batch

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        """Clause 1."""
        slices = self._tactic.cut(arrivals)
        done = {s: 0 for s, rows in arrivals.items() if len(rows)}
        reached = None
        for until, part in slices:
            for stream, (start, stop) in part.items():
                _must(start == done.get(stream), "slices", f"row {start} of stream {stream}")
                _must(start < stop, "slices", f"no row of stream {stream}")
                first = int(arrivals[stream].times[start])
                _must(reached is None or first >= reached, "slices", f"a row of {first} is late")
                done[stream] = stop
            reached = until
        _must(
            all(stop == len(arrivals[s]) for s, stop in done.items()), "slices", "rows are missing"
        )
        return slices

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        """Clauses 2 to 5."""
        return self._watched(self._tactic.probe(stream, positions), positions, stream)

    def fill(self, stream: int, positions: Positions) -> None:
        """Clauses 4 and 5."""
        before, waited = self._windows_now(), self._tactic.waiting
        self._tactic.fill(stream, positions)
        _must(waited or not self._tactic.waiting, "once", "a tuple that was filled in waits")
        self._check_windows(before)

    def expire(self, watermarks: Sequence[int]) -> None:
        """Clauses 5 and 7."""
        before = self._windows_now()
        self._tactic.expire(watermarks)
        self._check_windows(before)
        if not self._windows.purging.trees_only:
            for state in self._tactic.combined:
                left = state.expired(watermarks)
                _must(not left, "expiry", f"{left} combinations of {sorted(state.streams)}")

    def cutoffs(self, watermarks: Sequence[int]) -> Sequence[int]:
        """Clauses 5 and 6."""
        before = self._windows_now()
        found = self._tactic.cutoffs(watermarks)
        self._check_windows(before)
        for base, cutoff in zip(self._windows.bases, found, strict=True):
            allowed = base.cutoff(watermarks)
            _must(cutoff <= allowed, "cutoffs", f"{cutoff} for {sorted(base.streams)}")
        return found

    def dropped(self, stream: int, rows: int) -> None:
        """Tell the tactic."""
        self._tactic.dropped(stream, rows)

    def close_batch(self) -> Iterator[Tuples]:
        """Clauses 2 to 5."""
        yield from self._watched(self._tactic.close_batch())
        found, self._found = self._found, []
        if found:
            hashes = np.sort(np.concatenate(found))
            again = int((hashes[1:] == hashes[:-1]).sum())
            _must(not again, "once", f"{again} combinations of a batch were found before")

    def finish(self) -> Iterator[Tuples]:
        """Clauses 2 to 5."""
        yield from self._watched(self._tactic.finish())
        _must(not self._tactic.waiting, "waiting", "tuples wait after the end")

    def successor(self) -> Tactic | None:
        """Who goes on."""
        return self._tactic.successor()

    def _watched(
        self,
        found: Iterator[Tuples],
        positions: Positions | None = None,
        stream: int | None = None,
    ) -> Iterator[Tuples]:
        """What a tactic finds, as it finds it."""
        before, waited = self._windows_now(), self._tactic.waiting
        for tuples in found:
            _must(sorted(tuples) == list(range(len(self._windows.bases))), "complete", "streams")
            _must(len({len(p) for p in tuples.values()}) == 1, "complete", "uneven columns")
            _must(len(next(iter(tuples.values()))), "complete", "nothing")
            _must(self._live(tuples), "complete", "a tuple that is not there")
            if stream is not None and positions is not None:
                own = self._among_last(stream, tuples[stream], len(positions))
                waits = waited or self._tactic.waiting
                _must(own or waits, "waiting", "a result without a new tuple")
            else:
                _must(waited, "waiting", "results, though nothing waits")
            self._note(tuples)
            yield tuples
        self._check_windows(before)

    def _live(self, tuples: Tuples) -> bool:
        return all(
            self._among_last(s, rows, len(self._windows.bases[s])) for s, rows in tuples.items()
        )

    def _among_last(self, stream: int, positions: Positions, n: int) -> bool:
        """Whether these are positions of the last `n` rows of a window."""
        header = self._windows.bases[stream].window.ring.header
        capacity = int(header[CAPACITY])
        end = int(header[HEAD_POSITION] + header[COUNT])
        begin = end - n
        if begin >= capacity:
            begin, end = begin - capacity, end - capacity
        lowest, highest = int(positions.min()), int(positions.max())
        if end <= capacity:
            return begin <= lowest and highest < end
        outside = (positions >= end - capacity) & (positions < begin)
        return lowest >= 0 and highest < capacity and not outside.any()

    def _note(self, tuples: Tuples) -> None:
        hashes = np.zeros(len(tuples[0]), np.uint64)
        for stream, base in enumerate(self._windows.bases):
            hashes *= _ODD
            hashes += ids_of(base.window.ring.header, tuples[stream])
        self._found.append(hashes)

    def _windows_now(self) -> list[tuple[object, ...]]:
        return [
            (base.window.ring.next_id, len(base), frozenset(base.window.indexes))
            for base in self._windows.bases
        ]

    def _check_windows(self, before: list[tuple[object, ...]]) -> None:
        _must(self._windows_now() == before, "windows", "a base window has changed")

    # -- what it holds and has counted

    @property
    def plan(self) -> Plan:
        """The tactic's."""
        return self._tactic.plan

    @property
    def waiting(self) -> bool:
        """The tactic's."""
        return self._tactic.waiting

    @property
    def migration(self) -> Migration | None:
        """The tactic's."""
        return self._tactic.migration

    @property
    def operators(self) -> Sequence[Operator]:
        """The tactic's."""
        return self._tactic.operators

    @property
    def combined(self) -> Sequence[CombinedState]:
        """The tactic's."""
        return self._tactic.combined

    @property
    def counters(self) -> list[OperatorCounters]:
        """The tactic's."""
        return self._tactic.counters

    @property
    def nbytes(self) -> int:
        """The tactic's."""
        return self._tactic.nbytes

    def to_state(self) -> Saved:
        """The tactic's."""
        return self._tactic.to_state()

    def set_state(self, saved: Saved) -> None:
        """The tactic's."""
        self._tactic.set_state(saved)
