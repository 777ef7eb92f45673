"""Build the operators of a plan: states, lookups, and the feeds between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plait.engine.counters import InputCounters, OperatorCounters, StepCounters
from plait.engine.probe import Lookup
from plait.engine.states import CombinedState
from plait.engine.tactics.operators import Feed, Operator
from plait.engine.windows import Windows
from plait.plan.jtree import Join
from plait.plan.steps import StreamSet, steps, stream_set

NO_STATES: Mapping[StreamSet, CombinedState] = {}


class Builder:
    """Makes joins, and the feeds between them.

    They read the feeds `below` from now on. `needed` has the indexes of every state. A state is
    taken from `shared` if it is there, and is empty otherwise.
    """

    def __init__(
        self,
        windows: Windows,
        needed: Mapping[StreamSet, Sequence[tuple[int, ...]]],
        below: Mapping[StreamSet, Feed],
        shared: Mapping[StreamSet, CombinedState] = NO_STATES,
    ) -> None:
        self._windows = windows
        self._needed = needed
        self._below = below
        self._shared = shared
        self.joins: dict[StreamSet, Operator] = {}
        """The joins that were made, by stream set, parents first."""
        self.feeds: dict[StreamSet, Feed] = {}
        """The feeds between them."""

    def add(self, join: Join, above: Feed) -> None:
        """Make a join and those below it; its combinations go `above`."""
        query = self._windows.query
        inputs: list[Feed] = []
        new: list[tuple[Join, Feed]] = []
        for child in join.children:
            feed = self._below.get(stream_set(query, child))
            if feed is None:
                assert isinstance(child, Join), "the feed of a leaf is given"
                feed = self._feed(stream_set(query, child))
                new.append((child, feed))
            inputs.append(feed)
        counters = OperatorCounters(str(join), [InputCounters() for _ in inputs])
        operator = Operator(self._windows, join, inputs, above, counters)
        for c, feed in enumerate(inputs):
            operator.paths.append(self._path(operator, c))
            feed.readers.append((operator, c))
        self.joins[stream_set(query, join)] = operator
        for child, feed in new:
            self.add(child, feed)

    def _feed(self, streams: StreamSet) -> Feed:
        state = self._shared.get(streams)
        if state is None:
            windows, by = self._windows, self._needed[streams]
            state = CombinedState(windows.query, streams, windows.bases, by, windows.hash_bits)
        else:
            state.index_by(self._needed[streams])
        self.feeds[streams] = Feed(state)
        return self.feeds[streams]

    def _path(self, operator: Operator, child: int) -> list[tuple[Lookup, StepCounters]]:
        states = operator.states
        gathered = states[child].streams
        path = []
        for step in steps(self._windows.query, operator.join, child):
            target = states[step.target]
            count = StepCounters()
            operator.counters.inputs[child].steps.append(count)
            lookup = Lookup(self._windows, gathered, target, step.classes, step.residuals)
            path.append((lookup, count))
            gathered |= target.streams
        return path
