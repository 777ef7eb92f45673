"""Changing the plan of an engine, by either strategy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from plait.engine.migrate.moving_state import move_state
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.tree import TreeEngine
from plait.errors import MigrationError, did_you_mean
from plait.plan.boxes import Box, boxes
from plait.plan.jtree import Join, Leaf, check_plan
from plait.plan.migration import ORDERS, STRATEGIES, Migration, Order, Strategy
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query

if TYPE_CHECKING:
    from plait.engine.engines import Engine


class Migrated(NamedTuple):
    """The engine that goes on, what was done, and the results that waited in the old engine."""

    engine: Engine
    record: Migration
    waited: list[pa.RecordBatch]


def migrate(
    engine: Engine,
    plan: Plan,
    strategy: Strategy = "moving-state",
    *,
    order: Order = "any",
    start: int = 0,
    reason: str = "",
) -> Migrated:
    """Go on with another plan, at a batch boundary; the engine given is not used any more.

    `start` is the number of batches so far and `reason` says why this strategy, for the record. An
    engine in the middle of a migration is refused; what is refused leaves the engine as it was.
    """
    check_request(engine.query, plan_of(engine), plan, strategy, order, STRATEGIES)
    if engine.migrating:
        raise MigrationError(
            f"a migration to {plan_of(engine)} is under way",
            remedy="migrate again when the old plan is gone (`migrating` is False)",
        )
    began = time.perf_counter()
    engine = settled(engine)
    if strategy == "parallel-track":
        done = _parallel_track(engine, plan, order, start)
    else:
        done = _moving_state(engine, plan, order, start)
    pause = time.perf_counter() - began
    if isinstance(done.engine, ParallelTrack):
        done.engine.describe(pause=pause, reason=reason)
    return done._replace(record=replace(done.record, pause=pause, reason=reason))


def settled(engine: Engine) -> Engine:
    """The engine itself, or the new plan's alone if a parallel track has come to its end."""
    if isinstance(engine, ParallelTrack) and not engine.migrating:
        return engine.new
    return engine


def plan_of(engine: Engine) -> Plan:
    """The plan that an engine runs, or goes to."""
    return engine.plan if isinstance(engine, TreeEngine | ParallelTrack) else engine.settings


def check_request(
    query: Query,
    running: Plan,
    plan: Plan,
    strategy: str,
    order: str,
    strategies: Sequence[str] = (*STRATEGIES, "auto"),
) -> None:
    """Refuse a migration that can never be made from the running plan, naming what is wrong.

    Whoever hosts an engine may be asked to choose the strategy ("auto"); an engine may not.
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
            f"a {type(plan).__name__} is no plan", remedy="give a tree of joins or a router"
        )
    routers = [p for p in (plan, running) if isinstance(p, Teddies | Eddies)]
    if strategy == "parallel-track" and routers:
        raise MigrationError(
            f"{routers[0]} cannot run beside another plan: a parallel track has two trees of joins",
            remedy='use the strategy "moving-state"',
        )


def _moving_state(engine: Engine, plan: Plan, order: Order, start: int) -> Migrated:
    assert not isinstance(engine, ParallelTrack)
    waited = list(engine.finish())
    moved = move_state(engine, plan)
    record = Migration(
        "moving-state",
        plan_of(engine),
        plan,
        order,
        start,
        start,
        _boxes(engine, plan),
        shared=sum(moved.shared.values()),
        recomputed=sum(moved.recomputed.values()),
        discarded=sum(moved.discarded.values()),
        probes=moved.work.probes,
        visited=moved.work.visited,
        pause=moved.seconds,
    )
    return Migrated(moved.engine, record, waited)


def _parallel_track(engine: Engine, plan: Plan, order: Order, start: int) -> Migrated:
    assert isinstance(engine, TreeEngine) and isinstance(plan, Join | Leaf)
    track = ParallelTrack(engine, plan, order=order, start=start)
    return Migrated(track, track.record, [])


def _boxes(engine: Engine, plan: Plan) -> tuple[Box, ...]:
    """What is replaced; between a tree and a router there is no part that stays."""
    if isinstance(engine, TreeEngine) and isinstance(plan, Join | Leaf):
        return boxes(engine.query, engine.plan, plan)
    return ()
