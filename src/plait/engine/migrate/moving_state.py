"""Moving state: the new plan takes over the states of the old one and computes the rest (CAPE 4.1).

*Correct output.* The tactic that is returned finds from the next batch on exactly the results that
the old one would have found. Nothing is emitted: every result whose tuples have all arrived was
found before, and the root keeps none.

*Invariants.* A state is identified by its stream set: whatever the plan, it holds the live
combinations of its streams that satisfy all conditions among them. So a state of that stream set
in the old plan *is* the new plan's state; it is handed over as it is, not copied, and only gets
the indexes it lacks. The other states of the new plan are joined from their inputs, children
before parents (algorithm 1), and those of the old plan that nobody took over are discarded.

*Safe discarding* (4.1.3). CAPE's windows may have purged a tuple that a combination still holds, so
it must first work off what waits in the input queues. Here a base tuple lives at least as long as
any live combination with it: t is dead when, for every stream k not in t, `min over i in t of
(ts_i + D[i][k])` is below the watermark of k, and each part of a combination has a minimum at
least as late, over at least as many streams. So a combination with a part that the base windows
no longer have is itself dead, whether it was dropped already or not, and discarding it loses
nothing. Input queues are empty between two batches; routers are worked off first.

*Cost.* Only tuples with a future are looked up: those that some tuple to come can make a result
of. The smallest input of a join is looked up in the others, so a recomputed combination is found
once, from one side. What is found is stored at once in the order of time, as a running plan would
have stored it, so chains are short and old combinations leave from the front.

*Ties and time.* At a batch boundary, with the watermarks of the last batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from plait.engine.counters import StepCounters
from plait.engine.memory_limit import check_memory
from plait.engine.probe import Lookup, chosen_tuples, length
from plait.engine.states import CombinedState, State, Tuples
from plait.engine.tactic import Tactic
from plait.engine.tactics.make import make_router
from plait.engine.tactics.operators import Operator
from plait.engine.tactics.tree import TreeTactic
from plait.engine.windows import Windows
from plait.errors import MemoryExceeded
from plait.kernels.ring import first_positions
from plait.plan.routed import Eddies, Plan, Teddies
from plait.plan.steps import StreamSet


@dataclass(slots=True)
class MovedState:
    """The new tactic, and the work of making it."""

    tactic: Tactic
    shared: dict[StreamSet, int] = field(default_factory=dict)
    """Combined tuples of each state that was handed over."""
    recomputed: dict[StreamSet, int] = field(default_factory=dict)
    """Combined tuples of each state that was computed."""
    discarded: dict[StreamSet, int] = field(default_factory=dict)
    """Combined tuples of each state that nobody took over."""
    work: StepCounters = field(default_factory=StepCounters)
    """Lookups, rows read and matches of recomputing."""
    seconds: float = 0.0


def move_state(old: Tactic, windows: Windows, plan: Plan, limit: int | None = None) -> MovedState:
    """Make the tactic of another plan; nothing may wait in the old one, which is used no more.

    If the new plan does not fit into the memory limit, the old tactic can still go on.
    """
    began = time.perf_counter()
    states = {state.streams: state for state in old.combined}
    if isinstance(plan, Teddies | Eddies):
        moved = MovedState(make_router(windows, plan, limit))
    else:
        new = TreeTactic(windows, plan, states)
        moved = MovedState(new)
        taken = states.keys() & {state.streams for state in new.combined}
        moved.shared = {s: len(state) for s, state in states.items() if s in taken}
        try:
            moved.recomputed = recompute(new, taken, moved.work, limit)
        except MemoryExceeded:
            if isinstance(old, TreeTactic):
                old.index_only_what_is_needed()
            raise
        new.index_only_what_is_needed()
    moved.discarded = {s: len(x) for s, x in states.items() if s not in moved.shared}
    moved.seconds = time.perf_counter() - began
    return moved


def recompute(
    tree: TreeTactic,
    matched: Sequence[StreamSet] | set[StreamSet],
    work: StepCounters,
    limit: int | None = None,
) -> dict[StreamSet, int]:
    """Join every state that is not matched from its inputs; return the tuples of each."""
    found = {}
    for operator in reversed(tree.operators):
        state = operator.kept
        if state is not None and state.streams not in matched:
            found[state.streams] = _recompute(tree.windows.watermarks, operator, state, work)
            check_memory(tree.windows, tree, limit)
    return found


def _recompute(
    watermarks: Sequence[int], operator: Operator, state: CombinedState, work: StepCounters
) -> int:
    states = operator.states
    child = min(range(len(states)), key=lambda c: len(states[c]))
    tuples = all_tuples(states[child])
    tuples = chosen_tuples(tuples, state.alive(tuples, watermarks))
    if not length(tuples):
        return 0
    path = [lookup for lookup, _ in operator.paths[child]]
    portions = list(matches(path, tuples, work))
    if not portions:
        return 0
    found = {s: np.concatenate([p[s] for p in portions]) for s in portions[0]}
    return state.fill(found, watermarks)


def matches(path: Sequence[Lookup], tuples: Tuples, work: StepCounters) -> Iterator[Tuples]:
    """Yield what tuples find on a path of lookups."""
    if not path:
        yield tuples
        return
    for found in path[0].matches(tuples, work):
        yield from matches(path[1:], found, work)


def all_tuples(state: State) -> Tuples:
    """Read all rows of a state, oldest first; -1 for a part that was dropped."""
    rows = first_positions(state.window.ring.header, 0, len(state))
    if isinstance(state, CombinedState):
        return state.parts(rows)
    (stream,) = state.streams
    return {stream: rows}
