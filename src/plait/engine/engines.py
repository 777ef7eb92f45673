"""Every way to run a query: by a tree of joins, by Eddies, by Teddies."""

from __future__ import annotations

from plait.engine.eddy import EddyEngine
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.purging import Purge
from plait.engine.teddy import TeddyEngine
from plait.engine.tree import TreeEngine
from plait.engine.windows import Windows
from plait.errors import PlanError
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query
from plait.tuning import USUAL, Tuning

Engine = TreeEngine | EddyEngine | TeddyEngine | ParallelTrack


def make_engine(
    query: Query,
    plan: Plan,
    *,
    hash_bits: int = 64,
    windows: Windows | None = None,
    memory_limit: int | None = None,
    purge: Purge = "watermark",
    tuning: Tuning = USUAL,
) -> TreeEngine | EddyEngine | TeddyEngine:
    """The engine that runs a plan.

    `windows` are empty ones to fill; what an engine has stored goes over to another one by
    `plait.engine.migrate`. `tuning` is for windows that are made here.
    Only a tree of joins can have a `memory_limit` in bytes, or purge by the lemma.
    """
    if memory_limit is not None and isinstance(plan, Teddies | Eddies):
        raise PlanError(
            f"{plan} cannot run within a memory limit",
            remedy="give a tree of joins, or do not enforce the budget",
        )
    if purge != "watermark" and isinstance(plan, Teddies | Eddies):
        raise PlanError(f"{plan} purges by watermarks only", remedy="give a tree of joins")
    if isinstance(plan, Teddies):
        return TeddyEngine(query, plan, hash_bits=hash_bits, windows=windows, tuning=tuning)
    if isinstance(plan, Eddies):
        return EddyEngine(query, plan, hash_bits=hash_bits, windows=windows, tuning=tuning)
    return TreeEngine(
        query,
        plan,
        hash_bits=hash_bits,
        windows=windows,
        memory_limit=memory_limit,
        purge=purge,
        tuning=tuning,
    )
