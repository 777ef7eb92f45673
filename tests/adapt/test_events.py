from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.adapt.conftest import QUERY, batches

from plait.adapt.events import Event, read_events, write_events
from plait.adapt.policy import Policy
from plait.adapt.replay import replay, started, summary
from plait.errors import PolicyError, SourceError
from plait.optimize.costs import DEFAULT
from plait.plan.jtree import parse_shape
from plait.runtime.local import LocalRun

POLICY = Policy(sampling=0.5, effort=1.0, look=0.0)


@pytest.fixture(scope="module")
def events() -> list[Event]:
    run = LocalRun(QUERY, parse_shape(QUERY, "(s0 (s1 s2))"), adapt=POLICY, costs=DEFAULT)
    for batch in batches(30, lambda s: "k" if s < 15 else "m"):
        run.push(batch)
    return run.events


def test_a_log_is_read_as_it_was_written(events: list[Event], tmp_path: Path) -> None:
    log = tmp_path / "events" / "0.jsonl"
    write_events(events[:2], log)
    write_events(events[2:], log)
    again = read_events(log.parent)
    assert again == [Event.from_dict(json.loads(e.to_json())) for e in events]


def test_of_a_repeated_batch_the_last_try_counts(tmp_path: Path) -> None:
    log = tmp_path / "0.jsonl"
    first = [Event("compared", 3, 7, {"try": 1}), Event("migrated", 3, 7)]
    write_events([Event("started", 0, 0)], log, "a")
    write_events(first, log, "b")
    write_events([Event("compared", 3, 7, {"try": 2})], log, "c")
    assert [(e.kind, e.batch, e.data.get("try")) for e in read_events(log)] == [
        ("started", 0, None),
        ("compared", 3, 2),
    ]


def test_a_torn_last_line_is_left_out_but_no_other(tmp_path: Path) -> None:
    log = tmp_path / "0.jsonl"
    write_events([Event("started", 0, 0), Event("judged", 1, 1)], log)
    whole = log.read_text()
    log.write_text(whole[:-20])
    assert [e.kind for e in read_events(log)] == ["started"]
    log.write_text("{}\n" + whole)
    with pytest.raises(SourceError, match=r"0\.jsonl:1 is no event"):
        read_events(log)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            '{"event": "judged", "batch": null, "time": 0, "processor": 0}',
            r"\$\.batch is null, not",
        ),
        (
            '{"event": "judged", "batch": 1, "time": 1e3, "processor": 0}',
            r"\$\.time is 1000\.0, not",
        ),
        ('{"event": "judged", "batch": 1, "time": 1}', r"\$ lacks the field 'processor'"),
        ('{"event": 7, "batch": 1, "time": 1, "processor": 0}', r"\$\.event is 7, not a kind"),
        (f'{{"event": "judged", "batch": 1, "time": {2**63}, "processor": 0}}', "of 64 bits"),
        ('{"event": "judged", "batch": 1, "time": 1, "processor": 0, "attempt": []}', "attempt"),
        ("[" * 100_000, "it is no JSON"),
        ("null", r"\$ is null, not an object"),
        ("", "it is no JSON"),
    ],
)
def test_an_error_names_the_file_the_line_and_the_field(
    tmp_path: Path, line: str, why: str
) -> None:
    log = tmp_path / "0.jsonl"
    write_events([Event("started", 0, 0)], log)
    log.write_text(f"{log.read_text()}{line}\n")
    with pytest.raises(SourceError, match=rf"0\.jsonl:2 is no event: .*{why}"):
        read_events(log)
    log.write_bytes(b"\xff\n")
    with pytest.raises(SourceError, match=r"0\.jsonl cannot be read: no text in UTF-8"):
        read_events(log)


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


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no event logs"):
        read_events(tmp_path)
    with pytest.raises(SourceError, match="cannot be read"):
        read_events(tmp_path / "nothing")


def test_the_recorded_policy_decides_the_same_again(events: list[Event]) -> None:
    found = list(replay(events))
    recorded = [(e.batch, e.data["decision"]["kind"]) for e in events if e.kind == "compared"]
    assert [(r.batch, r.decision.kind) for r in found] == recorded
    figures = summary(found)
    assert figures["moves"] == figures["recorded_moves"] >= 1
    assert figures["cost"] == pytest.approx(figures["recorded_cost"])


def test_another_policy_decides_otherwise(events: list[Event]) -> None:
    assert started(events).policy == POLICY
    never = summary(list(replay(events, Policy(margin=1.0))))
    assert never["moves"] == 0 < never["recorded_moves"] and never["cost"] > never["recorded_cost"]


def test_a_log_without_its_beginning_is_refused(events: list[Event]) -> None:
    with pytest.raises(SourceError, match="no beginning"):
        list(replay(events[1:]))


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"margin": -0.1}, "margin=-0.1; give a number from 0 to 1"),
        ({"confidence": 1.5}, "confidence=1.5; give a number from 0 to 1"),
        ({"rest": float("nan")}, "rest=nan"),
        ({"least": "much"}, "least='much'"),
        ({"half_life": 0}, "half_life=0; give more"),
        ({"sample_rows": 0}, "sample_rows=0; give a whole number"),
        ({"confirm": True}, "confirm=True"),
        ({"backoff": float("inf")}, "backoff=inf"),
    ],
)
def test_thresholds_without_sense_are_refused(bad: dict[str, object], why: str) -> None:
    with pytest.raises(PolicyError) as error:
        Policy.from_dict(bad)
    assert why in str(error.value)
