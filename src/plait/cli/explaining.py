"""`plait explain`."""

from __future__ import annotations

import json
from typing import Any

from plait.cli.inputs import Inputs
from plait.cli.planning import Limits
from plait.cli.show import say
from plait.errors import PlanError
from plait.plan.jtree import Node
from plait.plan.labels import class_texts
from plait.plan.serde import to_dict
from plait.query.query import Query


def explain_query(inputs: Inputs, limits: Limits, *, as_json: bool) -> None:
    """Print the query and its plan; with statistics or limits, the plan that is chosen by them."""
    asked = limits.applied(inputs.asked())
    plan = inputs.plan_for(asked)
    if not as_json:
        say(asked.explain(plan))
        return
    query = {"query": described(asked.query)}
    if plan is None and (asked.limits is not None or asked.known is not None):
        say(json.dumps(query | asked.planned.to_dict(), indent=2))
        return
    runs = asked.plan(plan)
    if not isinstance(runs, Node):
        raise PlanError(f"{runs} has no form in JSON", remedy="leave --json out")
    say(json.dumps(query | {"plan": to_dict(runs)}, indent=2))


def described(query: Query) -> dict[str, Any]:
    """What is asked, in the types of JSON; times are in microseconds."""
    return {
        "streams": [
            {
                "name": s.name,
                "time": s.time,
                "watermark_delay_us": None if s.unlimited else s.delay,
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
