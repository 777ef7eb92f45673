"""`plait explain` and `plait plan`: the query as it is understood, and the plan that runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from plait.api.sql import Sql, sql
from plait.cli.inputs import chosen_plan, open_question, per_stream, read_text, sql_text, too_deep
from plait.cli.options import Limits, PlanChoice, QuestionOptions
from plait.cli.show import say, show_json
from plait.errors import PlanError, StatisticsError
from plait.local.sources.types import parse_type
from plait.optimize.statistics import read_statistics
from plait.plan.jtree import Node
from plait.plan.labels import class_texts
from plait.plan.serde import to_dict
from plait.query.query import Query


def explain_query(
    question: QuestionOptions, choice: PlanChoice, limits: Limits, out: Path | None
) -> None:
    """Print the query and its plan; with statistics or limits, the plan that they choose."""
    asked = limited(open_question(question)[0], limits)
    plan = chosen_plan(choice, asked)
    if not show_json(out, lambda: _explained(asked, plan)):
        say(asked.explain(plan))


def _explained(asked: Sql, plan: Any) -> dict[str, Any]:
    query = {"query": described(asked.query)}
    if plan is None and (asked.limits is not None or asked.known is not None):
        return query | asked.planned.to_dict()
    runs = asked.plan(plan)
    if not isinstance(runs, Node):
        raise PlanError(f"{runs} has no form in JSON", remedy="leave --json out")
    return query | {"plan": to_dict(runs)}


def described(query: Query) -> dict[str, Any]:
    """Describe what is asked in the types of JSON; times are in microseconds."""
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


def choose_plan(question: QuestionOptions, limits: Limits, out: Path | None) -> int:
    """Choose a plan, from files or from the columns in the statistics; 1 if none is qualified."""
    found = limited(_asked(question, limits), limits).planned
    if not show_json(out, found.to_dict):
        say(found.explain())
    return 0 if found.qualified else 1


def limited(asked: Sql, limits: Limits) -> Sql:
    """Add the statistics and the budget to a question."""
    if limits.stats is not None:
        data = stats_file(limits.stats)
        data.pop("columns", None)
        asked = asked.statistics(read_statistics(data, str(limits.stats)))
    if limits.cpu is not None or limits.memory is not None:
        asked = asked.budget(cpu=limits.cpu, memory=limits.memory)
    return asked


def stats_file(path: Path) -> dict[str, Any]:
    """Read statistics as they stand, with the `columns` of the tables that they may give."""
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise StatisticsError(f"{path} is no JSON: {error}") from None
    except RecursionError:
        raise too_deep(path) from None
    if not isinstance(data, dict):
        raise StatisticsError(f"{path} is no object", remedy='write {"rates": {...}}')
    return data


def _asked(question: QuestionOptions, limits: Limits) -> Sql:
    columns = stats_file(limits.stats).get("columns") if limits.stats is not None else None
    if question.streams or columns is None:
        return open_question(question)[0]
    schemas = _schemas(columns, str(limits.stats))
    times = per_stream(question.times or (), "--time", "ts", schemas)
    if isinstance(times, str):
        times = dict.fromkeys(schemas, times)
    late = per_stream(question.watermarks or (), "--watermark", '"2 seconds"', schemas)
    return sql(schemas, sql_text(question), time=times, watermark=late)


def _schemas(columns: object, where: str) -> dict[str, pa.Schema]:
    if not isinstance(columns, Mapping) or not all(
        isinstance(c, Mapping) for c in columns.values()
    ):
        raise StatisticsError(
            f"{where}: columns is no object of objects",
            remedy='write {"columns": {"trades": {"ts": "timestamp", "sym": "string"}}}',
        )
    return {
        str(table): pa.schema([(str(n), parse_type(str(t))) for n, t in named.items()])
        for table, named in columns.items()
    }
