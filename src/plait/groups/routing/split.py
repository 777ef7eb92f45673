"""The split: which partition group each row is in, and which processors it goes to.

*Correct output.* Every row goes to each processor that has to see it, once; one of these copies is
the original. Of a group that is moved by PTLB, the sender gets the originals, flagged with the
number of the move, and the receiver copies. Of a group that is spread, one stream is divided and
the others are copied.

*Cost.* One pass over the rows; groups that are moving or spread cost one more each.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from plait.engine.intake.codes import hash_values
from plait.engine.intake.times import event_times
from plait.groups.routing.routing import Hashes, Numbers, Routing
from plait.query.query import Query


class Share(NamedTuple):
    """Some rows of a stream for one processor, by their numbers; None means all."""

    processor: int
    rows: Numbers | None
    original: bool = True
    flag: int = 0


def cells_of(routing: Routing, query: Query, stream: int, rows: pa.RecordBatch) -> Numbers:
    """The cell of each row, its first one in a hypercube; the group where all share a key."""
    graph = query.graph
    hashes: dict[int, Hashes] = {}
    for k in graph.classes_of(stream):
        if routing.shares[k] > 1:
            name = graph.classes[k].columns[stream][0]
            hashes[k] = hash_values(rows.column(name), graph.classes[k].type, routing.seed)
    return routing.cells(hashes, rows.num_rows)


def shares_of(
    routing: Routing, query: Query, stream: int, rows: pa.RecordBatch, cells: Numbers
) -> Iterator[Share]:
    """Who gets which of the rows that are in these cells."""
    table = routing.table
    spread, flags = dict(table.spread), flagged(routing)
    if not spread and not flags:
        for copy, offset in enumerate(routing.replicas(query.graph.classes_of(stream))):
            for processor, part in _by_processor(routing.homes[cells + offset]):
                yield Share(processor, part, copy == 0)
        return
    times: Numbers | None = None
    usual = np.ones(len(cells), np.bool_)
    for group in sorted({*spread, *flags}):
        mine = np.flatnonzero(cells == group)
        if not len(mine):
            continue
        usual[mine] = False
        places = table.places[group]
        if group in flags:
            number, receiver = flags[group]
            yield Share(places[0], mine, flag=number)
            yield Share(receiver, mine, original=False)
        elif spread[group] == stream:
            if times is None:
                times = event_times(rows.column(query.streams[stream].time))
            owners = routing.divided(times[mine], places)
            for processor, part in _by_processor(owners):
                yield Share(processor, mine if part is None else mine[part])
        else:
            for copy, processor in enumerate(places):
                yield Share(processor, mine, copy == 0)
    rest = np.flatnonzero(usual)
    for processor, part in _by_processor(routing.homes[cells[rest]]):
        yield Share(processor, rest if part is None else rest[part])


def flagged(routing: Routing) -> dict[int, tuple[int, int]]:
    """The groups that are moved by PTLB now: the number of the move, and the receiver."""
    return {
        group: (move.number, move.receivers[0])
        for move in routing.table.under_way
        if move.protocol == "PTLB"
        for group in move.groups
    }


def _by_processor(processors: Numbers) -> Iterator[tuple[int, Numbers | None]]:
    if not len(processors):
        return
    if (processors == processors[0]).all():
        yield int(processors[0]), None
        return
    order = np.argsort(processors, kind="stable")
    numbers = np.arange(int(processors.max()) + 2)
    for number, (start, stop) in enumerate(pairwise(np.searchsorted(processors[order], numbers))):
        if stop > start:
            yield number, order[start:stop]
