"""The files that the driver writes for readers outside: the question, the history, the sink."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plait.node.reports.history import HistoryEntry, history_entry
from plait.node.reports.question import Question
from plait.spark.control.joins import RegisteredJoin
from plait.spark.control.report_files import QueryReports

QUESTION, HISTORY, SINK = "question.json", "history.jsonl", "sink.json"


def batch_records(reports: QueryReports, batches: Iterable[int]) -> list[HistoryEntry]:
    """Make the lines of the history for those batches that have reports."""
    reported = ((batch, found) for batch in batches if (found := reports.of(batch)))
    return [history_entry(batch, found, *reports.times(batch)) for batch, found in reported]


def question_of(join: RegisteredJoin) -> Question:
    """What a join was asked to do."""
    setting, routing = join.setting, join.routing
    question = Question(
        join.query, join.plan, routing.processors, None if routing.by is None else routing.table
    )
    if setting is None:
        return question
    return replace(question, policy=setting.policy, budget=setting.budget, costs=setting.costs)
