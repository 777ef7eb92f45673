"""Which rows of a state nothing to come can join.

A row goes when the watermarks of all other streams have passed it; see `states.py`. That bears
streams out of order, and a combination goes as soon as its earliest tuple is too old.

The rule is an object, one for each set of windows, so that the papers' experiments can bring their
own. Whatever it keeps longer changes no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from plait.query.query import Query

if TYPE_CHECKING:
    from plait.engine.states import BaseWindow, CombinedState, Tuples
    from plait.engine.tactics.operators import Feed, Operator


class PurgeByWatermarks:
    """The rule by which a tree of joins drops rows; subclasses may keep rows longer."""

    trees_only = False
    """Whether routers cannot follow it."""

    def __init__(self, query: Query) -> None:
        self.query = query

    def enter(self, operator: Operator, child: int, tuples: Tuples) -> None:
        """Note tuples that enter a join by one of its inputs, before they probe."""

    def expire(self, feed: Feed, state: CombinedState, watermarks: Sequence[int]) -> int:
        """Drop the combinations of a feed that nothing to come can join; return their number."""
        return state.expire(watermarks)

    def hold(
        self, cutoffs: list[int], leaves: Iterable[Feed], kept: Iterable[tuple[Feed, CombinedState]]
    ) -> None:
        """Lower the cutoffs of base windows whose rows are needed for longer."""

    def hidden(self, operator: Operator, child: int, state: BaseWindow) -> int:
        """Count the rows of an input's window that are stored, but purged for this join."""
        return 0
