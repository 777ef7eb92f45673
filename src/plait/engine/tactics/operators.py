"""The joins of a running plan, and the feeds between them.

A *feed* is a place in a plan through which combinations of one stream set flow: from a stream, or
from the join below. Its state keeps them, and its *readers*, inputs of the joins above, probe with
each of them. A plan that runs alone has one reader per feed. On a parallel track, the feeds
below a box have two: the old box and the new one read the same state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from plait.engine.counters import OperatorCounters, StepCounters
from plait.engine.mark import Mark
from plait.engine.probe import Lookup, chosen_tuples, length
from plait.engine.states import BaseWindow, CombinedState, State, Tuples
from plait.engine.windows import Windows
from plait.kernels.memory import Saved
from plait.kernels.ring import first_positions
from plait.plan.jtree import Join


@dataclass(slots=True, eq=False)
class Feed:
    """The flow of combinations of a stream set; the feed of results has no state."""

    state: State | None
    readers: list[tuple[Operator, int]] = field(default_factory=list)
    """The joins that probe with them, and which of their inputs this is."""


@dataclass(slots=True, eq=False)
class Valve:
    """At the root of an old box: passes on combinations with an old part, and counts them."""

    mark: Mark
    passed: int = 0

    def old(self, tuples: Tuples) -> Tuples:
        """Select the combinations that the new box cannot find."""
        tuples = chosen_tuples(tuples, self.mark.old_tuples(tuples))
        self.passed += length(tuples)
        return tuples


@dataclass(slots=True, eq=False)
class Operator:
    """A running join: the feeds it reads, and for each of them its probes."""

    windows: Windows
    join: Join
    inputs: list[Feed]
    above: Feed
    """The feed of its own combinations."""
    counters: OperatorCounters
    paths: list[list[tuple[Lookup, StepCounters]]] = field(default_factory=list)
    mark: Mark | None = None
    """Set in the new box of a parallel track: the join takes part in nothing old."""
    valve: Valve | None = None
    """Set at the root of the old box of a parallel track."""

    @property
    def states(self) -> list[State]:
        """The states of its inputs."""
        return [feed.state for feed in self.inputs if feed.state is not None]

    @property
    def kept(self) -> CombinedState | None:
        """The state that keeps what this join finds; the root's results are not kept."""
        state = self.above.state
        assert state is None or isinstance(state, CombinedState)
        return state

    def to_state(self, order: Sequence[int]) -> Saved:
        """Describe its counters; its inputs in this order."""
        inputs = [self.counters.inputs[c] for c in order]
        counted = OperatorCounters(self.counters.operator, inputs, self.counters.outputs)
        return {"counters": counted.to_state()}

    def set_state(self, saved: Saved) -> None:
        """Go on from a join of the same shape."""
        self.counters.set_state(saved["counters"])

    def see_only_new(self, mark: Mark | None) -> None:
        """Find only combinations that are new to a mark, or all of them again.

        States that the join does not share with an old box have nothing old in them.
        """
        self.mark = mark
        shared = {id(feed.state) for feed in self.inputs if len(feed.readers) > 1}
        for path in self.paths:
            for lookup, _ in path:
                lookup.mark = mark if id(lookup.target) in shared else None

    def rows(self, child: int) -> int:
        """Count the rows in the state of an input that this join can find.

        Others may be stored as well: old ones, or purged ones that combinations still refer to.
        """
        state = self.inputs[child].state
        assert state is not None
        shared = self.mark is not None and len(self.inputs[child].readers) > 1
        if isinstance(state, CombinedState):
            if not shared or not len(state):
                return len(state)
            assert self.mark is not None
            parts = state.parts(first_positions(state.window.ring.header, 0, len(state)))
            there = np.minimum.reduce(list(parts.values())) >= 0
            parts = chosen_tuples(parts, there.view(np.uint8))
            return length(parts) - int(self.mark.old_tuples(parts).sum())
        (stream,) = state.streams
        out = self.mark.old[stream] if shared and self.mark is not None else 0
        assert isinstance(state, BaseWindow)
        return len(state) - max(out, self.windows.purging.hidden(self, child, state))
