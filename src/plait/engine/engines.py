"""Every way to run a query: by a tree of joins, by Eddies, by Teddies."""

from __future__ import annotations

from plait.engine.eddy import EddyEngine
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.probe import PORTION
from plait.engine.purging import Purge
from plait.engine.teddy import TeddyEngine
from plait.engine.tree import TreeEngine
from plait.engine.windows import Windows
from plait.errors import PlanError
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query

Engine = TreeEngine | EddyEngine | TeddyEngine | ParallelTrack


def make_engine(
    query: Query,
    plan: Plan,
    *,
    hash_bits: int = 64,
    portion: int | None = None,
    windows: Windows | None = None,
    memory_limit: int | None = None,
    purge: Purge = "watermark",
) -> TreeEngine | EddyEngine | TeddyEngine:
    """The engine that runs a plan.

    `windows` are empty ones to fill; what an engine has stored goes over to another one by
    `plait.engine.migrate`. A small `portion` makes lookups return in many parts what they find.
    Only a tree of joins can have a `memory_limit` in bytes, or purge by the lemma.
    """
    portion = PORTION if portion is None else portion
    if memory_limit is not None and isinstance(plan, Teddies | Eddies):
        raise PlanError(
            f"{plan} cannot run within a memory limit",
            remedy="give a tree of joins, or do not enforce the budget",
        )
    if purge != "watermark" and isinstance(plan, Teddies | Eddies):
        raise PlanError(f"{plan} purges by watermarks only", remedy="give a tree of joins")
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
        purge=purge,
    )
