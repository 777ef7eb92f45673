"""Count the operations of a local run in the terms of the cost model."""

from __future__ import annotations

from plait.engine.driver import Engine
from plait.local.host import LocalRun
from plait.node.operation_counts import counted, inputs_of
from plait.optimize.model import Operations


def observed(run: LocalRun) -> Operations:
    """The operations of a tree of joins so far."""
    engine = tree_of(run)
    width = len(run.query.select)
    results = Operations(results=run.counts.results * width, outputs=run.counts.portions * width)
    shape = [inputs_of(run.query, operator.join) for operator in engine.operators]
    return results + counted(shape, engine.counters, run.counts.batches)


def tree_of(run: LocalRun) -> Engine:
    """The engine of a run whose plan is a tree of joins."""
    if not run.engine.operators:
        raise TypeError(f"{run.engine.plan} is no tree of joins")
    return run.engine
