"""What can be asked of a driver, and nothing else."""

from __future__ import annotations

import pytest

from plait.errors import SourceError
from plait.machine.sealed import sealed
from plait.node.reports.requests import PlanAnswer, PlanRequest


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"action": "stop"}, "action cannot be 'stop'"),
        ({"action": "pin"}, "no plan"),
        ({"action": "release", "plan": "(a b)"}, "has no plan"),
        ({"action": "pin", "plan": 3}, "plan cannot be 3"),
        ({"action": "pin", "plan": "(a b)", "strategy": "soon"}, "strategy cannot be 'soon'"),
    ],
)
def test_nonsense_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        PlanRequest.from_json(sealed(wrong))
    with pytest.raises(SourceError):
        PlanAnswer.from_json(sealed({"request": wrong, "epoch": 1, "refused": "", "at": 0}))


def test_requests_and_answers_survive_their_files() -> None:
    asked = PlanRequest("migrate", "((a b) c)", "parallel-track", 7.5)
    assert PlanRequest.from_json(asked.to_json()) == asked
    told = PlanAnswer(asked, refused="no", at=8.0)
    assert PlanAnswer.from_json(told.to_json()) == told
