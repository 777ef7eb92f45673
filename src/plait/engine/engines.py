"""Every way to run a query: by a tree of joins, by Eddies, by Teddies."""

from __future__ import annotations

from plait.engine.eddy import EddyEngine
from plait.engine.probe import PORTION
from plait.engine.teddy import TeddyEngine
from plait.engine.tree import TreeEngine
from plait.engine.windows import Windows
from plait.errors import PlanError
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query

Engine = TreeEngine | EddyEngine | TeddyEngine


def make_engine(
    query: Query,
    plan: Plan,
    *,
    hash_bits: int = 64,
    portion: int | None = None,
    windows: Windows | None = None,
    memory_limit: int | None = None,
) -> Engine:
    """The engine that runs a plan.

    With `windows`, it goes on from what another one stored. A small `portion` makes lookups return
    in many parts what they find. Only a tree of joins can have a `memory_limit` in bytes.
    """
    portion = PORTION if portion is None else portion
    if memory_limit is not None and isinstance(plan, Teddies | Eddies):
        raise PlanError(
            f"{plan} cannot run within a memory limit",
            remedy="give a tree of joins, or do not enforce the budget",
        )
    if isinstance(plan, Teddies):
        return TeddyEngine(query, plan, hash_bits=hash_bits, portion=portion, windows=windows)
    if isinstance(plan, Eddies):
        return EddyEngine(query, plan, hash_bits=hash_bits, portion=portion, windows=windows)
    return TreeEngine(
        query,
        plan,
        hash_bits=hash_bits,
        portion=portion,
        windows=windows,
        memory_limit=memory_limit,
    )
