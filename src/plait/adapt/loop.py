"""The loop of one processor: notice, decide, ask for another plan, check that it paid.

`advance` takes the loop's memory and an observation. It returns the new memory, a request, and
events for the log. It has no clock, no engine and no randomness: the host of an engine measures,
draws samples and changes plans (`plait.node.adapting`).

*Order.* After rows were joined: learn from the counters; ask for samples where windows hold rows
from before a jump; judge the last change of the plan; compare plans; if the decision depends on an
uncertain estimate, ask for samples of it and compare again.

*Invariants.* Comparing plans takes at most the share of time that the policy allows. The estimates
that drift is measured against change only when plans are compared. While a trial or a parallel
track is under way, only a lack of memory or CPU changes the plan.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, NamedTuple

from plait.adapt.decide import Decision, Situation, decide_by
from plait.adapt.events import Event, EventKind
from plait.adapt.guard import Trial, judge
from plait.adapt.knowledge import BatchObservations, geometry
from plait.adapt.observations import (
    ChangePlan,
    Compared,
    IncomingRows,
    Joined,
    Observation,
    PlanChanged,
    Request,
    Sampled,
)
from plait.adapt.pursuit import Pursuit
from plait.adapt.setting import Setting
from plait.adapt.state import Comparison, Inspection, Loop, Price
from plait.adapt.strategy import way_to
from plait.adapt.when import due, estimates, expected_rates, steady, wanted_sample
from plait.optimize.model import Cost, Model
from plait.optimize.statistics import ROWS_PER_SECOND, Estimate, Statistics, statistics_to_dict
from plait.plan.jtree import Node
from plait.plan.labels import change_label, plan_label
from plait.plan.serde import to_dict
from plait.query.serde import query_to_dict

_LEAST_BATCHES = 3
"""The fewest batches in a trial."""

_PRICES = (0.1, 20.0)
"""The plausible range of a price; anything beyond has another cause."""

_SAMPLES = 3
"""The most samples in a row to settle a doubt or an estimate that a decision depends on."""


class LoopStep(NamedTuple):
    """The outcome of an observation: the loop's memory, a request, and events."""

    loop: Loop
    request: Request | None = None
    events: tuple[Event, ...] = ()
    """For the log; the host adds the batch and the processor."""
    compared: bool = False
    """Whether plans were compared: then the host reports how long this step took."""


def advance(setting: Setting, loop: Loop, observed: Observation) -> LoopStep:
    """Take in an observation."""
    match observed:
        case Joined():
            return _joined(setting, loop, observed)
        case IncomingRows():
            return _coming(setting, loop, observed)
        case Sampled():
            return _sampled(setting, loop, observed)
        case Compared():
            return _after_comparison(setting, loop, observed)
        case PlanChanged():
            return _moved(loop, observed)


def beginning(setting: Setting, plan: Node) -> Event:
    """Make the first event of a log."""
    return Event(
        "started",
        0,
        0,
        {
            "query": query_to_dict(setting.query),
            "plan": to_dict(plan),
            "policy": setting.policy.to_dict(),
            "budget": asdict(setting.budget),
            "costs": asdict(setting.costs),
        },
    )


# -- rows were joined


def _joined(setting: Setting, loop: Loop, observed: Joined) -> LoopStep:
    loop = _seen(setting, loop, observed)
    events: tuple[Event, ...] = ()
    if loop.course.following and not observed.migrating:
        if observed.ended is not None:
            plan = loop.course.following
            events = (_event(loop, "ended", **{**observed.ended.to_dict(), "plan": plan}),)
        loop = replace(loop, course=replace(loop.course, following=""))
    if observed.migrating:
        return LoopStep(loop, None, events)
    loop = replace(loop, look=Inspection(observed.plan))
    if draw := wanted_sample(setting, loop):
        return LoopStep(loop, draw, events)
    return _judged(setting, loop, events)


def _seen(setting: Setting, loop: Loop, observed: Joined) -> Loop:
    """Take in the counts and times of an observation."""
    course, spent, comparison, price = loop.course, loop.spent, loop.comparison, loop.price
    since = loop.knowledge.time if course.batches else observed.oldest
    seen = BatchObservations(
        time=max(observed.newest, since),
        span=max(0.0, (observed.newest - since) / 1e6),
        stored=observed.stored,
        looked=observed.looked,
        seconds=observed.seconds,
        nbytes=observed.nbytes,
        waiting=observed.waiting,
    )
    span, seconds = seen.span, seen.seconds
    knowledge = loop.knowledge.learn(seen, geometry(setting.query))
    began = knowledge.time / 1e6 - span if course.began is None else course.began
    # The time of two plans together says nothing about either.
    two, trial = observed.migrating or course.tracked, loop.trial
    if two:
        knowledge = knowledge.restarted()
    elif comparison.usual:
        excess = max(0.0, comparison.excess + seconds - comparison.usual * span)
        comparison = replace(comparison, excess=excess)
    if trial is not None and not two:
        trial = trial.after(seconds, span)
    if price.overhead:
        # A first migration is slow for reasons that do not recur.
        fades = 0.5 ** (span / setting.window) if setting.window else 0.0
        price = replace(price, overhead=price.overhead * fades)
    return replace(
        loop,
        knowledge=knowledge,
        course=replace(course, batches=course.batches + 1, began=began, tracked=observed.migrating),
        spent=replace(spent, joining=spent.joining + seconds),
        comparison=comparison,
        pursuit=loop.pursuit.after(span),
        price=price,
        trial=trial,
    )


def _sampled(setting: Setting, loop: Loop, observed: Sampled) -> LoopStep:
    """Take in a sample and go on."""
    look, knowledge = loop.look, loop.knowledge
    assert look is not None, "a sample was requested"
    for step, rows in observed.steps:
        (stream,) = step.target
        gathered = sum(1 << s for s in step.gathered)
        knowledge = knowledge.sampled(gathered, 1 << stream, step.pairs, step.matches, rows)
    look = replace(look, drawn=look.drawn + 1)
    spent = replace(
        loop.spent, sampling=loop.spent.sampling + observed.seconds, last=observed.seconds
    )
    pursuit = loop.pursuit.spending(observed.seconds, sample=True)
    loop = replace(loop, knowledge=knowledge, spent=spent, pursuit=pursuit, look=look)
    if look.compared:
        return _compared(setting, loop, look.plan)
    if look.drawn < _SAMPLES and knowledge.doubtful() and (draw := wanted_sample(setting, loop)):
        return LoopStep(loop, draw)
    return _judged(setting, loop)


def _judged(setting: Setting, loop: Loop, events: tuple[Event, ...] = ()) -> LoopStep:
    """Judge the last change of the plan, once it has run long enough; then compare plans."""
    look, trial, policy = loop.look, loop.trial, setting.policy
    assert look is not None, "the loop looks at a piece"
    if trial is None or trial.batches < _LEAST_BATCHES or trial.span < setting.trial:
        return _compared(setting, loop, look.plan, events)
    known = trial.filled_up(setting.statistics(loop.knowledge), policy.confidence)
    model = Model(setting.query, known, setting.costs)
    verdict = judge(trial, model.cost(trial.old).cpu, policy.tolerance)
    bans = loop.bans
    if not verdict.paid:
        bans = bans.after(plan_label(trial.new), loop.time, policy.backoff * setting.trial)
    loop = replace(loop, trial=None, bans=bans)
    labels = {"plan": plan_label(look.plan), "old": plan_label(trial.old)}
    events = (*events, _event(loop, "judged", **labels, **verdict.to_dict()))
    if verdict.paid or look.plan != trial.new:
        return _compared(setting, loop, look.plan, events)
    memory, price = setting.budget.memory, loop.price
    way = way_to(
        model,
        look.plan,
        trial.old,
        policy,
        room=None if memory is None else max(0.0, memory - loop.knowledge.nbytes),
        price=price.value,
        overhead=price.overhead,
        # The model is wrong about this plan: that is why it is left.
        running=trial.seconds / trial.span if trial.span else None,
    )
    back = Decision(
        "move", (verdict.reason, "go back to the old plan"), Cost(0, 0, 0), trial.old, way=way
    )
    move = ChangePlan(back, trial.old, way, look.plan, known, returned=True)
    return LoopStep(replace(loop, look=None, asked=move), move, events)


# -- plans are compared


def _compared(setting: Setting, loop: Loop, plan: Node, events: tuple[Event, ...] = ()) -> LoopStep:
    """Compare plans under current estimates, if a comparison is due."""
    if not due(setting, loop):
        return LoopStep(replace(loop, look=None), None, events)
    known = setting.statistics(loop.knowledge)
    model = Model(setting.query, known, setting.costs)
    loop = replace(loop, price=_priced(setting, loop, model, plan))
    if loop.comparison.batch == loop.course.batches:
        # There was a sample since, but no batch.
        loop = replace(loop, pursuit=loop.pursuit.again())
    situation = situation_of(loop, plan)
    decision = decide_by(model, known, situation, setting.policy, setting.budget)
    knowledge = loop.knowledge
    usual = loop.comparison.usual
    if knowledge.timed:
        usual = knowledge.seconds / knowledge.timed
    loop = replace(
        loop,
        knowledge=knowledge.lasting(),
        comparison=Comparison(
            loop.course.batches, estimates(setting, loop), usual, short=loop.comparison.short
        ),
        pursuit=loop.pursuit.decided(decision),
        look=Inspection(plan, compared=True, drawn=_lessons(loop)),
    )
    loop, observed = _acted(loop, decision, situation, known)
    return LoopStep(loop, None, (*events, *observed), compared=True)


def _lessons(loop: Loop) -> int:
    """Count the samples since the first comparison after a piece."""
    return loop.look.drawn if loop.look is not None and loop.look.compared else 0


def _after_comparison(setting: Setting, loop: Loop, observed: Compared) -> LoopStep:
    """Add the time of a comparison; then act on it, or ask for a sample that it needs."""
    seconds, look = observed.seconds, loop.look
    assert look is not None, "plans were compared"
    spent = replace(loop.spent, comparing=loop.spent.comparing + seconds, last=seconds)
    loop = replace(loop, spent=spent, pursuit=loop.pursuit.spending(seconds))
    if loop.asked is not None:
        return LoopStep(replace(loop, look=None), loop.asked)
    if look.drawn < _SAMPLES and loop.pursuit.learn and (draw := wanted_sample(setting, loop)):
        return LoopStep(loop, draw)
    return LoopStep(replace(loop, look=None))


def situation_of(loop: Loop, plan: Node) -> Situation:
    """Describe the processor as it is when it decides."""
    return Situation(
        plan=plan,
        time=loop.time,
        migrated=loop.course.migrated,
        banned=loop.bans.until,
        regret=loop.pursuit.regret,
        confirmed=loop.pursuit.confirmed,
        nbytes=loop.knowledge.nbytes,
        price=loop.price.value,
        overhead=loop.price.overhead,
        tries=loop.pursuit.tries,
        waiting=loop.waiting,
    )


def _priced(setting: Setting, loop: Loop, model: Model, plan: Node) -> Price:
    """Compare the plan's measured time with the model's prediction, once the plan runs steadily."""
    knowledge = loop.knowledge
    if knowledge.timed > 0 and steady(setting, loop):
        foreseen = model.cost(plan).cpu
        if foreseen > 0:
            least, most = _PRICES
            taken = knowledge.seconds / knowledge.timed
            value = min(most, max(least, taken / foreseen))
            return replace(loop.price, value=value, measured=True)
    return loop.price


def _acted(
    loop: Loop, decision: Decision, situation: Situation, known: Statistics
) -> tuple[Loop, tuple[Event, ...]]:
    """Request what was decided, and record it for the log."""
    data = {"statistics": statistics_to_dict(known), "standing": situation.to_dict()}
    events = [_event(loop, "compared", **data, decision=decision.to_dict())]
    short = "" if decision.fits or decision.resource is None else decision.resource
    if short != loop.comparison.short:
        loop = replace(loop, comparison=replace(loop.comparison, short=short))
        if short:
            why = {"resource": short, "reasons": list(decision.reasons)}
            events.append(_event(loop, "unqualified", plan=plan_label(situation.plan), **why))
    if decision.kind == "move" and decision.plan is not None and decision.way is not None:
        move = ChangePlan(decision, decision.plan, decision.way, situation.plan, known)
        loop = replace(loop, asked=move)
    return loop, tuple(events)


# -- rows arrive


def _coming(setting: Setting, loop: Loop, observed: IncomingRows) -> LoopStep:
    """Look ahead: check whether the plan fits the memory if rows arrive at this rate."""
    span = (observed.newest - loop.knowledge.time) / 1e6
    if not setting.limited or not loop.knowledge.heard or span <= 0:
        return LoopStep(loop)
    rates = [rows / span for rows in observed.rows]
    foreseen = expected_rates(setting, loop, rates)
    if foreseen is None:
        return LoopStep(loop)
    loop = replace(loop, comparison=replace(loop.comparison, foreseen=foreseen))
    known = setting.statistics(loop.knowledge)
    faster = {
        name: Estimate(max(rate, known.rates[name].value), ROWS_PER_SECOND)
        for name, rate in zip(setting.query.names, rates, strict=True)
    }
    known = replace(known, rates=faster)
    model = Model(setting.query, known, setting.costs)
    situation = situation_of(loop, observed.plan)
    decision = decide_by(model, known, situation, setting.policy, setting.budget)
    if decision.resource != "memory":
        return LoopStep(loop)
    loop, events = _acted(loop, decision, situation, known)
    return LoopStep(loop, loop.asked, events)


# -- the plan was changed


def _moved(loop: Loop, observed: PlanChanged) -> LoopStep:
    """Take in the migration that was made or refused."""
    record, move = observed.record, loop.asked
    assert move is not None, "a migration was requested"
    loop = replace(loop, asked=None)
    old, new = plan_label(move.old), plan_label(move.plan)
    if record.refused:
        return LoopStep(loop, None, (_event(loop, "migrated", refused=record.refused, plan=old),))
    decision, overhead = move.decision, loop.price.overhead
    computing = max(0.0, move.way.pause - overhead)
    forced = move.returned or decision.resource is not None
    trial = None
    if not forced and decision.cost is not None and decision.current.cpu:
        predicted = decision.cost.cpu / decision.current.cpu
        joint = {name: estimate.value for name, estimate in move.known.joint.items()}
        trial = Trial(move.old, move.plan, loop.time, predicted, loop.price.value, joint=joint)
    following = new if record.status == "under way" else ""
    loop = replace(
        loop,
        knowledge=loop.knowledge.restarted(),
        course=replace(loop.course, migrated=loop.time, following=following),
        comparison=replace(
            loop.comparison,
            estimates=None,
            usual=0.0 if decision.cost is None else decision.cost.cpu,
            excess=0.0,
        ),
        pursuit=Pursuit(),
        price=replace(loop.price, overhead=max(0.0, record.pause - computing)),
        trial=trial,
    )
    data = record.to_dict() | {
        "old": old,
        "plan": new,
        "returned": move.returned,
        "change": change_label(move.old, move.plan),
    }
    return LoopStep(loop, None, (_event(loop, "migrated", **data),))


def _event(loop: Loop, kind: EventKind, **data: Any) -> Event:
    return Event(kind, 0, loop.knowledge.time, data)
