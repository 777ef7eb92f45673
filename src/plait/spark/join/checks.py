"""What can be wrong with a join before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from plait.errors import DuplicateName, PlanError, SourceError
from plait.groups.routing.malformed import MALFORMED
from plait.plan.jtree import check_plan
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query


def check_plan_on_spark(query: Query, plan: Plan) -> None:
    """Refuse a plan that is not one of the query, or that lets tuples wait for later batches."""
    if isinstance(plan, Teddies) and plan.patience:
        raise PlanError(
            f"on Spark no tuple may wait beyond its batch, as {plan} lets it",
            remedy="leave patience at 0",
        )
    if not isinstance(plan, Eddies | Teddies):
        check_plan(query, plan)


def check_frames(query: Query, frames: Mapping[str, DataFrame]) -> None:
    """Refuse missing DataFrames, and static ones beside streaming ones.

    Spark does not mix static and streaming inputs in one stateful operator.
    """
    if missing := [name for name in query.names if name not in frames]:
        raise SourceError(f"there is no DataFrame for the stream {missing[0]!r}")
    static = [name for name in query.names if not frames[name].isStreaming]
    if static and len(static) < len(query.names):
        streaming = next(name for name in query.names if frames[name].isStreaming)
        raise SourceError(
            f"{static[0]!r} is a static DataFrame, but {streaming!r} is a stream",
            remedy="read it with readStream, or join it with the results afterwards",
        )


def check_malformed_name(query: Query, late: str | None, malformed: bool) -> None:
    """Refuse a stream whose name is that of the malformed values in the column `late`."""
    if late and malformed and MALFORMED in query.names:
        raise DuplicateName(
            f"a stream is called {MALFORMED!r}, as is what {late} has of malformed values",
            remedy="give the stream another name",
        )
