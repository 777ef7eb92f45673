"""What a local run has done and what it holds, in the terms of the cost model."""

from __future__ import annotations

import numpy as np

from plait.engine.driver import Engine
from plait.engine.states import CombinedState
from plait.kernels.ring import first_positions
from plait.local.host import LocalRun
from plait.node.operations import counted, inputs_of
from plait.optimize.model import Operations


def observed(run: LocalRun) -> Operations:
    """Everything a tree of joins has done so far."""
    engine = tree_of(run)
    width = len(run.query.select)
    results = Operations(results=run.counts.results * width, outputs=run.counts.portions * width)
    shape = [inputs_of(run.query, operator.join) for operator in engine.operators]
    return results + counted(shape, engine.counters, run.counts.batches)


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


def tree_of(run: LocalRun) -> Engine:
    """The engine of a run whose plan is a tree of joins."""
    if not run.engine.operators:
        raise TypeError(f"{run.engine.plan} is no tree of joins")
    return run.engine
