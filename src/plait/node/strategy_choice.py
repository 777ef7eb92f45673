"""Choose the strategy of a migration that somebody asks for without saying how.

The same function decides as in the adaptive loop (`plait.adapt.strategy`). Where no loop has learnt
anything, the statistics come from the windows as they are: rates from the rows that they hold, and
selectivities from samples of them. What an engine has counted since it began says how the streams
were, not how they are.

*Invariants.* Asking changes nothing: no engine is built, no index added, no counter moved.

*Cost.* At most one sample per join of either plan, and a look at the event times of the windows.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.adapt.knowledge import BatchObservations, Knowledge, geometry
from plait.adapt.policy import PlanPolicy
from plait.adapt.strategy import Way, way_to
from plait.adapt.when import sample_order
from plait.engine.driver import Engine
from plait.engine.sampling import sample
from plait.kernels.gather import take
from plait.kernels.ring import first_positions
from plait.optimize.costs import Costs
from plait.optimize.model import Model
from plait.plan.jtree import Join, Leaf, Node, joins
from plait.plan.routed import Plan


def choose_strategy(
    engine: Engine,
    plan: Plan,
    costs: Costs,
    policy: PlanPolicy | None = None,
    room: float | None = None,
) -> Way:
    """How an engine should get to another plan, with `room` bytes to spare."""
    running = engine.plan
    if not isinstance(plan, Join | Leaf) or not isinstance(running, Join | Leaf):
        return Way("moving-state", "only trees of joins can run in parallel")
    policy = policy or PlanPolicy()
    known = knowledge_of(engine, (running, plan), policy.sample_rows).statistics(engine.query)
    return way_to(Model(engine.query, known, costs), running, plan, policy, room=room)


def knowledge_of(engine: Engine, plans: tuple[Node, ...], rows: int) -> Knowledge:
    """What the windows tell of the streams, as far as these plans depend on it."""
    query, bases = engine.query, engine.bases
    times = [
        take(base.window.latest, first_positions(base.window.ring.header, 0, len(base)))
        for base in bases
        if len(base)
    ]
    window = query.bounds.widest / 1e6
    knowledge = Knowledge.of(len(bases), max(window, 1.0), window)
    if not times:
        return knowledge
    oldest, newest = min(int(t.min()) for t in times), max(int(t.max()) for t in times)
    # Windows that are not yet full hold what they hold, and no more.
    span = max((newest - oldest) / 1e6, window, 1e-6)
    seen = BatchObservations(newest, span, [len(base) for base in bases])
    knowledge = knowledge.learn(seen, geometry(query))
    for order in _orders(engine, plans):
        for step in sample(engine.windows, order, rows, seed=0):
            (stream,) = step.target
            gathered = sum(1 << s for s in step.gathered)
            there = len(bases[stream])
            knowledge = knowledge.sampled(gathered, 1 << stream, step.pairs, step.matches, there)
    return knowledge


def _orders(engine: Engine, plans: tuple[Node, ...]) -> Iterator[tuple[int, ...]]:
    """In which order to join samples, so that every join of the plans is among the steps."""
    query, told = engine.query, set[frozenset[int]]()
    sets = {frozenset(map(query.index, join.streams)) for plan in plans for join in joins(plan)}
    for streams in sorted(sets, key=lambda s: (-len(s), sorted(s))):
        if streams not in told:
            order = sample_order(query.graph.neighbours, sum(1 << s for s in streams))
            told.update(frozenset(order[:n]) for n in range(2, len(order) + 1))
            yield order
