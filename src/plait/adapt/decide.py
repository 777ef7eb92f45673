"""Decide whether to change the plan: a pure function from statistics to a decision with reasons.

In this order:

1. The current plan no longer fits the budget: go to the best plan that does, at once. If there is
   none, say which resource is short; the nearest plan to the budget is the best to be had.
2. The best plan is the current one, or not cheaper by the margins: stay.
3. It did not pay when it was tried: do not try it again until its ban is over.
4. The difference depends on estimates that are not certain enough, and would vanish if their true
   values were at the upper end of what they may be: learn these first.
5. The last migration was a moment ago, or the comparison needs to be confirmed, or staying has not
   yet cost as much as the migration would: stay, for now. The last rule is ski rental: it bounds
   what streams that alternate between two behaviours can cost. What staying will cost for rows
   that have arrived and wait counts as spent.
6. Move, by moving state or on a parallel track (`plait.adapt.strategy`). What the migration would
   cost in step 5 is what the better of the two is predicted to cost.

Costs are compared with each other under the same estimates, never with costs of an earlier moment:
slow drift is still drift.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from plait.adapt.policy import PlanPolicy
from plait.adapt.strategy import Way, way_to
from plait.figures import duration
from plait.optimize.budget import Budget, Resource, show_memory
from plait.optimize.choose import choose
from plait.optimize.costs import Costs
from plait.optimize.model import Cost, Model, bits
from plait.optimize.search.candidate import Joins
from plait.optimize.statistics import PROBABILITY, Estimate, Statistics, streams_mask
from plait.plan.jtree import Node, joins
from plait.plan.labels import change_label, plan_label
from plait.plan.serde import to_dict
from plait.query.names import quoted
from plait.query.query import Query

_TRIES = 2
"""Samples without a match after which a set counts as too rare for samples to find."""

_CORRELATED = 3.0
"""The factor by which a set may be more frequent than independent predicates would make it, unless
there is evidence of more."""

Kind = Literal["stay", "learn", "move", "unqualified"]


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a processor when it decides; times are seconds of event time."""

    plan: Node
    time: float
    migrated: float | None = None
    """When the last migration began."""
    banned: Mapping[str, float] = field(default_factory=dict)
    """Plans that did not pay, and until when each is banned."""
    regret: float = 0.0
    """CPU seconds that staying has cost since another plan became better."""
    confirmed: int = 0
    """How many comparisons in a row before this one said that another plan is better."""
    nbytes: float = 0.0
    """Bytes in the states."""
    price: float = 1.0
    """CPU seconds that the current plan takes for each one that the model predicts."""
    overhead: float = 0.0
    """Seconds that a migration takes beyond computing states."""
    tries: int = 0
    """Samples that were drawn to learn uncertain estimates."""
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
    """The plan to change to, or the better plan that was found."""
    cost: Cost | None = None
    """The predicted cost of that plan."""
    way: Way | None = None
    """How to migrate to it."""
    better: bool = False
    """Whether it is cheaper by the margins, so that staying costs."""
    learn: tuple[int, ...] = ()
    """The sets of streams to sample first."""
    resource: Resource | None = None
    """The resource that is short, if the current plan does not fit the budget."""
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
    situation: Situation,
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
    >>> situation = Situation(parse_shape(chain(3), "((a b) c)"), 100.0, regret=9.0, confirmed=2)
    >>> decision = decide(chain(3), known, situation, PlanPolicy(), costs=DEFAULT)
    >>> print(decision.kind, decision.plan)
    move (a (b c))
    """
    return decide_by(Model(query, known, costs), known, situation, policy, budget or Budget())


def decide_by(
    model: Model, known: Statistics, situation: Situation, policy: PlanPolicy, limits: Budget
) -> Decision:
    """Decide by a cost model that exists already."""
    query = model.query
    space = Joins(model)
    current = _priced(model.cost(situation.plan), situation, 1.0)
    excess = max(1.0, situation.nbytes / current.bytes) if current.bytes else 1.0
    current = _priced(model.cost(situation.plan), situation, excess)
    room = None
    if limits.memory is not None and limits.unit == "bytes":
        room = max(0.0, limits.memory - situation.nbytes) / excess
    if not limits.holds(current):
        forced = _must_move(space, current, situation, policy, limits, excess)
        if forced.plan is None:
            return forced
        return replace(forced, way=_way(forced.plan, model, situation, policy, room))
    outcome = choose(space, _scaled(limits, situation, policy, excess))
    if outcome.answer == "none":
        outcome = choose(space, _scaled(limits, situation, None, excess))
    plan = space.plan(outcome.plan)
    cost = _priced(outcome.plan.cost, situation, excess)
    if plan == situation.plan or outcome.answer == "none":
        return Decision("stay", (f"{plan_label(situation.plan)} is the best plan",), current)
    gain = current.cpu - cost.cpu
    share = gain / current.cpu if current.cpu else 0.0
    said = (
        f"{change_label(situation.plan, plan)} is predicted to take {share:.0%} less CPU "
        f"({_cores(cost.cpu)} instead of {_cores(current.cpu)})"
    )
    found = Decision("stay", (said,), current, plan, cost)
    if share < policy.margin or gain < policy.least:
        why = (
            f"that is less than the margin of {policy.margin:.0%}"
            if share < policy.margin
            else f"that saves less than {_cores(policy.least)}"
        )
        return _because(found, why)
    if situation.time < (until := situation.banned.get(plan_label(plan), -1.0)):
        return _because(
            found,
            "it did not pay before and is not tried for another "
            f"{duration(until - situation.time)}",
        )
    way = _way(plan, model, situation, policy, room)
    found = replace(found, better=True, way=way)
    unsure = _unsure(query, model, known, policy, (situation.plan, plan))
    if unsure:
        names = ", ".join(_names(query, s) for s in unsure)
        worst = _at_worst(model, known, unsure, plan, situation)
        if worst is None or worst > (1 - policy.margin) * current.cpu:
            why = f"more must be known about {names} first"
            return _because(replace(found, kind="learn", learn=unsure), why)
        found = _because(
            found, f"{names} may match more often than estimated, but not enough to matter"
        )
    rest = _window(query) if policy.rest is None else policy.rest
    if situation.migrated is not None and situation.time - situation.migrated < rest:
        return _because(
            found,
            f"the last migration was {duration(situation.time - situation.migrated)} ago, and at "
            f"least {duration(rest)} must lie between two",
        )
    if situation.confirmed + 1 < policy.confirm:
        return _because(found, f"{policy.confirm} comparisons in a row must find a better plan")
    needed = policy.payback * way.work
    behind = gain * situation.waiting
    costs = f"staying has cost {duration(situation.regret)}"
    if behind:
        costs += f" and would cost {duration(behind)} for the rows that wait"
    if situation.regret + behind < needed:
        return _because(found, f"{costs} so far, the migration would take {duration(needed)}")
    why = f"{costs}, the migration takes {duration(way.work)}"
    return _because(replace(found, kind="move"), why)


def _way(
    plan: Node, model: Model, situation: Situation, policy: PlanPolicy, room: float | None
) -> Way:
    price, overhead = situation.price, situation.overhead
    return way_to(model, situation.plan, plan, policy, room=room, price=price, overhead=overhead)


def _must_move(
    space: Joins,
    current: Cost,
    situation: Situation,
    policy: PlanPolicy,
    limits: Budget,
    excess: float,
) -> Decision:
    """Find a plan that fits where the current one does not, with room to spare if possible."""
    short = limits.binding(current)
    said = (
        f"{plan_label(situation.plan)} needs {_needs(current, short)}, more than the budget of "
        f"{_limit(limits, short)}"
    )
    for spare in (policy, None):
        outcome = choose(space, _scaled(limits, situation, spare, excess))
        if outcome.answer != "none":
            break
    plan = space.plan(outcome.plan)
    cost = _priced(outcome.plan.cost, situation, excess)
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
    if plan == situation.plan:
        return Decision(
            "stay", (f"{plan_label(situation.plan)} is the only plan that fits",), current
        )
    why = f"{plan_label(plan)} needs {_needs(cost, short)}"
    return Decision("move", (said, why), current, plan, cost, resource=short)


def _scaled(
    limits: Budget, situation: Situation, spare: PlanPolicy | None, excess: float
) -> Budget:
    """Express the budget in the model's terms, less the headroom."""
    room = 1.0 if spare is None else 1 - spare.headroom
    return replace(
        limits,
        cpu=None if limits.cpu is None else limits.cpu / situation.price,
        memory=None if limits.memory is None else limits.memory * room / excess,
    )


def _priced(cost: Cost, situation: Situation, excess: float) -> Cost:
    return Cost(cost.cpu * situation.price, cost.tuples, cost.bytes * excess)


def _unsure(
    query: Query, model: Model, known: Statistics, policy: PlanPolicy, plans: tuple[Node, Node]
) -> tuple[int, ...]:
    """List the sets that only one of the plans combines and whose estimates are uncertain."""
    if not policy.confidence:
        return ()
    sure = {
        streams_mask(query, names)
        for names, estimate in known.joint.items()
        if (1.0 if estimate.confidence is None else estimate.confidence) >= policy.confidence
    }
    mine, other = (_combined_sets(model, plan) for plan in plans)
    return tuple(sorted((mine ^ other) - sure - {model.all}, key=lambda s: (s.bit_count(), s)))


def _at_worst(
    model: Model, known: Statistics, unsure: tuple[int, ...], plan: Node, situation: Situation
) -> float | None:
    """Predict a plan's CPU with uncertain sets at their upper bounds; None if one has no bound.

    Samples hardly ever find rare combinations. If some were drawn and nothing in them speaks
    against independent predicates, three or more streams are assumed to agree at most a few times
    as often as independence implies. Two streams need a measured bound.
    """
    query, names = model.query, model.query.names
    bounds = {streams_mask(query, n): e.value for n, e in known.at_most.items()}
    unbounded = [streams for streams in unsure if streams not in bounds]
    if any(s.bit_count() == 2 for s in unbounded) or (unbounded and situation.tries < _TRIES):
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
    return worst.cost(plan).cpu * situation.price


def _combined_sets(model: Model, plan: Node) -> frozenset[int]:
    """List the sets of streams that a plan combines on the path of any tuple."""
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
    return _cores(cost.cpu) if resource == "cpu" else show_memory(cost.bytes)


def _cores(cpu: float) -> str:
    """Write CPU seconds per second as people read them.

    >>> _cores(2.5), _cores(0.31), _cores(0.0123), _cores(0.0)
    ('2.5 cores', '31% of a core', '1.2% of a core', '0% of a core')
    """
    if cpu >= 1:
        return f"{cpu:.3g} core{'' if cpu == 1 else 's'}"
    if 0 < cpu < 0.001:
        return "less than 0.1% of a core"
    return f"{100 * cpu:.2g}% of a core"


def _limit(limits: Budget, resource: Resource | None) -> str:
    if resource == "cpu":
        return _cores(limits.cpu or 0.0)
    assert limits.memory is not None
    return show_memory(limits.memory, limits.unit)


def _plain(cost: Cost) -> dict[str, float]:
    return {"cpu": cost.cpu, "rows": cost.tuples, "bytes": cost.bytes}
