"""Whether to change the plan: a pure function from what is known to a decision with its reasons.

In this order:

1. The current plan no longer fits the budget: go to the best plan that does, at once. If there is
   none, say which resource is short; the nearest plan to the budget is the best to be had.
2. The best plan is the current one, or not cheaper by the margins: stay.
3. It did not pay when it was tried: leave it alone until its time is over.
4. The difference hangs on estimates that are not sure enough, and it would be gone if they were as
   large as they may be: learn these first.
5. The last migration was a moment ago, or the comparison needs to be confirmed, or staying has not
   yet cost as much as the migration would: stay, for now. The last rule is that of renting or
   buying: it bounds what streams that go back and forth can cost. What staying will cost for rows
   that have arrived and wait is as good as spent.
6. Move, by moving state or on a parallel track (`plait.adapt.strategy`). What the migration would
   cost in step 5 is what the better of the two is predicted to cost.

Costs are compared with each other under the same estimates, never with those of an earlier moment:
drift that is slow is still drift.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from plait.adapt.policy import PlanPolicy
from plait.adapt.strategy import Way, way_to
from plait.optimize.budget import Budget, Resource, show_memory
from plait.optimize.choose import choose
from plait.optimize.costs import Costs
from plait.optimize.model import Cost, Model, bits
from plait.optimize.search.candidate import Joins
from plait.optimize.statistics import PROBABILITY, Estimate, Statistics, streams_mask
from plait.plan.jtree import Node, joins
from plait.plan.labels import plan_label
from plait.plan.serde import to_dict
from plait.query.names import quoted
from plait.query.query import Query

_TRIES = 2
"""Samples after which it is believed that a set is too rare to be found in them."""

_CORRELATED = 3.0
"""How many times as frequent as independent predicates would make it a set may be, unless there is
reason to think otherwise."""

Kind = Literal["stay", "learn", "move", "unqualified"]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a processor stands when it decides; times are seconds of event time."""

    plan: Node
    time: float
    migrated: float | None = None
    """When the last migration began."""
    banned: Mapping[str, float] = field(default_factory=dict)
    """Plans that did not pay, and until when each is left alone."""
    regret: float = 0.0
    """CPU seconds that staying has cost since another plan became better."""
    confirmed: int = 0
    """How many comparisons in a row before this one said that another plan is better."""
    nbytes: float = 0.0
    """What the states hold."""
    price: float = 1.0
    """What the current plan takes for each second of CPU that the model foresees."""
    overhead: float = 0.0
    """What a migration takes beside the states that have to be computed."""
    tries: int = 0
    """Samples that were drawn to learn what was not sure."""
    waiting: float = 0.0
    """Seconds of event time that have arrived and are not joined yet."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the event log, whose events have the time."""
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "time"}
        return parts | {"plan": to_dict(self.plan), "banned": dict(self.banned)}


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and why."""

    kind: Kind
    reasons: tuple[str, ...]
    current: Cost
    plan: Node | None = None
    """The plan to go to, or that would be better."""
    cost: Cost | None = None
    """What that plan is predicted to need."""
    way: Way | None = None
    """How to get there."""
    better: bool = False
    """Whether it is cheaper by the margins: then staying is regretted."""
    learn: tuple[int, ...] = ()
    """The sets of streams of which more must be known."""
    resource: Resource | None = None
    """What is short, if the current plan does not fit the budget."""
    fits: bool = True
    """Whether there is a plan that fits."""

    @property
    def gain(self) -> float:
        """CPU seconds per second of event time that the other plan is predicted to save."""
        return 0.0 if self.cost is None else self.current.cpu - self.cost.cpu

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the event log."""
        return {
            "kind": self.kind,
            "reasons": list(self.reasons),
            "current": _plain(self.current),
            "plan": None if self.plan is None else plan_label(self.plan),
            "cost": None if self.cost is None else _plain(self.cost),
            "pause": 0.0 if self.way is None else self.way.pause,
            "way": None if self.way is None else self.way.to_dict(),
            "gain": self.gain,
            "resource": self.resource,
            "fits": self.fits,
        }


def decide(
    query: Query,
    known: Statistics,
    standing: Standing,
    policy: PlanPolicy,
    *,
    budget: Budget | None = None,
    costs: Costs,
) -> Decision:
    """Stay, learn more, or move to another plan.

    >>> from plait.optimize.costs import DEFAULT
    >>> from plait.testing.examples import chain
    >>> from plait.plan.jtree import parse_shape
    >>> known = Statistics.of(
    ...     {"a": 2000, "b": 2000, "c": 2000}, joint={"a b": 0.01, "b c": 1e-6}, batch=1.0)
    >>> standing = Standing(parse_shape(chain(3), "((a b) c)"), 100.0, regret=9.0, confirmed=2)
    >>> decision = decide(chain(3), known, standing, PlanPolicy(), costs=DEFAULT)
    >>> print(decision.kind, decision.plan)
    move (a (b c))
    """
    return decide_by(Model(query, known, costs), known, standing, policy, budget or Budget())


def decide_by(
    model: Model, known: Statistics, standing: Standing, policy: PlanPolicy, limits: Budget
) -> Decision:
    """The same, by the model of what is known."""
    query = model.query
    space = Joins(model)
    current = _priced(model.cost(standing.plan), standing, 1.0)
    excess = max(1.0, standing.nbytes / current.bytes) if current.bytes else 1.0
    current = _priced(model.cost(standing.plan), standing, excess)
    room = None
    if limits.memory is not None and limits.unit == "bytes":
        room = max(0.0, limits.memory - standing.nbytes) / excess
    if not limits.holds(current):
        forced = _must_move(space, current, standing, policy, limits, excess)
        if forced.plan is None:
            return forced
        return replace(forced, way=_way(forced.plan, model, standing, policy, room))
    outcome = choose(space, _scaled(limits, standing, policy, excess))
    if outcome.answer == "none":
        outcome = choose(space, _scaled(limits, standing, None, excess))
    plan = space.plan(outcome.plan)
    cost = _priced(outcome.plan.cost, standing, excess)
    if plan == standing.plan or outcome.answer == "none":
        return Decision("stay", (f"{plan_label(standing.plan)} is the best plan",), current)
    gain = current.cpu - cost.cpu
    share = gain / current.cpu if current.cpu else 0.0
    said = (
        f"{plan_label(plan)} is predicted to take {share:.0%} less CPU than "
        f"{plan_label(standing.plan)} ({cost.cpu:.3g} against {current.cpu:.3g} seconds per second)"
    )
    found = Decision("stay", (said,), current, plan, cost)
    if share < policy.margin or gain < policy.least:
        why = (
            f"that is less than the margin of {policy.margin:.0%}"
            if share < policy.margin
            else f"that saves less than {policy.least:g} CPU"
        )
        return _because(found, why)
    if standing.time < (until := standing.banned.get(plan_label(plan), -1.0)):
        return _because(
            found, f"it did not pay before and is left alone for {until - standing.time:.3g} s more"
        )
    way = _way(plan, model, standing, policy, room)
    found = replace(found, better=True, way=way)
    unsure = _unsure(query, model, known, policy, (standing.plan, plan))
    if unsure:
        names = ", ".join(_names(query, s) for s in unsure)
        worst = _at_worst(model, known, unsure, plan, standing)
        if worst is None or worst > (1 - policy.margin) * current.cpu:
            why = f"not sure yet about {names}"
            return _because(replace(found, kind="learn", learn=unsure), why)
        found = _because(found, f"{names} may be more frequent, but not enough to matter")
    rest = _window(query) if policy.rest is None else policy.rest
    if standing.migrated is not None and standing.time - standing.migrated < rest:
        return _because(
            found,
            f"the last migration was {standing.time - standing.migrated:.3g} s ago, "
            f"the least time between two is {rest:g} s",
        )
    if standing.confirmed + 1 < policy.confirm:
        return _because(found, f"to be confirmed by {policy.confirm} comparisons in a row")
    needed = policy.payback * way.work
    behind = gain * standing.waiting
    costs = f"staying has cost {standing.regret:.3g} s"
    if behind:
        costs += f" and would cost {behind:.3g} s for the rows that wait"
    if standing.regret + behind < needed:
        return _because(found, f"{costs} so far, the migration would take {needed:.3g} s")
    why = f"{costs}, the migration takes {way.work:.3g} s"
    return _because(replace(found, kind="move"), why)


def _way(
    plan: Node, model: Model, standing: Standing, policy: PlanPolicy, room: float | None
) -> Way:
    price, overhead = standing.price, standing.overhead
    return way_to(model, standing.plan, plan, policy, room=room, price=price, overhead=overhead)


def _must_move(
    space: Joins,
    current: Cost,
    standing: Standing,
    policy: PlanPolicy,
    limits: Budget,
    excess: float,
) -> Decision:
    """The current plan does not fit: which plan does, with room to spare if possible?"""
    short = limits.binding(current)
    said = (
        f"{plan_label(standing.plan)} needs {_needs(current, short)}, more than the budget of "
        f"{_limit(limits, short)}"
    )
    for spare in (policy, None):
        outcome = choose(space, _scaled(limits, standing, spare, excess))
        if outcome.answer != "none":
            break
    plan = space.plan(outcome.plan)
    cost = _priced(outcome.plan.cost, standing, excess)
    if outcome.answer == "none":
        proof = "no plan fits" if outcome.proven else "no plan was found that fits"
        near = limits.excess(cost) < limits.excess(current) * (1 - policy.margin)
        nearer = plan if near else None
        why = (
            f"{proof}; the nearest is {plan_label(plan)}, which needs "
            f"{_needs(cost, limits.binding(cost))}"
        )
        kind: Kind = "move" if nearer is not None else "unqualified"
        return Decision(kind, (said, why), current, nearer, cost, resource=short, fits=False)
    if plan == standing.plan:
        return Decision(
            "stay", (f"{plan_label(standing.plan)} is the only plan that fits",), current
        )
    why = f"{plan_label(plan)} needs {_needs(cost, short)}"
    return Decision("move", (said, why), current, plan, cost, resource=short)


def _scaled(limits: Budget, standing: Standing, spare: PlanPolicy | None, excess: float) -> Budget:
    """The budget in the model's terms, less the head-room."""
    room = 1.0 if spare is None else 1 - spare.headroom
    return replace(
        limits,
        cpu=None if limits.cpu is None else limits.cpu / standing.price,
        memory=None if limits.memory is None else limits.memory * room / excess,
    )


def _priced(cost: Cost, standing: Standing, excess: float) -> Cost:
    return Cost(cost.cpu * standing.price, cost.tuples, cost.bytes * excess)


def _unsure(
    query: Query, model: Model, known: Statistics, policy: PlanPolicy, plans: tuple[Node, Node]
) -> tuple[int, ...]:
    """The sets that only some of the plans put together and of which too little is known."""
    if not policy.confidence:
        return ()
    sure = {
        streams_mask(query, names)
        for names, estimate in known.joint.items()
        if (1.0 if estimate.confidence is None else estimate.confidence) >= policy.confidence
    }
    mine, other = (gathered_by(model, plan) for plan in plans)
    return tuple(sorted((mine ^ other) - sure - {model.all}, key=lambda s: (s.bit_count(), s)))


def _at_worst(
    model: Model, known: Statistics, unsure: tuple[int, ...], plan: Node, standing: Standing
) -> float | None:
    """What a plan takes if what is not sure is as frequent as may be; None if that is unknown.

    What is rare is hard to find in samples. If some were drawn and nothing in them speaks against
    independent predicates, three or more streams are taken to agree a few times as often as these
    would make them. Of two streams there must be a bound.
    """
    query, names = model.query, model.query.names
    bounds = {streams_mask(query, n): e.value for n, e in known.at_most.items()}
    unbounded = [streams for streams in unsure if streams not in bounds]
    if any(s.bit_count() == 2 for s in unbounded) or (unbounded and standing.tries < _TRIES):
        return None
    rest = {n: e for n, e in known.joint.items() if streams_mask(query, n) not in unsure}
    apart = Model(query, replace(known, joint=rest), model.costs)
    joint = dict(rest)
    for streams in unsure:
        rates = math.prod(model.density(1 << i) for i in bits(streams))
        alone, seen = (m.density(streams) / rates if rates else 0.0 for m in (apart, model))
        limit = bounds.get(streams, 1.0)
        if streams.bit_count() > 2 and seen <= _CORRELATED * alone:
            limit = min(limit, _CORRELATED * max(alone, seen))
        called = " ".join(names[i] for i in bits(streams))
        joint[called] = Estimate(min(1.0, limit), PROBABILITY)
    worst = Model(query, replace(known, joint=joint), model.costs)
    return worst.cost(plan).cpu * standing.price


def gathered_by(model: Model, plan: Node) -> frozenset[int]:
    """The sets of streams that a plan puts together, on the way of any tuple."""
    found = set()
    for join in joins(plan):
        parts = [model.mask(child) for child in join.children]
        for c, order in enumerate(join.orders):
            gathered = parts[c]
            for k in order:
                gathered |= parts[k]
                found.add(gathered)
    return frozenset(found)


def _because(decision: Decision, why: str) -> Decision:
    return replace(decision, reasons=(*decision.reasons, why))


def _window(query: Query) -> float:
    return query.bounds.widest / 1e6


def _names(query: Query, streams: int) -> str:
    return " ⋈ ".join(quoted(name) for i, name in enumerate(query.names) if streams >> i & 1)


def _needs(cost: Cost, resource: Resource | None) -> str:
    return f"{cost.cpu:.3g} CPU" if resource == "cpu" else show_memory(cost.bytes)


def _limit(limits: Budget, resource: Resource | None) -> str:
    if resource == "cpu":
        return f"{limits.cpu:g} CPU"
    assert limits.memory is not None
    return show_memory(limits.memory, limits.unit)


def _plain(cost: Cost) -> dict[str, float]:
    return {"cpu": cost.cpu, "rows": cost.tuples, "bytes": cost.bytes}
