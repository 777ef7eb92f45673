"""Which strategy, where the caller leaves it open: a decision from values.

`situation` looks at the engine and estimates; a chooser decides from that alone, so another one,
with other knowledge of costs, can take its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plait.engine.counters import OperatorCounters, StepCounters
from plait.engine.migrate.moving_state import all_tuples, matches
from plait.engine.probe import chosen_tuples, length
from plait.engine.states import CombinedState, State, Tuples
from plait.engine.tree import TreeEngine
from plait.kernels.gather import take
from plait.plan.jtree import Node
from plait.plan.migration import Strategy

SAMPLE = 512
"""Tuples of an input that are looked up to estimate what a join of it would find."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known before a migration; None where nothing is."""

    base_rows: int
    """Live tuples in the base windows."""
    shared: int
    """Combined tuples in states that both plans have."""
    recomputed: float | None
    """Combined tuples that moving state would have to compute."""
    recomputing: float | None
    """Operations (lookups, rows looked at, rows stored) that this would take."""
    running_on: float | None
    """Operations that the old plan does in the time of a window: what a parallel track adds."""


Chooser = Callable[[Situation], tuple[Strategy, str]]
"""Decides on a strategy, and says why."""


def moving_unless_dearer(given: Situation) -> tuple[Strategy, str]:
    """Moving state, unless recomputing costs more than running the old plan for a window.

    >>> moving_unless_dearer(Situation(100, 0, 50.0, 200.0, 1000.0))
    ('moving-state', 'recomputing takes 200 operations, running both plans 1000')
    >>> moving_unless_dearer(Situation(100, 0, 5e4, 2e5, 1000.0))
    ('parallel-track', 'recomputing takes 200000 operations, running both plans 1000')
    """
    if given.recomputed == 0:
        return "moving-state", "every state of the new plan is there"
    if given.recomputing is None or given.running_on is None:
        return "moving-state", "nothing is known about the cost of running both plans"
    dearer = given.recomputing > given.running_on
    why = (
        f"recomputing takes {given.recomputing:.0f} operations, "
        f"running both plans {given.running_on:.0f}"
    )
    return ("parallel-track" if dearer else "moving-state"), why


def situation(old: TreeEngine, plan: Node) -> Situation:
    """What the engine tells about a migration to another plan.

    The indexes that the new plan needs are built on the way: it will need them anyway.
    """
    base_rows = sum(len(base) for base in old.bases)
    arrivals, operations = _counted(old.counters)
    running_on = base_rows * operations / arrivals if arrivals else None
    there = {state.streams: state for state in old.combined}
    new = TreeEngine(old.query, plan, windows=old.windows, shared=there)
    taken = [state for state in new.combined if state.streams in there]
    estimate = _estimate(new, set(there))
    shared = sum(len(state) for state in taken)
    if estimate is None:
        return Situation(base_rows, shared, None, None, running_on)
    return Situation(base_rows, shared, *estimate, running_on)


def _counted(counters: list[OperatorCounters]) -> tuple[int, int]:
    """The tuples that came from streams so far, and the operations they took."""
    inputs = [given for operator in counters for given in operator.inputs]
    operations = sum(i.inserts + sum(s.probes + s.visited for s in i.steps) for i in inputs)
    stored = sum(i.arrivals for i in inputs) - sum(c.outputs for c in counters[1:])
    return stored, operations


def _estimate(tree: TreeEngine, matched: set[frozenset[int]]) -> tuple[float, float] | None:
    """Combined tuples to compute, and the operations for that, from samples of the inputs.

    None where a join has two inputs that are to be computed: neither can be looked up yet.
    """
    samples: dict[frozenset[int], tuple[Tuples, float]] = {}
    total = cost = 0.0
    for operator in reversed(tree.operators):
        state = operator.kept
        if state is None or state.streams in matched:
            continue
        unknown = [c for c, s in enumerate(operator.states) if s.streams in samples]
        if len(unknown) > 1:
            return None
        if unknown:
            child = unknown[0]
            sample, weight = samples[operator.states[child].streams]
        else:
            child = min(range(len(operator.states)), key=lambda c: len(operator.states[c]))
            sample, weight = _sample(operator.states[child])
        work = StepCounters()
        path = [lookup for lookup, _ in operator.paths[child]]
        portions = list(matches(path, sample, work)) if length(sample) else []
        found = _joined(portions, state)
        rows = length(found) * weight
        total += rows
        cost += (work.probes + work.visited) * weight + rows
        few = _evenly(found, SAMPLE)
        samples[state.streams] = (few, rows / max(1, length(few)))
    return total, cost


def _sample(state: State) -> tuple[Tuples, float]:
    """Some tuples of a state, and how many each stands for."""
    tuples = all_tuples(state)
    few = _evenly(tuples, SAMPLE)
    weight = length(tuples) / max(1, length(few))
    gone = np.minimum.reduce(list(few.values())) < 0
    return chosen_tuples(few, (~gone).view(np.uint8)), weight


def _evenly(tuples: Tuples, n: int) -> Tuples:
    rows = length(tuples)
    if rows <= n:
        return tuples
    chosen = np.linspace(0, rows - 1, n).astype(np.int32)
    return {s: take(positions, chosen) for s, positions in tuples.items()}


def _joined(portions: list[Tuples], state: CombinedState) -> Tuples:
    if not portions:
        return {s: np.empty(0, np.int32) for s in state.streams}
    return {s: np.concatenate([p[s] for p in portions]) for s in portions[0]}
