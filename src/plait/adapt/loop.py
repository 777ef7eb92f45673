"""The loop of one processor: notice, decide, ask for another plan, check that it paid.

`advance` takes what the loop remembers and what it is told, and returns what it remembers then,
what it asks for, and what happened, for the log. It has no clock, no engine and no randomness:
whoever hosts an engine measures, draws samples and changes plans (`plait.node.adapting`).

*Order.* After rows were joined: learn from the counters; ask for samples where windows hold rows
from before a leap; judge the last change of the plan; compare plans; and if the decision hangs on
something that is not sure, ask for samples of that and compare again.

*Invariants.* Plans are compared at most for the share of the time that the policy allows. The
estimates that drift is measured against change only when plans are compared. While a trial or a
parallel track is under way, only a lack of memory or CPU changes the plan.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, NamedTuple

from plait.adapt.decide import Decision, Standing, decide_by
from plait.adapt.events import Event, EventKind
from plait.adapt.guard import Trial, judge
from plait.adapt.knowledge import Seen, geometry
from plait.adapt.pursuit import Pursuit
from plait.adapt.setting import Setting
from plait.adapt.state import Comparison, Loop, PieceLook, Price
from plait.adapt.strategy import way_to
from plait.adapt.told import ChangePlan, Coming, Compared, Joined, PlanChanged, Sampled, Told, Wish
from plait.adapt.when import due, estimates, expected_rates, steady, wanted_sample
from plait.optimize.model import Cost, Model
from plait.optimize.statistics import ROWS_PER_SECOND, Estimate, Statistics, statistics_to_dict
from plait.plan.jtree import Node
from plait.plan.labels import plan_label
from plait.plan.serde import to_dict
from plait.query.serde import query_to_dict

_LEAST_BATCHES = 3
"""Batches in a trial, at least."""

_PRICES = (0.1, 20.0)
"""What may be true of a price; beyond that something else went wrong."""

_SAMPLES = 3
"""Samples in a row, at most, to settle a doubt or to learn what a decision hangs on."""


class LoopStep(NamedTuple):
    """What the loop remembers after it was told something, what it asks for, and what happened."""

    loop: Loop
    wish: Wish | None = None
    events: tuple[Event, ...] = ()
    """For the log; whoever keeps it knows the batch and the processor."""
    compared: bool = False
    """Whether plans were compared: then the loop must be told how long this step took."""


def advance(setting: Setting, loop: Loop, told: Told) -> LoopStep:
    """What the loop makes of what it is told."""
    match told:
        case Joined():
            return _joined(setting, loop, told)
        case Coming():
            return _coming(setting, loop, told)
        case Sampled():
            return _sampled(setting, loop, told)
        case Compared():
            return _after_comparison(setting, loop, told)
        case PlanChanged():
            return _moved(loop, told)


def beginning(setting: Setting, plan: Node) -> Event:
    """The beginning of a log."""
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


def _joined(setting: Setting, loop: Loop, told: Joined) -> LoopStep:
    loop = _seen(setting, loop, told)
    events: tuple[Event, ...] = ()
    if loop.course.following and not told.migrating:
        if told.ended is not None:
            plan = loop.course.following
            events = (_event(loop, "ended", **{**told.ended.to_dict(), "plan": plan}),)
        loop = replace(loop, course=replace(loop.course, following=""))
    if told.migrating:
        return LoopStep(loop, None, events)
    loop = replace(loop, look=PieceLook(told.plan))
    if draw := wanted_sample(setting, loop):
        return LoopStep(loop, draw, events)
    return _judged(setting, loop, events)


def _seen(setting: Setting, loop: Loop, told: Joined) -> Loop:
    """With what was counted and measured."""
    course, spent, comparison, price = loop.course, loop.spent, loop.comparison, loop.price
    since = loop.knowledge.time if course.batches else told.oldest
    seen = Seen(
        max(told.newest, since),
        max(0.0, (told.newest - since) / 1e6),
        told.stored,
        told.looked,
        told.seconds,
        told.nbytes,
        told.waiting,
    )
    span, seconds = seen.span, seen.seconds
    knowledge = loop.knowledge.learnt(seen, geometry(setting.query))
    began = knowledge.time / 1e6 - span if course.began is None else course.began
    # What two plans take together says nothing about either.
    two, trial = told.migrating or course.tracked, loop.trial
    if two:
        knowledge = knowledge.restarted()
    elif comparison.usual:
        excess = max(0.0, comparison.excess + seconds - comparison.usual * span)
        comparison = replace(comparison, excess=excess)
    if trial is not None and not two:
        trial = trial.after(seconds, span)
    if price.overhead:
        # A first migration is slow for reasons that do not come again.
        fades = 0.5 ** (span / setting.window) if setting.window else 0.0
        price = replace(price, overhead=price.overhead * fades)
    return replace(
        loop,
        knowledge=knowledge,
        course=replace(course, batches=course.batches + 1, began=began, tracked=told.migrating),
        spent=replace(spent, joining=spent.joining + seconds),
        comparison=comparison,
        pursuit=loop.pursuit.after(span),
        price=price,
        trial=trial,
    )


def _sampled(setting: Setting, loop: Loop, told: Sampled) -> LoopStep:
    """Go on with what a sample showed."""
    look, knowledge = loop.look, loop.knowledge
    assert look is not None, "a sample was asked for"
    for step, rows in told.steps:
        (stream,) = step.target
        gathered = sum(1 << s for s in step.gathered)
        knowledge = knowledge.sampled(gathered, 1 << stream, step.pairs, step.matches, rows)
    look = replace(look, drawn=look.drawn + 1)
    spent = replace(loop.spent, sampling=loop.spent.sampling + told.seconds, last=told.seconds)
    pursuit = loop.pursuit.spending(told.seconds, sample=True)
    loop = replace(loop, knowledge=knowledge, spent=spent, pursuit=pursuit, look=look)
    if look.compared:
        return _compared(setting, loop, look.plan)
    if look.drawn < _SAMPLES and knowledge.doubtful() and (draw := wanted_sample(setting, loop)):
        return LoopStep(loop, draw)
    return _judged(setting, loop)


def _judged(setting: Setting, loop: Loop, events: tuple[Event, ...] = ()) -> LoopStep:
    """Whether the last change of the plan paid, once that can be said; then compare plans."""
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
    back = Decision("move", (verdict.reason, "go back"), Cost(0, 0, 0), trial.old, way=way)
    move = ChangePlan(back, trial.old, way, look.plan, known, returned=True)
    return LoopStep(replace(loop, look=None, asked=move), move, events)


# -- plans are compared


def _compared(setting: Setting, loop: Loop, plan: Node, events: tuple[Event, ...] = ()) -> LoopStep:
    """Compare plans if it is time to, under what is known now."""
    if not due(setting, loop):
        return LoopStep(replace(loop, look=None), None, events)
    known = setting.statistics(loop.knowledge)
    model = Model(setting.query, known, setting.costs)
    loop = replace(loop, price=_priced(setting, loop, model, plan))
    if loop.comparison.batch == loop.course.batches:
        # There was a sample since, but no batch.
        loop = replace(loop, pursuit=loop.pursuit.again())
    standing = standing_of(loop, plan)
    decision = decide_by(model, known, standing, setting.policy, setting.budget)
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
        look=PieceLook(plan, compared=True, drawn=_lessons(loop)),
    )
    loop, told = _acted(loop, decision, standing, known)
    return LoopStep(loop, None, (*events, *told), compared=True)


def _lessons(loop: Loop) -> int:
    """Samples that were drawn since the first comparison after a piece."""
    return loop.look.drawn if loop.look is not None and loop.look.compared else 0


def _after_comparison(setting: Setting, loop: Loop, told: Compared) -> LoopStep:
    """A comparison took so long; then what it said, or a sample of what it hangs on."""
    seconds, look = told.seconds, loop.look
    assert look is not None, "plans were compared"
    spent = replace(loop.spent, comparing=loop.spent.comparing + seconds, last=seconds)
    loop = replace(loop, spent=spent, pursuit=loop.pursuit.spending(seconds))
    if loop.asked is not None:
        return LoopStep(replace(loop, look=None), loop.asked)
    if look.drawn < _SAMPLES and loop.pursuit.learn and (draw := wanted_sample(setting, loop)):
        return LoopStep(loop, draw)
    return LoopStep(replace(loop, look=None))


def standing_of(loop: Loop, plan: Node) -> Standing:
    """Where the processor stands when it decides."""
    return Standing(
        plan,
        loop.time,
        loop.course.migrated,
        loop.bans.until,
        loop.pursuit.regret,
        loop.pursuit.confirmed,
        loop.knowledge.nbytes,
        loop.price.value,
        loop.price.overhead,
        loop.pursuit.tries,
        loop.waiting,
    )


def _priced(setting: Setting, loop: Loop, model: Model, plan: Node) -> Price:
    """What the plan takes for each second that the model foresees, if that can be said now."""
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
    loop: Loop, decision: Decision, standing: Standing, known: Statistics
) -> tuple[Loop, tuple[Event, ...]]:
    """The loop that asks for what was decided, and what the log says about it."""
    data = {"statistics": statistics_to_dict(known), "standing": standing.to_dict()}
    events = [_event(loop, "compared", **data, decision=decision.to_dict())]
    short = "" if decision.fits or decision.resource is None else decision.resource
    if short != loop.comparison.short:
        loop = replace(loop, comparison=replace(loop.comparison, short=short))
        if short:
            why = {"resource": short, "reasons": list(decision.reasons)}
            events.append(_event(loop, "unqualified", plan=plan_label(standing.plan), **why))
    if decision.kind == "move" and decision.plan is not None and decision.way is not None:
        move = ChangePlan(decision, decision.plan, decision.way, standing.plan, known)
        loop = replace(loop, asked=move)
    return loop, tuple(events)


# -- rows are coming


def _coming(setting: Setting, loop: Loop, told: Coming) -> LoopStep:
    """Look ahead: whether the plan fits the memory if rows come that fast."""
    span = (told.newest - loop.knowledge.time) / 1e6
    if not setting.limited or not loop.knowledge.heard or span <= 0:
        return LoopStep(loop)
    rates = [rows / span for rows in told.rows]
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
    standing = standing_of(loop, told.plan)
    decision = decide_by(model, known, standing, setting.policy, setting.budget)
    if decision.resource != "memory":
        return LoopStep(loop)
    loop, events = _acted(loop, decision, standing, known)
    return LoopStep(loop, loop.asked, events)


# -- the plan was changed


def _moved(loop: Loop, told: PlanChanged) -> LoopStep:
    """What was asked for was done, or refused."""
    record, move = told.record, loop.asked
    assert move is not None, "a move was asked for"
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
    data = record.to_dict() | {"old": old, "plan": new, "returned": move.returned}
    return LoopStep(loop, None, (_event(loop, "migrated", **data),))


def _event(loop: Loop, kind: EventKind, **data: Any) -> Event:
    return Event(kind, 0, loop.knowledge.time, data)
