"""The best binary tree, bushy ones included, by dynamic programming over connected stream sets.

For each set that hangs together, the cheapest way to split it into two that do. A tree costs the
sum over its joins, and a join depends on its two stream sets only, so the cheapest subtrees make
the cheapest tree. It costs the splits of all connected sets: (n³ - n) / 6 for a chain of n streams,
about 3^n / 2 for a clique, so it is not even begun when there are more sets than a limit. Most
splits are only looked at: what the subtrees cost, keeping their results, and finding those of the
join is known, so joins are worked out in that order until the rest cannot be cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from plait.optimize.model import Model
from plait.optimize.search.candidate import Candidate, Joins

_ROUNDING = 1 - 1e-9


def connected_sets(model: Model) -> Iterator[int]:
    """List the connected stream sets, each once, smaller ones first.

    >>> from plait.testing.models import chain_model
    >>> [f"{s:03b}" for s in connected_sets(chain_model())]
    ['001', '010', '100', '011', '110', '111']
    """
    level = {1 << i for i in range(model.size)}
    while level:
        ordered = sorted(level)
        yield from ordered
        level = set()
        for streams in ordered:
            near = model.neighbours(streams)
            while near:
                one = near & -near
                near ^= one
                level.add(streams | one)


def binary_dp(joins: Joins, limit: int = 4096) -> Candidate | None:
    """Find the binary tree with the least CPU, then memory; None beyond `limit` connected sets.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> str(joins.plan(binary_dp(joins)))
    '((a b) c)'
    """
    sets = list(islice(connected_sets(joins.model), limit + 1))
    if len(sets) > limit:
        return None
    model = joins.model
    best: dict[int, Candidate] = {}
    floors: dict[int, float] = {}
    by_lowest: dict[int, list[int]] = {1 << i: [] for i in range(model.size)}
    for streams in sets:
        lowest = streams & -streams
        chosen = joins.leaf(lowest.bit_length() - 1) if streams == lowest else None
        splits = [
            (floors[left] + floors[streams ^ left], left)
            for left in by_lowest[lowest]
            if left & streams == left and streams ^ left in floors
        ]
        splits.sort()
        found_at_least = model.results_cost(streams) * _ROUNDING
        for least, left in splits:
            if chosen is not None and found_at_least + least > chosen.cost.cpu:
                break
            found = joins.combine((best[left], best[streams ^ left]))
            if chosen is None or _key(found) < _key(chosen):
                chosen = found
        assert chosen is not None, "a connected set can always be cut"
        best[streams] = chosen
        floors[streams] = chosen.cost.cpu + model.state_cost(streams, ()).cpu
        by_lowest[lowest].append(streams)
    return best[model.all]


def _key(candidate: Candidate) -> tuple[float, float]:
    return candidate.cost.cpu, candidate.cost.tuples
