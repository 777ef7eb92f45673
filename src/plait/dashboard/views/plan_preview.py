"""Predict what another plan and the migration to it would cost, before anybody requests it.

The models are those by which processors decide: the cost model of plans, and the two cost models of
migrations. Their input is what each processor estimated when it last compared plans. Processors
without estimates are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from plait.adapt.policy import PlanPolicy
from plait.adapt.strategy import way_to
from plait.dashboard.reading.snapshot import JoinSnapshot, ProcessorEstimates
from plait.errors import MigrationError, PlaitError
from plait.node.reports.question import Question
from plait.optimize.model import Model
from plait.optimize.statistics import read_statistics
from plait.plan.diff import diff
from plait.plan.jtree import Join, Leaf, Node
from plait.plan.labels import plan_label, state_label
from plait.plan.migration import Strategy
from plait.plan.text import read_plan


@dataclass(frozen=True, slots=True)
class ProcessorPreview:
    """One processor under the plan that it has and under another one."""

    processor: int
    now: float
    """CPU seconds per second of event time."""
    then: float
    bytes_now: float
    bytes_then: float
    pause: float
    """Seconds in which nothing comes out."""
    work: float
    """CPU seconds that the migration takes."""
    strategy: Strategy
    reason: str


@dataclass(frozen=True, slots=True)
class PlanPreview:
    """What a requested plan would cost."""

    plan: str
    label: str
    """The plan with its probe orders."""
    processors: tuple[ProcessorPreview, ...] = ()
    silent: int = 0
    """Processors of which nothing is known."""
    kept: tuple[str, ...] = ()
    """States that both plans have."""
    made: tuple[str, ...] = ()
    """States that must be computed."""
    budget: float | None = None
    """Bytes that the state of one processor may take."""

    @property
    def pause(self) -> float:
        """Of the slowest processor."""
        return max((p.pause for p in self.processors), default=0.0)

    @property
    def too_large(self) -> bool:
        """Whether the states would take more than they may."""
        most = max((p.bytes_then for p in self.processors), default=0.0)
        return self.budget is not None and most > self.budget

    @property
    def change(self) -> float | None:
        """By what share the CPU time of all processors changes; None if that is not known."""
        now = sum(p.now for p in self.processors)
        return sum(p.then for p in self.processors) / now - 1 if now else None


def preview(
    snapshot: JoinSnapshot, plan: str, strategy: Strategy | Literal["auto"] = "auto"
) -> PlanPreview:
    """Predict the cost of a plan; PlaitError if it is no plan of the question."""
    question = snapshot.question
    if question is None:
        raise MigrationError(
            "the question of this query is not known here, so no plan can be read",
            remedy="wait for its first batch",
        )
    wanted = read_plan(question.query, plan)
    if not isinstance(wanted, Join | Leaf):
        raise MigrationError(
            f"a query cannot go over to {wanted} while it runs", remedy="give a tree of joins"
        )
    found, kept, made = [], set[str](), set[str]()
    latest = snapshot.latest
    for processor in sorted(latest):
        running = _running(question, latest[processor].plan)
        if running is None:
            continue
        difference = diff(question.query, running, wanted)
        combined = [s for s in (*difference.kept, *difference.moved) if len(s.streams) > 1]
        kept |= {state_label(question.query, s.streams) for s in combined}
        made |= {state_label(question.query, s.streams) for s in difference.recomputed}
        belief = snapshot.estimates.get(processor)
        foreseen = None if belief is None else _foreseen(
            question, processor, running, wanted, belief, strategy
        )  # fmt: skip
        if foreseen is not None:
            found.append(foreseen)
    silent = len(latest) - len(found)
    return PlanPreview(
        plan=str(wanted),
        label=plan_label(wanted),
        processors=tuple(found),
        silent=silent,
        kept=tuple(sorted(kept)),
        made=tuple(sorted(made)),
        budget=question.budget.memory if question.budget.unit == "bytes" else None,
    )


def _running(question: Question, plan: str) -> Node | None:
    """The plan that a processor reports; None if it is a router or of another question."""
    try:
        found = read_plan(question.query, plan)
    except PlaitError:
        return None
    return found if isinstance(found, Join | Leaf) else None


def _foreseen(
    question: Question,
    processor: int,
    running: Node,
    wanted: Node,
    belief: ProcessorEstimates,
    strategy: Strategy | Literal["auto"],
) -> ProcessorPreview | None:
    try:
        model = Model(question.query, read_statistics(belief.statistics), question.costs)
    except PlaitError:
        return None
    price, overhead, held = (_number(belief.standing, n) for n in ("price", "overhead", "nbytes"))
    now, then = model.cost(running), model.cost(wanted)
    memory, room = question.budget.memory, None
    if strategy == "moving-state":
        room = 0.0  # then there is no room for both plans, and moving state is what is left
    elif strategy == "auto" and memory is not None:
        room = max(0.0, memory - held)
    way = way_to(
        model,
        running,
        wanted,
        _limits(question.policy or PlanPolicy(), strategy),
        room=room,
        price=price or 1.0,
        overhead=overhead,
    )
    return ProcessorPreview(
        processor=processor,
        now=now.cpu * (price or 1.0),
        then=then.cpu * (price or 1.0),
        bytes_now=now.bytes,
        bytes_then=then.bytes,
        pause=way.pause,
        work=way.work,
        strategy=way.strategy,
        reason=way.reason if strategy == "auto" else "as you chose",
    )


def _limits(policy: PlanPolicy, strategy: Strategy | Literal["auto"]) -> PlanPolicy:
    """The policy by which a parallel track comes out if it was chosen: any pause is too long."""
    return replace(policy, latency=1e-9) if strategy == "parallel-track" else policy


def _number(given: Mapping[str, Any], name: str) -> float:
    found = given.get(name, 0.0)
    return float(found) if isinstance(found, int | float) else 0.0
