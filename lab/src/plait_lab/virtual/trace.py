"""What a run in virtual time went through, as series over that time.

A slice is what was worked off at one go. Its results are taken to come evenly while it was worked
on; state sizes and queues are those at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Slice:
    """The tuples of a stretch of event time, from `begin` to `end` of virtual time."""

    begin: float
    end: float
    reached: float
    """The event time up to which all streams have been worked off."""
    rows: int
    results: int
    base: int
    """Tuples in the states of streams."""
    intermediate: int
    """Tuples in the states of combinations."""
    queued: int
    """Tuples that had arrived and waited at the end."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a migration: `clean`, `move`, or `parallel`."""

    name: str
    start: float
    end: float

    @property
    def length(self) -> float:
        """In seconds."""
        return self.end - self.start


@dataclass(slots=True)
class Trace:
    """All slices in order, and the stages of the migrations.

    >>> first, second = Slice(0.0, 1.0, 1.0, 9, 4, 9, 0, 0), Slice(1.5, 2.0, 2.0, 9, 6, 9, 0, 2)
    >>> trace = Trace([first, second])
    >>> trace.results_by([0.5, 1.25, 2.0]).tolist()
    [2.0, 4.0, 10.0]
    >>> trace.rate([0.0, 1.0, 2.0]).tolist(), trace.queued([0.5, 1.9, 2.0]).tolist()
    ([4.0, 6.0], [0.0, 0.0, 2.0])
    >>> trace.busy([0.0, 1.0, 2.0]).tolist()
    [1.0, 0.5]
    """

    slices: list[Slice] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)

    @property
    def end(self) -> float:
        """When the last slice, or the last stage, was done."""
        ends = [s.end for s in self.slices[-1:]] + [s.end for s in self.stages[-1:]]
        return max(ends, default=0.0)

    @property
    def results(self) -> int:
        """All results."""
        return sum(s.results for s in self.slices)

    def stage(self, name: str) -> Stage | None:
        """The last stage of a name."""
        return next((s for s in reversed(self.stages) if s.name == name), None)

    @property
    def migration(self) -> Stage | None:
        """All stages together, if there were any: from the start of the first to the last end."""
        if not self.stages:
            return None
        return Stage("migration", self.stages[0].start, self.stages[-1].end)

    def results_by(self, times: Sequence[float] | Floats) -> Floats:
        """How many results there were up to each time."""
        return self._progress(times, [s.results for s in self.slices])

    def rate(self, edges: Sequence[float] | Floats) -> Floats:
        """Results per second between each two of these times."""
        return np.diff(self.results_by(edges)) / np.diff(np.asarray(edges, np.float64))

    def busy(self, edges: Sequence[float] | Floats) -> Floats:
        """The share of the time between each two of these times in which the machine worked.

        Moving a state is work too.
        """
        spans = [(s.begin, s.end) for s in self.slices]
        spans += [(s.start, s.end) for s in self.stages if s.name == "move"]
        spans.sort()
        worked = self._along(times=edges, spans=spans, amounts=[e - b for b, e in spans])
        return np.diff(worked) / np.diff(np.asarray(edges, np.float64))

    def intermediate(self, times: Sequence[float] | Floats) -> Floats:
        """Tuples in states of combinations at each time."""
        return self._at(times, [s.intermediate for s in self.slices])

    def base(self, times: Sequence[float] | Floats) -> Floats:
        """Tuples in states of streams at each time."""
        return self._at(times, [s.base for s in self.slices])

    def queued(self, times: Sequence[float] | Floats) -> Floats:
        """Tuples in the input queues at each time."""
        return self._at(times, [s.queued for s in self.slices])

    def longest_silence(self, start: float, end: float) -> float:
        """The longest time without a result between two times."""
        fruitful = [(s.begin, s.end) for s in self.slices if s.results and s.end > start]
        edges = [start]
        gaps = []
        for begin, until in fruitful:
            if begin >= end:
                break
            gaps.append(begin - edges[-1])
            edges.append(until)
        return max([*gaps, end - edges[-1], 0.0])

    def _progress(self, times: Sequence[float] | Floats, amounts: Sequence[float]) -> Floats:
        return self._along(times, [(s.begin, s.end) for s in self.slices], amounts)

    @staticmethod
    def _along(
        times: Sequence[float] | Floats,
        spans: Sequence[tuple[float, float]],
        amounts: Sequence[float],
    ) -> Floats:
        """The sum up to each time of amounts that come evenly within spans that do not overlap."""
        asked = np.asarray(times, np.float64)
        if not spans:
            return np.zeros(len(asked))
        edges = np.asarray(spans, np.float64).ravel()
        given = np.column_stack([np.zeros(len(amounts)), np.asarray(amounts, np.float64)]).ravel()
        found: Floats = np.interp(asked, edges, np.cumsum(given), left=0.0)
        return found

    def _at(self, times: Sequence[float] | Floats, values: Sequence[float]) -> Floats:
        if not self.slices:
            return np.zeros(len(times))
        ends = np.array([s.end for s in self.slices])
        places = np.searchsorted(ends, np.asarray(times, np.float64), side="right")
        known: Floats = np.concatenate([[0.0], np.asarray(values, np.float64)])
        return known[places]
