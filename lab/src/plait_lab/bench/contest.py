"""Several systems over the same batches, in turn: processor time per batch and phase.

Others use the machine too, so what counts are ratios of runs that are made together: one after
the other in rounds, or batch by batch in turn. A ratio is that of two runs of the same round, and
the median of all rounds counts. One thread does the work, and its processor time is taken.

*Heats* are for all systems, once or twice; a system that takes far too long is stopped. Those that
come into question as the best of a phase then run again, in turn with the system that is looked
at: the *finals*. The *hindsight* of a final is the sum, over the phases, of the time of the plan
that was best in that phase; the medians of all finals say which one that was.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from plait.local.host import LocalRun
from plait.query.query import Query
from plait_lab.reporting.report import Note, spread

Batches = Sequence[Mapping[str, pa.Table]]
Maker = Callable[[], LocalRun]


@dataclass(frozen=True, slots=True)
class Course:
    """What all systems are given: a query and its batches, each of which is in a phase (0, 1, ...).

    A batch covers `seconds` of event time. At each batch in `starts` a run of its own begins: what
    follows is another partition of the rows.
    """

    query: Query
    batches: Batches
    phases: tuple[int, ...]
    seconds: float = 1.0
    starts: tuple[int, ...] = (0,)

    @property
    def rows(self) -> int:
        """The rows of all streams."""
        return sum(table.num_rows for batch in self.batches for table in batch.values())


@dataclass(frozen=True, slots=True)
class ContestMove:
    """A migration: the batches done before it began, and the plan it led to."""

    batch: int
    plan: str
    strategy: str
    pause: float


@dataclass(frozen=True, slots=True)
class ContestOutcome:
    """One run of one system."""

    seconds: tuple[float, ...]
    """Processor time of each batch; with it, what was decided and migrated around the batch."""
    phases: tuple[float, ...]
    """The same, summed up by phase; infinite for phases that it did not get through."""
    results: int
    bytes: tuple[int, ...]
    """What all states held after each batch."""
    plan: str
    """The plan at the end."""
    moves: tuple[ContestMove, ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    stopped: bool = False
    """Whether it was over its limit; then the last batches are missing."""

    @property
    def total(self) -> float:
        """All processor time."""
        return sum(self.seconds)


class _Lane:
    """One system on its way through the batches."""

    def __init__(self, course: Course, make: Maker) -> None:
        self._course, self._make = course, make
        self._runs = list[LocalRun]()
        self._seconds, self._sizes = list[float](), list[int]()
        self._phases = [0.0] * (max(course.phases) + 1)
        self.used = 0.0

    def step(self, number: int) -> None:
        """Take the next batch."""
        if number in self._course.starts:
            self._runs.append(self._make())
        run = self._runs[-1]
        began = time.process_time()
        for _ in run.stream(self._course.batches[number]):
            pass
        took = time.process_time() - began
        self._seconds.append(took)
        self._phases[self._course.phases[number]] += took
        self._sizes.append(run.engine.nbytes)
        self.used += took

    def outcome(self) -> ContestOutcome:
        """What became of it so far."""
        done, runs = len(self._seconds), self._runs
        unfinished = set(self._course.phases[done:])
        return ContestOutcome(
            tuple(self._seconds),
            tuple(math.inf if p in unfinished else s for p, s in enumerate(self._phases)),
            sum(run.counts.results for run in runs),
            tuple(self._sizes),
            ", ".join(str(run.plan) for run in runs),
            tuple(_moves(runs, self._course)),
            tuple(event.brief() for run in runs for event in run.events),
            stopped=bool(unfinished),
        )


def measure(course: Course, make: Maker, limit: float = math.inf) -> ContestOutcome:
    """Run a system over all batches, or until it has used `limit` seconds of processor time."""
    lane = _Lane(course, make)
    with _calm():
        for number in range(len(course.batches)):
            lane.step(number)
            if lane.used > limit:
                break
    return lane.outcome()


def measure_in_turn(course: Course, systems: Mapping[str, Maker]) -> dict[str, ContestOutcome]:
    """Run several systems at once: each batch goes to one after the other, each first in turn.

    Whatever else the machine does hits all of them alike.
    """
    lanes = {name: _Lane(course, make) for name, make in systems.items()}
    order = list(lanes.values())
    with _calm():
        for number in range(len(course.batches)):
            order = order[1:] + order[:1]
            for lane in order:
                lane.step(number)
    return {name: lane.outcome() for name, lane in lanes.items()}


@contextmanager
def _calm() -> Iterator[None]:
    """One thread, and no search for garbage among all that was there before.

    Such a search takes as long as hundreds of small batches, and whoever happens to be running
    when it is due would be charged for it.
    """
    pa.set_cpu_count(1)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _moves(runs: Sequence[LocalRun], course: Course) -> Iterator[ContestMove]:
    for run, start in zip(runs, course.starts, strict=False):
        for m in run.migrations:
            if m.start is not None and not m.refused:
                yield ContestMove(start + m.start, str(m.new), m.strategy, m.pause)


@dataclass(slots=True)
class Contest:
    """Systems by name, and every run of each so far."""

    course: Course
    systems: dict[str, Maker]
    note: Note = lambda _: None
    runs: dict[str, list[ContestOutcome]] = field(default_factory=dict)

    def warm_up(self, names: Iterable[str], batches: int = 10) -> None:
        """Compile what is not compiled yet, on a few batches."""
        course = Course(
            self.course.query, self.course.batches[:batches], self.course.phases[:batches]
        )
        for name in names:
            self.note(f"warming up: {name}")
            measure(course, self.systems[name])

    def round(self, names: Iterable[str], title: str, stop: float = math.inf) -> None:
        """Run systems one after the other; one that takes `stop` times the best so far is stopped.

        The limit is that of whole runs, so a plan that is bad in one phase only gets through.
        """
        for name in names:
            self.note(f"{title}: {name}")
            done = [o.total for runs in self.runs.values() for o in runs if not o.stopped]
            limit = stop * min(done) if done else math.inf
            found = measure(self.course, self.systems[name], limit)
            self.runs.setdefault(name, []).append(found)

    def in_turn(self, names: Iterable[str], title: str) -> None:
        """Run systems at once, batch by batch."""
        among = list(names)
        self.note(f"{title}: {', '.join(among)}")
        found = measure_in_turn(self.course, {name: self.systems[name] for name in among})
        for name, outcome in found.items():
            self.runs.setdefault(name, []).append(outcome)

    def totals(self, name: str) -> list[float]:
        """Seconds of every run."""
        return [run.total for run in self.runs[name]]

    def total(self, name: str) -> float:
        """The median of whole runs; infinite if one was stopped."""
        runs = self.runs[name]
        return math.inf if any(r.stopped for r in runs) else float(np.median(self.totals(name)))

    def by_phase(self, name: str) -> np.ndarray:
        """The median of each phase; infinite where a run was stopped before the phase was over."""
        return np.asarray(np.median([run.phases for run in self.runs[name]], axis=0))

    def forget(self, names: Iterable[str]) -> None:
        """Begin anew with some systems, for the finals."""
        for name in names:
            self.runs[name] = []

    def finalists(self, names: Iterable[str], phase_places: int = 2) -> list[str]:
        """Those that may turn out as the best of a phase, and as the best of all phases."""
        among = list(names)
        medians = {name: self.by_phase(name) for name in among}
        phases = range(len(next(iter(medians.values()))))
        found = {
            name: None
            for phase in phases
            for name in sorted(among, key=lambda n: float(medians[n][phase]))[:phase_places]
        }
        found[min(among, key=self.total)] = None
        return list(found)

    def hindsight(self, names: Sequence[str]) -> tuple[list[str], list[float]]:
        """The best system of each phase by the medians, and what they took together, per round."""
        medians = {name: self.by_phase(name) for name in names}
        phases = range(len(medians[names[0]]))
        best = [min(names, key=lambda n: float(medians[n][phase])) for phase in phases]
        rounds = range(min(len(self.runs[name]) for name in names))
        return best, [
            sum(self.runs[name][r].phases[phase] for phase, name in enumerate(best)) for r in rounds
        ]

    def figures(self, name: str) -> dict[str, Any]:
        """What a report says about a system: times, results, the most that its states held."""
        runs = self.runs[name]
        last = runs[-1]
        if last.stopped:
            return {"seconds": f"stopped after {len(last.seconds)} batches, {last.total:.3g} s"}
        found: dict[str, Any] = {"seconds": self.total(name)}
        phases = self.by_phase(name)
        if len(phases) > 1:
            found |= {f"phase {p + 1}": float(s) for p, s in enumerate(phases)}
        if len(runs) > 1:
            found["spread"] = spread(self.totals(name))
        return found | {"results": last.results, "peak_MB": max(last.bytes) / 1e6}
