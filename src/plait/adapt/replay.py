"""Replay a log under another policy: decide again on the recorded statistics.

For each comparison of plans, the log has the statistics and the situation of the processor. The
replay keeps its own plan, time of migration and cost of staying; everything that follows from the
streams it takes from the log. Plans that did not run were not measured, so a replay has no guard,
and sets of streams that only such a plan would have looked up may lack an estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from plait.adapt.decide import Decision, Situation, decide
from plait.adapt.events import Event
from plait.adapt.policy import PlanPolicy
from plait.adapt.pursuit import Pursuit
from plait.errors import PlaitError, SourceError
from plait.optimize.budget import Budget, Unit
from plait.optimize.costs import Costs, from_mapping
from plait.optimize.model import Model
from plait.optimize.statistics import Statistics, read_statistics
from plait.plan.jtree import Node
from plait.plan.labels import plan_label
from plait.plan.serde import from_dict
from plait.query.query import Query
from plait.query.reading import Reader, shown
from plait.query.serde import query_from_dict

T = TypeVar("T")

UNITS: tuple[Unit, ...] = ("bytes", "tuples")
_WHOLE_LOG = "give a whole log, as Plait writes it"


@dataclass(frozen=True, slots=True)
class LogStart:
    """The first event of a log."""

    query: Query
    plan: Node
    policy: PlanPolicy
    budget: Budget
    costs: Costs


@dataclass(frozen=True, slots=True)
class ReplayedDecision:
    """One comparison: the recorded decision and the new one."""

    processor: int
    batch: int
    time: int
    recorded: Mapping[str, Any]
    decision: Decision
    plan: Node
    """The plan that the replay runs after it."""
    cost: float
    """CPU seconds per second predicted for the plan that the replay ran before it."""
    recorded_cost: float
    """CPU seconds per second predicted for the plan that really ran."""


def replay(events: Sequence[Event], policy: PlanPolicy | None = None) -> Iterator[ReplayedDecision]:
    """Decide again, by another policy or by the recorded one, for each processor in the log."""
    for processor in sorted({event.processor for event in events}):
        yield from _replay([e for e in events if e.processor == processor], policy)


def started(events: Sequence[Event]) -> LogStart:
    """Read the first event of a log."""
    first = next((event for event in events if event.kind == "started"), None)
    if first is None:
        raise SourceError(
            "the log has no beginning: the event with the query is missing",
            remedy="give a whole log, from its first line on",
        )
    query = _field(first, "query", query_from_dict)
    return LogStart(
        query,
        _field(first, "plan", lambda data: from_dict(data, query)),
        _field(first, "policy", lambda data: PlanPolicy.from_dict(_READ.mapping(data, "$"))),
        _field(first, "budget", _budget),
        _field(first, "costs", from_mapping),
    )


_READ = Reader(SourceError)


def _field(event: Event, name: str, read: Callable[[object], T]) -> T:
    """Read a field of an event, or raise an error that names the line and the field."""
    where = f"{event.origin or 'an event'}: the field {name!r}"
    if name not in event.data:
        raise SourceError(f"{where} of {event.kind!r} is missing", remedy=_WHOLE_LOG)
    try:
        return read(event.data[name])
    except PlaitError as error:
        raise SourceError(
            f"{where} is not valid: {error.message}", remedy=error.remedy or _WHOLE_LOG
        ) from None


def _budget(data: object) -> Budget:
    fields = _READ.fields(data, "$", ("cpu", "memory", "unit"))
    cpu, memory = (
        None if fields[name] is None else _READ.number(fields[name], f"$.{name}")
        for name in ("cpu", "memory")
    )
    for unit in UNITS:
        if fields["unit"] == unit:
            return Budget(cpu, memory, unit)
    raise SourceError(f"$.unit is {shown(fields['unit'])}", remedy=f"known: {', '.join(UNITS)}")


def _situation(data: object, query: Query) -> Situation:
    """Read the plan that ran and the figures of the streams; older logs lack some."""
    fields = _READ.mapping(data, "$")
    for name in ("plan", "nbytes", "price", "overhead", "tries"):
        if name not in fields:
            raise SourceError(f"$ lacks the field {name!r}")

    def figure(name: str) -> float:
        return _READ.number(fields.get(name, 0.0), f"$.{name}")

    return Situation(
        from_dict(fields["plan"], query),
        0.0,
        nbytes=figure("nbytes"),
        price=figure("price"),
        overhead=figure("overhead"),
        tries=int(figure("tries")),
        waiting=figure("waiting"),
    )


def _decision(data: object) -> Mapping[str, Any]:
    fields = _READ.mapping(data, "$")
    for name in ("kind", "plan"):
        if name not in fields:
            raise SourceError(f"$ lacks the field {name!r}")
    _READ.text(fields["kind"], "$.kind", "a kind of decision")
    if fields["plan"] is not None:
        _READ.text(fields["plan"], "$.plan", "a plan as text")
    return fields


def _replay(events: Sequence[Event], policy: PlanPolicy | None) -> Iterator[ReplayedDecision]:
    beginning = started(events)
    policy = policy or beginning.policy
    plan, pursuit = beginning.plan, Pursuit()
    migrated: float | None = None
    last: float | None = None
    for event in events:
        if event.kind != "compared":
            continue
        now = event.time / 1e6
        pursuit = pursuit.after(0.0 if last is None else now - last)
        if now == last:
            pursuit = pursuit.again()  # there was a sample since, but no batch
        last = now
        stood = _field(event, "standing", lambda data: _situation(data, beginning.query))
        known = _field(event, "statistics", read_statistics)
        recorded = _field(event, "decision", _decision)
        pursued: dict[str, Any] = {"regret": pursuit.regret, "confirmed": pursuit.confirmed}
        decision = decide(
            beginning.query,
            known,
            replace(stood, plan=plan, time=now, migrated=migrated, **pursued),
            policy,
            budget=beginning.budget,
            costs=beginning.costs,
        )
        cost, recorded_cost = _costs(beginning, known, (plan, stood.plan))
        pursuit = pursuit.decided(decision)
        if decision.kind == "move" and decision.plan is not None:
            plan, migrated, pursuit = decision.plan, now, Pursuit()
        yield ReplayedDecision(
            processor=event.processor,
            batch=event.batch,
            time=event.time,
            recorded=recorded,
            decision=decision,
            plan=plan,
            cost=cost,
            recorded_cost=recorded_cost,
        )


def _costs(beginning: LogStart, known: Statistics, plans: tuple[Node, Node]) -> tuple[float, float]:
    model = Model(beginning.query, known, beginning.costs)
    first, second = (model.cost(plan).cpu for plan in plans)
    return first, second


def summary(found: Sequence[ReplayedDecision]) -> dict[str, Any]:
    """Summarise a replay in figures: both policies side by side.

    Costs are means over event time, because plans are compared at irregular times.
    """
    moves = [r for r in found if r.decision.kind == "move"]
    spans = _spans(found)

    def mean(costs: Sequence[float]) -> float:
        return sum(c * s for c, s in zip(costs, spans, strict=True)) / (sum(spans) or 1.0)

    return {
        "comparisons": len(found),
        "recorded_moves": sum(r.recorded["kind"] == "move" for r in found),
        "moves": len(moves),
        "recorded_cost": mean([r.recorded_cost for r in found]),
        "cost": mean([r.cost for r in found]),
        "plans": [plan_label(r.plan) for r in moves],
    }


def _spans(found: Sequence[ReplayedDecision]) -> list[float]:
    """The event time since the last comparison of the same processor."""
    last: dict[int, int] = {}
    spans = []
    for r in found:
        spans.append(float(r.time - last.get(r.processor, r.time)))
        last[r.processor] = r.time
    return spans if any(spans) else [1.0] * len(found)
