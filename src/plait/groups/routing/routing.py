"""Which processor a tuple goes to, so that every result is found by exactly one.

*One key class that all streams share.* Tuples that can meet have the same key, so a hash of the
key decides: into one of many partition groups, and by a table from groups to processors
(`plait.groups.routing.table`). Moving load is changing the table. A group that is too hot for one
processor is spread: of one stream each row goes to one of its processors, by its event time; the
rows of the others go to all of them. A result has one row of that stream, so one processor finds
it.

*Other join graphs* (R.1 = S.1, S.2 = T.1) use a hypercube: each key class is a dimension with a
number of shares, a processor is a cell, and a tuple goes to every cell that agrees with the hashes
of the classes it has; along the others it is replicated. A result has a value in every class,
hence exactly one cell in which all its tuples meet. The shares are chosen to make the number of
tuples per processor smallest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from plait.groups.routing.table import Table, initial
from plait.kernels.hashing import hash_integers, make_secret
from plait.query.graph import JoinGraph
from plait.tuning import USUAL

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Routing:
    """Shares per key class, and where each cell is (row-major over the classes)."""

    shares: tuple[int, ...]
    table: Table
    processors: int
    """How many processors there are. Some of them may hold no group."""
    by: int | None = None
    """The key class that all streams share, whose hash says the group; None in a hypercube."""
    seed: int | None = None
    """What the hashes follow from; part of the checkpoint, whose rows are where they put them.

    None is the hash without a secret, of checkpoints that were begun before there were seeds, and
    of queries whose driver does not know where their checkpoint is.
    """

    @cached_property
    def homes(self) -> Numbers:
        """The processor of each cell, the first one if it is spread."""
        return np.array([places[0] for places in self.table.places], np.int64)

    def at(self, table: Table) -> Routing:
        """The same with another table."""
        return replace(self, table=table)

    def divided(self, times: Numbers, processors: Sequence[int]) -> Numbers:
        """Which of the processors each row of a divided stream goes to, by its event time.

        The same row goes to the same place, whatever task reads it and however often.
        """
        hashes = hash_integers(times, make_secret(self.seed or 0))
        chosen = (hashes % np.uint64(len(processors))).astype(np.int64)
        return np.asarray(processors, np.int64)[chosen]

    def cells(self, hashes: dict[int, Hashes], rows: int) -> npt.NDArray[np.int64]:
        """For each row, the first cell it goes to, given its hash in every class it has."""
        cells = np.zeros(rows, np.int64)
        for k, share in enumerate(self.shares):
            cells *= share
            if k in hashes:
                cells += (hashes[k] % np.uint64(share)).astype(np.int64)
        return cells

    def replicas(self, classes: Sequence[int]) -> list[int]:
        """How far the other cells of a tuple with these classes are from its first one."""
        offsets = [0]
        for k, share in enumerate(self.shares):
            stride = prod(self.shares[k + 1 :])
            steps = [0] if k in classes else range(share)
            offsets = [o + step * stride for o in offsets for step in steps]
        return offsets


def route(
    graph: JoinGraph,
    processors: int,
    rates: Sequence[float] | None = None,
    groups: int = USUAL.groups,
    seed: int | None = None,
) -> Routing:
    """The routing of a query over a number of processors; unknown rates count as equal.

    >>> from plait.testing.examples import clique, chain
    >>> route(clique(3).graph, 2).table.places[62:66]
    ((0,), (0,), (1,), (1,))
    >>> route(chain(3).graph, 4).shares
    (2, 2)
    """
    everywhere = [
        k for k, c in enumerate(graph.classes) if c.streams == frozenset(range(graph.size))
    ]
    if everywhere:
        shares = [1] * len(graph.classes)
        shares[everywhere[0]] = max(groups, processors)
        homes = [g * processors // shares[everywhere[0]] for g in range(max(shares))]
        return Routing(tuple(shares), initial(homes), processors, everywhere[0], seed)
    weights = rates or [1.0] * graph.size
    best = min(
        _share_vectors(len(graph.classes), processors),
        key=lambda shares: (_load(graph, shares, weights), prod(shares), shares),
    )
    return Routing(best, initial(range(prod(best))), prod(best), None, seed)


def _load(graph: JoinGraph, shares: Sequence[int], rates: Sequence[float]) -> float:
    """Tuples per processor and unit of time."""
    return sum(
        rate / prod(shares[k] for k in graph.classes_of(stream))
        for stream, rate in enumerate(rates)
    )


def _share_vectors(classes: int, processors: int) -> Iterator[tuple[int, ...]]:
    """All shares whose product is at most the number of processors."""
    if classes == 0:
        yield ()
        return
    for first in range(1, processors + 1):
        for rest in _share_vectors(classes - 1, processors // first):
            yield (first, *rest)
