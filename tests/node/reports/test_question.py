"""A question survives its file, whatever it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.adapt.policy import PlanPolicy
from plait.errors import PlaitError
from plait.groups.routing.table import initial
from plait.machine.sealed import sealed
from plait.node.reports.question import Question
from plait.optimize.budget import Budget
from plait.testing.examples import trades_quotes_news


def test_a_question_survives_its_file() -> None:
    asked = Question(trades_quotes_news, "(trades quotes news)", 3)
    full = replace(
        asked, table=initial([0, 1, 2]), policy=PlanPolicy(margin=0.5), budget=Budget(0.5)
    )
    for question in (asked, full):
        assert Question.from_json(question.to_json()) == question


def test_what_is_no_question_is_refused() -> None:
    for text in ("", "[]", "{}", sealed({"query": {}}), sealed({"plan": 3})):
        with pytest.raises(PlaitError):
            Question.from_json(text)
