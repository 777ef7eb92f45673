"""Change the plan of an engine, by either strategy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from plait.engine.driver import Engine
from plait.engine.held import Held
from plait.engine.migrate.moving_state import move_state
from plait.engine.tactics.parallel_track import ParallelTrack
from plait.engine.tactics.tree import TreeTactic
from plait.errors import MigrationError, did_you_mean
from plait.plan.boxes import Box, boxes
from plait.plan.jtree import Join, Leaf, check_plan
from plait.plan.migration import ORDERS, STRATEGIES, Migration, ResultOrder, Strategy
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query


class MigrationDone(NamedTuple):
    """The record of a migration, and the results that waited under the old plan."""

    record: Migration
    waited: list[pa.RecordBatch]


def migrate(
    engine: Engine,
    plan: Plan,
    strategy: Strategy = "moving-state",
    *,
    order: ResultOrder = "any",
    start: int = 0,
    reason: str = "",
) -> MigrationDone:
    """Change the plan of an engine at a batch boundary.

    `start` is the number of batches so far and `reason` explains the strategy, for the record. An
    engine in the middle of a migration is refused, and runs on unchanged.
    """
    check_request(engine.query, engine.plan, plan, strategy, order, STRATEGIES)
    if engine.migrating:
        raise MigrationError(
            f"a migration to {engine.plan} is under way",
            remedy="migrate again when the old plan is gone (`migrating` is False)",
        )
    began = time.perf_counter()
    tree = engine.tactic if isinstance(engine.tactic, TreeTactic) else None
    if strategy == "parallel-track":
        assert tree is not None and isinstance(plan, Join | Leaf), "the request was checked"
        track = ParallelTrack(tree, plan, order=order, start=start)
        track.describe(pause=time.perf_counter() - began, reason=reason)
        # Without old tuples, or where the plans do the same, there is nothing to wait for.
        tree_alone = track.successor()
        if tree_alone is not None:
            engine.adopt(tree_alone)
        else:
            held = Held(engine.windows, track.mark) if order == "timestamp" else None
            engine.adopt(track, held)
        return MigrationDone(track.migration, [])
    done = _moving_state(engine, plan, order, start)
    pause = time.perf_counter() - began
    return done._replace(record=replace(done.record, pause=pause, reason=reason))


def check_request(
    query: Query,
    running: Plan,
    plan: Plan,
    strategy: str,
    order: str,
    strategies: Sequence[str] = (*STRATEGIES, "auto"),
) -> None:
    """Refuse a migration that is impossible from the running plan, and say why.

    A host may be asked to choose the strategy ("auto"); an engine may not.
    """
    if strategy not in strategies:
        raise MigrationError(
            f"there is no migration strategy {strategy!r}",
            remedy=did_you_mean(strategy, strategies),
        )
    if order not in ORDERS:
        raise MigrationError(
            f"results cannot be ordered by {order!r}", remedy=did_you_mean(order, ORDERS)
        )
    if isinstance(plan, Join | Leaf):
        check_plan(query, plan)
    elif not isinstance(plan, Teddies | Eddies):
        raise MigrationError(
            f"a {type(plan).__name__} is not a plan", remedy="give a tree of joins or a router"
        )
    routers = [p for p in (plan, running) if isinstance(p, Teddies | Eddies)]
    if strategy == "parallel-track" and routers:
        raise MigrationError(
            f"{routers[0]} cannot run beside another plan: a parallel track has two trees of joins",
            remedy='use the strategy "moving-state"',
        )


def _moving_state(engine: Engine, plan: Plan, order: ResultOrder, start: int) -> MigrationDone:
    waited = list(engine.finish())
    old = engine.plan
    moved = move_state(engine.tactic, engine.windows, plan, engine.memory_limit)
    engine.adopt(moved.tactic)
    record = Migration(
        "moving-state",
        old,
        plan,
        order,
        start,
        start,
        _boxes(engine.query, old, plan),
        shared=sum(moved.shared.values()),
        recomputed=sum(moved.recomputed.values()),
        discarded=sum(moved.discarded.values()),
        probes=moved.work.probes,
        visited=moved.work.visited,
    )
    return MigrationDone(record, waited)


def _boxes(query: Query, old: Plan, new: Plan) -> tuple[Box, ...]:
    """List the sub-plans that are replaced; between a tree and a router that is everything."""
    if isinstance(old, Join | Leaf) and isinstance(new, Join | Leaf):
        return boxes(query, old, new)
    return ()
