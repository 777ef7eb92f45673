"""Take over the delay of a DataFrame's watermark, and remove the watermark from its plan.

Spark allows one watermark on the way from a source to a sink («Redefining watermark is
disallowed»). A watermark below the join would do nothing there, since event-time progress travels
in the packets, and would forbid the results one of their own. So it is taken out of the plan of
the input. That is sound where nothing but projections, filters and unions is above it: these do
not look at watermarks. A watermark below an operator with state of its own stays, because that
operator needs it; then the results cannot have another one.

A DataFrame of Spark Connect has no plan on this side; its watermark stays too.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from plait.query.query import Query

_DELAY = "spark.watermarkDelayMs"
_WATERMARK = "EventTimeWatermark"
_TRANSPARENT = frozenset({"Project", "Filter", "SubqueryAlias", "Union", "View"})
"""Logical operators that mean the same without a watermark below them."""


def watermark_delays(frame: DataFrame) -> dict[str, int]:
    """The event-time columns that a DataFrame has a watermark on, with the delay in microseconds.

    Spark records the delay in the metadata of the column.
    """
    return {
        f.name: int(f.metadata[_DELAY]) * 1_000
        for f in frame.schema.fields
        if _DELAY in (f.metadata or {})
    }


def without_watermarks(streams: Sequence[str]) -> str:
    """What it means that streams have no watermark, in a sentence.

    >>> without_watermarks(["a"]).partition(",")[0]
    "'a' has no watermark"
    """
    listed = ", ".join(map(repr, streams))
    some = f"{listed} has no watermark, so none of its rows is ever late, and what waits for it"
    return (
        f"{some} stays in the state, which grows for ever; say how late rows may be: "
        ".watermark('10 seconds') on the join, or withWatermark on the DataFrame"
    )


def warn_without_watermarks(query: Query) -> None:
    """Say at the start that state will grow, where streams have no watermark."""
    if endless := [s.name for s in query.streams if s.unlimited]:
        warnings.warn(without_watermarks(endless), stacklevel=2)


def without_watermark(frame: DataFrame) -> DataFrame:
    """The same rows without a watermark, where it can be taken out."""
    java = getattr(frame, "_jdf", None)
    if java is None or not frame.isStreaming:
        return frame
    plan = java.queryExecution().analyzed()
    without, changed = _without(plan)
    if not changed:
        return frame
    found = java.ofRows(java.sparkSession(), without)
    return type(frame)(found, frame.sparkSession)


def _without(plan: Any) -> tuple[Any, bool]:
    """A logical plan without its topmost watermarks, and whether there were any."""
    kind = plan.getClass().getSimpleName()
    if kind == _WATERMARK:
        return _without(plan.child())[0], True
    if kind not in _TRANSPARENT:
        return plan, False
    children, changed = plan.children(), False
    for i in range(children.size()):
        child, gone = _without(children.apply(i))
        if gone:
            children, changed = children.updated(i, child), True
    return (plan.withNewChildren(children) if changed else plan), changed
