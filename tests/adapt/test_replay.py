from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.adapt.conftest import POLICY

from plait.adapt.events import Event
from plait.adapt.policy import PlanPolicy
from plait.adapt.replay import replay, started, summary
from plait.errors import SourceError
from plait.node.reports.event_log import read_events, write_events


@pytest.mark.slow
@pytest.mark.parametrize("field", ["query", "plan", "policy", "budget", "costs"])
@pytest.mark.parametrize("value", [None, [], 7, "x", {"x": 1}, ...])
def test_a_beginning_that_is_not_whole_is_refused(
    events: list[Event], tmp_path: Path, field: str, value: object
) -> None:
    with pytest.raises(SourceError, match=rf"0\.jsonl:1: the field {field!r}"):
        list(replay(changed(events, 0, field, value, tmp_path)))


@pytest.mark.parametrize("field", ["statistics", "standing", "decision"])
@pytest.mark.parametrize("value", [None, [], 7, "x", {"x": 1}, ...])
def test_a_comparison_that_is_not_whole_is_refused(
    events: list[Event], tmp_path: Path, field: str, value: object
) -> None:
    at = next(n for n, event in enumerate(events) if event.kind == "compared")
    with pytest.raises(SourceError, match=rf"0\.jsonl:{at + 1}: the field {field!r}"):
        list(replay(changed(events, at, field, value, tmp_path)))


@pytest.mark.parametrize("figure", ["nbytes", "price", "overhead", "tries", "waiting"])
@pytest.mark.parametrize("value", [None, -1, float("nan"), float("inf"), "1", 10**400])
def test_figures_of_a_comparison_are_numbers(
    events: list[Event], tmp_path: Path, figure: str, value: object
) -> None:
    at = next(n for n, event in enumerate(events) if event.kind == "compared")
    stood = {**events[at].data["standing"], figure: value}
    with pytest.raises(SourceError, match=rf"the field 'standing' .*\$\.{figure} is"):
        list(replay(changed(events, at, "standing", stood, tmp_path)))


def changed(events: list[Event], at: int, field: str, value: object, folder: Path) -> list[Event]:
    """The events as a log has them in which one field is another, or missing."""
    data = {**events[at].data, field: value}
    if value is ...:
        del data[field]
    log = folder / "0.jsonl"
    write_events([*events[:at], replace(events[at], data=data), *events[at + 1 :]], log)
    return read_events(log)


def test_the_recorded_policy_decides_the_same_again(events: list[Event]) -> None:
    found = list(replay(events))
    recorded = [(e.batch, e.data["decision"]["kind"]) for e in events if e.kind == "compared"]
    assert [(r.batch, r.decision.kind) for r in found] == recorded
    figures = summary(found)
    assert figures["moves"] == figures["recorded_moves"] >= 1
    assert figures["cost"] == pytest.approx(figures["recorded_cost"])


def test_another_policy_decides_otherwise(events: list[Event]) -> None:
    assert started(events).policy == POLICY
    never = summary(list(replay(events, PlanPolicy(margin=1.0))))
    assert never["moves"] == 0 < never["recorded_moves"] and never["cost"] > never["recorded_cost"]


def test_a_log_without_its_beginning_is_refused(events: list[Event]) -> None:
    with pytest.raises(SourceError, match="no beginning"):
        list(replay(events[1:]))
