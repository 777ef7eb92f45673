from __future__ import annotations

import json

import pytest

from plait.adapt.events import Event

pytestmark = pytest.mark.slow


def test_every_event_of_a_run_survives_as_a_line(events: list[Event]) -> None:
    assert {event.kind for event in events} >= {"started", "compared", "migrated", "judged"}
    for event in events:
        plain = json.loads(event.to_json())
        again = Event.from_dict(plain)
        assert (again.kind, again.batch, again.time) == (event.kind, event.batch, event.time)
        assert again.data.keys() == event.data.keys()
        assert json.loads(again.to_json()) == plain


def test_in_brief_an_event_lacks_what_only_a_replay_needs(events: list[Event]) -> None:
    compared = next(event for event in events if event.kind == "compared")
    brief = compared.brief()
    assert "decision" in brief and not {"statistics", "standing"} & brief.keys()
    assert brief["decision"]["reasons"] and brief["event"] == "compared"
