"""Translate the counters of a plan's joins into the operations of the cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plait.engine.counters import OperatorCounters
from plait.optimize.model import Operations
from plait.plan.jtree import Join
from plait.plan.steps import steps, stream_set
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class InputLayout:
    """What does not change about an input of a join: how many streams it gathers on its way.

    `steps` has for each probe the index of the input whose state is probed, and the streams that
    are together then.
    """

    streams: int
    steps: tuple[tuple[int, int], ...]


Inputs = tuple[InputLayout, ...]
"""The inputs of a join."""


def inputs_of(query: Query, join: Join) -> Inputs:
    """What does not change about the inputs of a join."""
    sets = [stream_set(query, child) for child in join.children]
    inputs = []
    for c, own in enumerate(sets):
        gathered, path = len(own), []
        for step in steps(query, join, c):
            gathered += len(sets[step.target])
            path.append((step.target, gathered))
        inputs.append(InputLayout(len(own), tuple(path)))
    return tuple(inputs)


def counted(
    shape: Sequence[Inputs], counters: Sequence[OperatorCounters], batches: int = 0
) -> Operations:
    """What the joins of a plan have counted.

    Steps are not counted as such: each is taken to have had work in every batch, unless it had
    fewer tuples than there were batches. With no batches, the price of a batch is left out.
    """
    total = Operations()
    for inputs, operator in zip(shape, counters, strict=True):
        for own, given in zip(inputs, operator.inputs, strict=True):
            base = own.streams == 1
            gathered = own.streams
            carried = 0.0 if base else 2.0 * given.inserts * gathered
            busy = min(batches, given.arrivals)
            calls = 0 if base else busy
            probes = visits = matches = 0
            for (_, both), count in zip(own.steps, given.steps, strict=True):
                carried += count.probes * gathered + count.matches * both
                calls += min(batches, count.probes)
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
                upkeep=0 if base else batches,
                intakes=busy if base else 0,
            )
    return total
