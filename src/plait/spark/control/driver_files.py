"""The files that the clerk of a join writes, for those who read them."""

from __future__ import annotations

from plait.node.reports.history import Past, past_of
from plait.node.reports.question import Question
from plait.spark.control.directory import Control
from plait.spark.control.joins import RegisteredJoin

QUESTION, HISTORY, SINK = "question.json", "history.jsonl", "sink.json"


def batch_record(control: Control, query: str, batch: int) -> Past | None:
    """What remains of a batch of which there are reports."""
    reports = control.reports(query, batch)
    if not reports:
        return None
    at, took = control.times(query, batch)
    return past_of(batch, reports, at, took)


def question_of(join: RegisteredJoin) -> Question:
    """What a join was asked to do."""
    setting, routing = join.setting, join.routing
    return Question(
        join.query,
        join.plan,
        routing.processors,
        None if routing.by is None else routing.table,
        *(() if setting is None else (setting.policy, setting.budget, setting.costs)),
    )
