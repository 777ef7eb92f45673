"""What a running plan has counted, in the terms of the cost model."""

from __future__ import annotations

import numpy as np

from plait.engine.states import CombinedState
from plait.engine.tree import TreeEngine
from plait.kernels.ring import first_positions
from plait.optimize.model import Operations
from plait.plan.jtree import Join, Node
from plait.plan.steps import steps, stream_set
from plait.runtime.local import LocalRun


def observed(run: LocalRun) -> Operations:
    """Everything a tree of joins has done so far.

    Steps are not counted as such: each is taken to have had work in every batch, unless it had
    fewer tuples than there were batches.
    """
    engine = tree_of(run)
    width = len(run.query.select)
    total = Operations(results=run.counts.results * width, outputs=run.counts.portions * width)
    for join, counters in zip(_preorder(engine.plan), engine.counters, strict=True):
        sets = [stream_set(run.query, child) for child in join.children]
        for c, given in enumerate(counters.inputs):
            base = len(sets[c]) == 1
            gathered = len(sets[c])
            carried = 0.0 if base else 2.0 * given.inserts * gathered
            busy = min(run.counts.batches, given.arrivals)
            calls = 0 if base else busy
            probes = visits = matches = 0
            for step, count in zip(steps(run.query, join, c), given.steps, strict=True):
                both = gathered + len(sets[step.target])
                carried += count.probes * gathered + count.matches * both
                calls += min(run.counts.batches, count.probes)
                probes += count.probes
                visits += count.visited
                matches += count.matches
                gathered = both
            total += Operations(
                arrivals=given.arrivals if base else 0,
                inserts=given.inserts,
                deletes=given.deletes,
                probes=probes,
                visits=visits,
                matches=matches,
                carried=carried,
                calls=calls,
                combined=0 if base else given.inserts,
                upkeep=0 if base else run.counts.batches,
                intakes=busy if base else 0,
            )
    return total


def live_tuples(run: LocalRun) -> dict[frozenset[int], int]:
    """The tuples of each state that something to come may still join."""
    engine = tree_of(run)
    marks = [run.watermarks[name] for name in run.query.names]
    watermarks = [-(2**62) if mark is None else mark for mark in marks]
    found: dict[frozenset[int], int] = {base.streams: len(base) for base in engine.bases}
    for state in engine.states():
        if isinstance(state, CombinedState):
            rows = first_positions(state.window.ring.header, 0, len(state))
            alive = state.dead(rows, watermarks) == 0 if len(rows) else np.zeros(0, np.bool_)
            found[state.streams] = int(alive.sum())
    return found


def tree_of(run: LocalRun) -> TreeEngine:
    """The engine of a run whose plan is a tree of joins."""
    if not isinstance(run.engine, TreeEngine):
        raise TypeError(f"{type(run.engine).__name__} runs no tree of joins")
    return run.engine


def _preorder(node: Node) -> list[Join]:
    if not isinstance(node, Join):
        return []
    return [node, *(join for child in node.children for join in _preorder(child))]
