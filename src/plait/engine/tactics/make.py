"""Choose the tactic that runs a plan."""

from __future__ import annotations

from plait.engine.tactics.eddy import EddyTactic
from plait.engine.tactics.routed import RoutedTactic
from plait.engine.tactics.teddy import TeddyTactic
from plait.engine.tactics.tree import TreeTactic
from plait.engine.windows import Windows
from plait.errors import PlanError
from plait.plan.routed import Eddies, Plan, Routed, Teddies


def make_tactic(windows: Windows, plan: Plan, limit: int | None) -> TreeTactic | RoutedTactic:
    """Make the tactic of a plan on empty windows, or of a router on any; `limit` is that of memory.

    Only a tree of joins can run within a memory limit.
    """
    if isinstance(plan, Teddies | Eddies):
        return make_router(windows, plan, limit)
    return TreeTactic(windows, plan)


def make_router(windows: Windows, plan: Routed, limit: int | None) -> RoutedTactic:
    """Make the tactic of a router."""
    if limit is not None:
        raise PlanError(
            f"{plan} cannot run within a memory limit",
            remedy="give a tree of joins, or do not enforce the budget",
        )
    if windows.purging.trees_only:
        raise PlanError(f"{plan} purges by watermarks only", remedy="give a tree of joins")
    if isinstance(plan, Teddies):
        return TeddyTactic(windows, plan)
    return EddyTactic(windows, plan)
