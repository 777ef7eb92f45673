"""The files that the clerk of a join writes, for those who read them."""

from __future__ import annotations

from plait.hosts.spark.control import Control
from plait.node.history import Past, past_of

QUESTION, HISTORY = "question.json", "history.jsonl"


def past_batch(control: Control, query: str, batch: int) -> Past | None:
    """What remains of a batch of which there are reports."""
    reports = control.reports(query, batch)
    if not reports:
        return None
    at, took = control.times(query, batch)
    return past_of(batch, reports, at, took)
