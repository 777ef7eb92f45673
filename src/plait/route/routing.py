"""Which processor a tuple goes to, so that every result is found by exactly one.

*One key class that all streams share.* Tuples that can meet have the same key, so a hash of the
key decides: into one of many partition groups, and by a table from groups to processors. Moving
load is changing the table.

*Other join graphs* (R.1 = S.1, S.2 = T.1) use a hypercube: each key class is a dimension with a
number of shares, a processor is a cell, and a tuple goes to every cell that agrees with the hashes
of the classes it has; along the others it is replicated. A result has a value in every class,
hence exactly one cell in which all its tuples meet. The shares are chosen to make the number of
tuples per processor smallest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from plait.query.graph import JoinGraph
from plait.tuning import USUAL

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Routing:
    """Shares per key class, and the processor of each cell (row-major over the classes)."""

    shares: tuple[int, ...]
    table: tuple[int, ...]
    seed: int | None = None
    """What the hashes follow from; part of the checkpoint, whose rows are where they put them.

    None is the hash without a secret, of checkpoints that were begun before there were seeds, and
    of queries whose driver does not know where their checkpoint is.
    """

    @property
    def processors(self) -> int:
        """How many processors take part."""
        return max(self.table) + 1

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

    >>> from plait.plan.examples import clique, chain
    >>> route(clique(3).graph, 2).table[62:66]
    (0, 0, 1, 1)
    >>> route(chain(3).graph, 4).shares
    (2, 2)
    """
    everywhere = [
        k for k, c in enumerate(graph.classes) if c.streams == frozenset(range(graph.size))
    ]
    if everywhere:
        shares = [1] * len(graph.classes)
        shares[everywhere[0]] = max(groups, processors)
        table = tuple(g * processors // shares[everywhere[0]] for g in range(max(shares)))
        return Routing(tuple(shares), table, seed)
    weights = rates or [1.0] * graph.size
    best = min(
        _share_vectors(len(graph.classes), processors),
        key=lambda shares: (_load(graph, shares, weights), prod(shares), shares),
    )
    return Routing(best, tuple(range(prod(best))), seed)


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
