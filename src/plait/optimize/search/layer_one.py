"""Layer one: the mjoin with good probe orders, and the best binary tree that can be afforded.

The mjoin keeps the least of all plans, since every plan keeps the windows of the streams. The
binary tree never computes a combination twice, which usually means the least CPU.
"""

from __future__ import annotations

from plait.optimize.search.binary_dp import binary_dp
from plait.optimize.search.binary_greedy import binary_greedy
from plait.optimize.search.candidate import Candidate, Joins

AFFORDABLE = 1023
"""Connected stream sets that dynamic programming may have: 10 streams that all join have 1023, a
chain of 20 has 210. It then takes some hundredths of a second."""


def best_mjoin(joins: Joins) -> Candidate:
    """The plan that keeps the least.

    >>> from plait.testing.models import chain_model
    >>> joins = Joins(chain_model())
    >>> str(joins.plan(best_mjoin(joins)))
    '(a b c)'
    """
    return joins.mjoin()


def best_binary(joins: Joins) -> Candidate:
    """The best binary tree, by dynamic programming where that is affordable."""
    found = binary_dp(joins, AFFORDABLE)
    return binary_greedy(joins) if found is None else found
