"""`plait explain`."""

from __future__ import annotations

import json
from typing import Any

from plait.cli.inputs import Inputs
from plait.cli.planning import Limits
from plait.cli.show import say
from plait.errors import PlanError
from plait.plan.explain import explain
from plait.plan.jtree import Node, mjoin
from plait.plan.labels import class_texts
from plait.plan.routed import Plan
from plait.plan.serde import to_dict
from plait.query.query import Query


def explain_query(inputs: Inputs, limits: Limits, *, as_json: bool) -> None:
    """Print the query and its plan; with statistics or limits, the plan that is chosen by them."""
    query = inputs.asked().query
    if limits.given and inputs.plan is None and inputs.plan_file is None:
        found = limits.planned(query)
        described = {"query": query_to_dict(query), **found.to_dict()}
        say(json.dumps(described, indent=2) if as_json else found.explain())
        return
    plan = inputs.tree(query)
    if not as_json:
        say(explained(query, plan))
        return
    if not isinstance(plan, Node):
        raise PlanError(f"{plan} has no form in JSON", remedy="leave --json out")
    say(json.dumps({"query": query_to_dict(query), "plan": to_dict(plan)}, indent=2))


def explained(query: Query, plan: Plan) -> str:
    """The query and what runs it, as a text for people."""
    if isinstance(plan, Node):
        return explain(query, plan)
    question, _, _ = explain(query, mjoin(query)).partition("\n\n")
    return f"{question}\n\nplan {plan}: decided for each tuple at run time"


def query_to_dict(query: Query) -> dict[str, Any]:
    """What is asked, in the types of JSON; times are in microseconds."""
    return {
        "streams": [
            {
                "name": s.name,
                "time": s.time,
                "watermark_delay_us": s.delay,
                "columns": {f.name: str(f.type) for f in s.fields},
            }
            for s in query.streams
        ],
        "on": list(class_texts(query)),
        "where": [str(r) for r in query.residuals],
        "bounds_us": [list(row) for row in query.bounds.matrix],
        "select": [
            {"name": o.name, "expression": str(o.expr), "type": str(f.type)}
            for o, f in zip(query.select, query.schema, strict=True)
        ],
    }
