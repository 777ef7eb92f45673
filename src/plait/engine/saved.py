"""Describe an engine as plain data and arrays, and make an engine from a description.

*Correct output.* An engine made from the description of another one finds from the next batch on
the same results as that one would have found.

*Invariants.* A description has only what cannot be computed from the query: the plan, the stored
rows with their indexes, and the counters. All else is made by the same constructors that make a new
engine, on windows that are filled first; so a description can name no code, and one that does not
fit is refused before it is used. Arrays are handed over as they are, not copied.

*When.* Between two batches. An engine in which something is under way beyond that, results held
back or tuples that wait, has no description (`NotSaved`). Neither has one with a purge rule of its
own.
"""

from __future__ import annotations

from dataclasses import asdict

from plait.engine.driver import Engine
from plait.engine.purging import PurgeByWatermarks
from plait.engine.tactics.parallel_track import ParallelTrack
from plait.engine.tactics.tree import TreeTactic
from plait.engine.windows import Windows
from plait.kernels.memory import HEAP, Memory, NotSaved, Saved
from plait.plan.jtree import Join, Leaf
from plait.plan.routed import Plan, routed
from plait.plan.serde import from_dict, to_dict
from plait.query.query import Query
from plait.tuning import Tuning


def engine_to_state(engine: Engine) -> Saved:
    """Describe an engine; the arrays are not copied."""
    if engine.holding_back:
        raise NotSaved("results that are held back")
    if type(engine.windows.purging) is not PurgeByWatermarks:
        raise NotSaved("a purge rule of its own")
    under_way = engine.migration
    plans = [engine.plan] if under_way is None else [under_way.old, under_way.new]
    windows = engine.windows
    return {
        "plans": [_plan_to_dict(plan) for plan in plans],
        "tuning": asdict(windows.tuning),
        "memory_limit": engine.memory_limit,
        "windows": windows.to_state(),
        "rule": ["watermark", windows.hash_bits, windows.seed],
        "flags": engine.flags.to_state() if engine.flags else None,
        "state": engine.tactic.to_state(),
    }


def engine_from_state(query: Query, saved: Saved, memory: Memory = HEAP) -> Engine:
    """Make an engine that goes on where the described one stopped, with its arrays."""
    _, hash_bits, seed = saved["rule"]
    indexes = dict(enumerate(map(_indexes, saved["windows"]["bases"])))
    tuning = Tuning(**{name: int(size) for name, size in saved["tuning"].items()})
    windows = Windows(
        query,
        indexes,
        hash_bits=int(hash_bits),
        memory=memory,
        tuning=tuning,
        seed=int(seed),
    )
    windows.set_state(saved["windows"])
    plan, *others = [_plan(value, query) for value in saved["plans"]]
    limit = None if saved["memory_limit"] is None else int(saved["memory_limit"])
    engine = Engine(query, plan, windows=windows, memory_limit=limit)
    for new in others:
        if not isinstance(engine.tactic, TreeTactic) or not isinstance(new, Join | Leaf):
            raise ValueError("only trees of joins run beside each other")
        engine.adopt(ParallelTrack(engine.tactic, new))
    if saved["flags"] is not None:
        engine.flags.set_state(saved["flags"])
    engine.tactic.set_state(saved["state"])
    return engine


def _indexes(base: Saved) -> list[tuple[int, ...]]:
    """List the indexes of a stored window."""
    return [tuple(map(int, index["classes"])) for index in base["window"]["indexes"]]


def _plan_to_dict(plan: Plan) -> dict[str, object]:
    if isinstance(plan, Join | Leaf):
        return to_dict(plan)
    return {"router": type(plan).__name__.lower(), **asdict(plan)}


def _plan(value: object, query: Query) -> Plan:
    if isinstance(value, dict) and "router" in value:
        return routed(**{"name" if key == "router" else key: v for key, v in value.items()})
    return from_dict(value, query)
