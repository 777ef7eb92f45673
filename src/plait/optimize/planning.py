"""Choose a plan from a query, statistics and a budget, and explain the choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from plait.errors import NoQualifiedPlan
from plait.optimize.budget import Budget, show_memory
from plait.optimize.choose import choose
from plait.optimize.costs import DEFAULT, Costs
from plait.optimize.model import Cost, Model
from plait.optimize.outcome import Attempt, Outcome
from plait.optimize.search.candidate import Joins, kind
from plait.optimize.statistics import Statistics
from plait.plan.explain import explain
from plait.plan.jtree import Join, Leaf, Node
from plait.plan.jtree import joins as joins_of
from plait.plan.serde import to_dict
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan (qualified, or the nearest one), and the reasons for the choice."""

    query: Query
    budget: Budget
    outcome: Outcome
    space: Joins = field(repr=False)

    @property
    def plan(self) -> Node:
        """The plan itself."""
        return self.space.plan(self.outcome.plan)

    @property
    def cost(self) -> Cost:
        """The estimated cost of the plan."""
        return self.outcome.plan.cost

    @property
    def qualified(self) -> bool:
        """Whether the plan is within the budget."""
        return self.outcome.answer != "none"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions made where statistics are missing."""
        return self.space.model.known.assumptions

    def require(self) -> Node:
        """Return the plan, or raise NoQualifiedPlan with the limit and the nearest plan."""
        if self.qualified:
            return self.plan
        raise NoQualifiedPlan(
            f"{'no plan' if self.outcome.proven else 'no plan was found that'} "
            f"fits {self.budget}: the nearest, {self.plan}, {_exceeds(self.budget, self.cost)}",
            remedy="raise that limit, shorten the window, or filter the streams"
            + ("" if self.outcome.proven else "; it is not proven that none exists"),
        )

    def explain(self) -> str:
        """Write the query, the plan with estimates, the alternatives and the limits."""
        text = explain(self.query, self.plan, notes(self.space.model, self.plan))
        return "\n".join([text, "", *self._summary()])

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the plan as `plait run --plan-file` reads it, and the estimates."""
        return {
            "answer": self.outcome.answer,
            "plan": to_dict(self.plan),
            "shape": str(self.plan),
            "algorithm": self.outcome.chosen.algorithm,
            "proven": self.outcome.proven,
            "estimate": _cost_dict(self.cost),
            "budget": {"cpu": self.budget.cpu, f"memory_{self.budget.unit}": self.budget.memory},
            "binding": self.budget.binding(self.cost),
            "alternatives": [
                {
                    "algorithm": a.algorithm,
                    "shape": str(self.space.plan(a.plan)),
                    "qualified": self.budget.holds(a.plan.cost),
                    "estimate": _cost_dict(a.plan.cost),
                }
                for a in self._alternatives()
            ],
            "assumptions": list(self.assumptions),
        }

    def _alternatives(self) -> list[Attempt]:
        """List the other plans that were proposed, each once."""
        chosen = self.outcome.chosen
        seen, found = {str(self.plan)}, []
        for attempt in self.outcome.attempts:
            shape = str(self.space.plan(attempt.plan))
            if attempt is not chosen and shape not in seen:
                seen.add(shape)
                found.append(attempt)
        return found

    def _summary(self) -> Iterator[str]:
        budget, cost = self.budget, self.cost
        verdict = (
            f"{kind(self.outcome.plan)}, found by {self.outcome.chosen.algorithm}"
            if self.qualified
            else "none; the plan above is the nearest"
            + ("" if self.outcome.proven else " (it is not proven that none exists)")
        )
        yield f"qualified  {verdict}"
        yield f"needs      {show_cost(cost)}"
        if budget.cpu is not None or budget.memory is not None:
            yield f"budget     {budget}"
            yield f"binding    {_binding(budget, cost)}"
        for n, attempt in enumerate(self._alternatives()):
            title = "" if n else "rejected"
            yield (
                f"{title:<10} {self.space.plan(attempt.plan)} by {attempt.algorithm}: "
                f"{show_cost(attempt.plan.cost)}; {_why_not(budget, cost, attempt.plan.cost)}"
            )
        for n, assumption in enumerate(self.assumptions):
            yield f"{'' if n else 'assumed':<10} {assumption}"


def plan_query(
    query: Query,
    statistics: Statistics | None = None,
    budget: Budget | None = None,
    costs: Costs = DEFAULT,
) -> Planned:
    """Choose a plan.

    >>> from plait.testing.examples import chain
    >>> known = Statistics.of({"a": 20, "b": 20, "c": 500}, {"a.a = b.a": 0.001, "b.b = c.b": 0.1})
    >>> str(plan_query(chain(3), known).plan)
    '((a b) c)'
    """
    space = Joins(Model(query, statistics or Statistics(), costs))
    limits = budget or Budget()
    return Planned(query, limits, choose(space, limits), space)


def notes(model: Model, plan: Node) -> dict[frozenset[str], str]:
    """Estimate the cost and output of each operator and window of a plan."""
    found: dict[frozenset[str], str] = {}
    for join in joins_of(plan):
        parts = [model.mask(child) for child in join.children]
        operations = model.join_operations(parts, join.orders)
        root = sum(parts) == model.all
        operations += model.output_operations(parts)
        for child in join.children:
            if isinstance(child, Leaf):
                own = model.mask(child)
                state = model.state_cost(own, _indexes(model, join, own))
                found[frozenset(child.streams)] = (
                    f"{_rate(model.made(own))} in, {state.tuples:.4g} rows, "
                    f"{show_memory(state.bytes)}"
                )
        text = f"{_rate(model.made(sum(parts)))} out, {_cpu(operations.seconds(model.costs))}"
        if not root:
            above = next(j for j in joins_of(plan) if join in j.children)
            state = model.state_cost(sum(parts), _indexes(model, above, sum(parts)))
            text += f", {state.tuples:.4g} rows, {show_memory(state.bytes)}"
        found[frozenset(join.streams)] = text
    return found


def _indexes(model: Model, join: Join, target: int) -> set[int]:
    parts = [model.mask(child) for child in join.children]
    used = set()
    for c, order in enumerate(join.orders):
        gathered = parts[c]
        for k in order:
            if parts[k] == target:
                used.add(model.shared(gathered, target))
            gathered |= parts[k]
    return used


def show_cost(cost: Cost) -> str:
    """Write CPU and memory in a few words.

    >>> show_cost(Cost(0.25, 1200.0, 64_000.0))
    '25 % CPU, 64 kB (1200 rows)'
    """
    return f"{_cpu(cost.cpu)}, {show_memory(cost.bytes)} ({cost.tuples:.4g} rows)"


def _cpu(seconds: float) -> str:
    return f"{100 * seconds:.3g} % CPU"


def _rate(rows: float) -> str:
    return f"{rows:.4g} rows/s"


def _cost_dict(cost: Cost) -> dict[str, float]:
    return {"cpu": cost.cpu, "rows": cost.tuples, "bytes": cost.bytes}


def _binding(budget: Budget, cost: Cost) -> str:
    resource = budget.binding(cost)
    if resource == "cpu":
        assert budget.cpu is not None
        return f"CPU: {_share(cost.cpu / budget.cpu)} the limit"
    assert budget.memory is not None
    return f"memory: {_share(budget.memory_of(cost) / budget.memory)} the limit"


def _share(ratio: float) -> str:
    return f"{100 * ratio:.3g} % of" if ratio < 10 else f"{ratio:.3g} times"


def _exceeds(budget: Budget, cost: Cost) -> str:
    parts = []
    if budget.cpu is not None and cost.cpu > budget.cpu:
        parts.append(
            f"needs {cost.cpu:.3g} CPU, {_times(cost.cpu / budget.cpu)} the limit of {budget.cpu:g}"
        )
    if budget.memory is not None and budget.memory_of(cost) > budget.memory:
        own = budget.memory_of(cost)
        parts.append(
            f"needs {show_memory(own, budget.unit)} of memory, "
            f"{_times(own / budget.memory)} the limit of "
            f"{show_memory(budget.memory, budget.unit)}"
        )
    return " and ".join(parts)


def _times(ratio: float) -> str:
    return f"{100 * (ratio - 1):.3g} % more than" if ratio < 2 else f"{ratio:.3g} times"


def _why_not(budget: Budget, chosen: Cost, cost: Cost) -> str:
    if not budget.holds(cost):
        return _exceeds(budget, cost)
    if cost.cpu > chosen.cpu:
        return f"{cost.cpu / max(chosen.cpu, 1e-12):.3g} times the CPU"
    return "qualified too"
