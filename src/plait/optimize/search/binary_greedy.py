"""A good binary tree in polynomial time, for more streams than dynamic programming can take.

Two ways, and the better of their trees: *by pairs*, joining again and again the two subtrees whose
join makes the fewest combinations (n³ comparisons, bushy); and *one by one*, from each stream on
adding the one that makes the fewest (n³ for all starts, a left-deep tree). Then every subtree is
taken apart where it pays: a child of a child is exchanged with its uncle as long as that saves CPU.
"""

from __future__ import annotations

from plait.optimize.search.candidate import Candidate, Joins

ROUNDS = 3
"""Passes over the whole tree to find exchanges."""


def binary_greedy(joins: Joins) -> Candidate:
    """Find a binary tree with little CPU.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> str(joins.plan(binary_greedy(joins)))
    '((a b) c)'
    """
    found = [by_pairs(joins), one_by_one(joins)]
    best = min(found, key=lambda c: (c.cost.cpu, c.cost.tuples))
    for _ in range(ROUNDS):
        better = _exchanged(joins, best)
        if not better.cost.cpu < best.cost.cpu:
            break
        best = better
    return best


def by_pairs(joins: Joins) -> Candidate:
    """Join the two subtrees whose join makes the fewest combinations, until one is left."""
    model = joins.model
    trees = joins.leaves()
    while len(trees) > 1:
        pairs = (
            (model.made(a.streams | b.streams), i, j)
            for j, b in enumerate(trees)
            for i, a in enumerate(trees[:j])
            if model.neighbours(a.streams) & b.streams
        )
        _, i, j = min(pairs)
        merged = joins.combine((trees[i], trees[j]))
        trees = [*(t for k, t in enumerate(trees) if k not in (i, j)), merged]
    return trees[0]


def one_by_one(joins: Joins) -> Candidate:
    """Build a left-deep tree, adding the stream that makes the fewest combinations each time."""
    model = joins.model
    sequences = []
    for start in range(model.size):
        gathered, order, total = 1 << start, [start], 0.0
        while gathered != model.all:
            near = model.neighbours(gathered)
            choices = [i for i in range(model.size) if near >> i & 1]
            following = min(choices, key=lambda i: (model.made(gathered | 1 << i), i))
            gathered |= 1 << following
            order.append(following)
            total += model.made(gathered)
        sequences.append((total, order))
    order = min(sequences)[1]
    tree = joins.leaf(order[0])
    for i in order[1:]:
        tree = joins.combine((tree, joins.leaf(i)))
    return tree


def _exchanged(joins: Joins, tree: Candidate) -> Candidate:
    """Exchange grandchildren with their uncles wherever that saves CPU."""
    if not tree.children:
        return tree
    first, second = (_exchanged(joins, child) for child in tree.children)
    best = joins.combine((first, second))
    for parent, uncle in ((first, second), (second, first)):
        if not parent.children:
            continue
        for kept, moved in (parent.children, parent.children[::-1]):
            # ((kept moved) uncle) becomes ((kept uncle) moved).
            if joins.model.neighbours(kept.streams) & uncle.streams:
                below = joins.combine((kept, uncle))
                if joins.model.neighbours(below.streams) & moved.streams:
                    found = joins.combine((below, moved))
                    if found.cost.cpu < best.cost.cpu:
                        best = found
    return best
