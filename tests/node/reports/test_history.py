"""What remains of batches, and how it becomes less without losing sums."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.adapt.events import Event
from plait.errors import SourceError
from plait.node.reports.history import HistoryEntry, history_entry, thinned
from plait.node.reports.report import Report


def line(number: int, chance: Random) -> HistoryEntry:
    rows = {name: chance.randrange(9) for name in ("a", "b")}
    decided = ({"kind": "judged", "batch": number},) * chance.randrange(3)
    results = chance.randrange(99)
    return HistoryEntry(number, number, number * 1.0, chance.random(), 1, rows, results=results,
                state_bytes=number, decisions=decided)  # fmt: skip


def test_thinning_keeps_sums_order_and_what_came_last() -> None:
    chance = Random(3)
    for count in (0, 1, 2, 3, 10, 101):
        lines = [line(n, chance) for n in range(count)]
        fewer = thinned(thinned(lines))
        assert len(fewer) <= len(lines)
        for name in ("results", "batches", "took"):
            total = sum(getattr(p, name) for p in lines)
            assert sum(getattr(p, name) for p in fewer) == pytest.approx(total)
        assert sum(p.rows["a"] for p in fewer) == sum(p.rows["a"] for p in lines)
        assert [p for q in fewer for p in range(q.first, q.last + 1)] == list(range(count))
        assert all(p.state_bytes == p.last for p in fewer)
        assert sum(len(p.decisions) for p in fewer) == sum(len(p.decisions) for p in lines)


def test_a_line_survives_its_text_and_nonsense_is_refused() -> None:
    past = line(7, Random(1))
    assert HistoryEntry.from_dict(past.to_dict() | {"of a later version": 1}) == past
    for wrong in ({"first": 1}, {"first": 1, "last": "2"}, {"first": 1, "last": 2, "rows": 3}):
        with pytest.raises(SourceError):
            HistoryEntry.from_dict(wrong)


def test_decisions_come_with_their_reasons_and_requests_without() -> None:
    decision = {"kind": "move", "reasons": ["cheaper"], "current": {"cpu": 2.0}, "cost": {"cpu": 1}}
    record = {"old": "(a b)", "new": "(b a)", "strategy": "moving-state", "start": 5, "pause": 0.1}
    events = [
        Event("compared", 5, 10, {"decision": decision}),
        Event("migrated", 5, 10, record | {"plan": "(b a)", "returned": False}),
    ]
    own = Report(1, 5, events=events, migrations=[record])
    (found,) = history_entry(4, [own]).decisions
    assert found["kind"] == "migrated" and found["reasons"] == ["cheaper"]
    assert (found["before"], found["after"], found["batch"], found["processor"]) == (2.0, 1, 4, 1)
    (asked,) = history_entry(4, [Report(1, 6, migrations=[record])]).decisions
    assert asked["kind"] == "asked" and asked["new"] == "(b a)"
    assert not history_entry(4, [Report(1, 9, migrations=[record])]).decisions, (
        "it goes on since long"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)
NAMES = [*HistoryEntry.__dataclass_fields__]


@pytest.mark.parametrize("found", [3, "x", None, [], [1], True, 1.5])
def test_a_line_of_another_type_is_no_batch(found: Any) -> None:
    with pytest.raises(SourceError, match="is no HistoryEntry"):
        HistoryEntry.from_dict(found)


@pytest.mark.parametrize(
    "field",
    [{"first": "3"}, {"first": True}, {"last": 2}, {"rows": {"a": None}}, {"took": float("nan")},
     {"at": float("inf")}, {"at": 10**400}, {"hottest": []}, {"hottest": [0, "x"]},
     {"decisions": [3]}, {"decisions": {"a": 1}}, {"plans": 3}],
)  # fmt: skip
def test_a_field_of_another_type_is_named(field: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match=f"{next(iter(field))}|before its first"):
        HistoryEntry.from_dict({"first": 3, "last": 3} | field)


@given(st.dictionaries(st.sampled_from(NAMES), JSON))
def test_what_is_taken_adds_up(found: dict[str, Any]) -> None:
    try:
        past = HistoryEntry.from_dict({"first": 3, "last": 3} | found)
    except SourceError:
        return
    both = past.and_then(past)
    float(sum(both.rows.values())), float(both.took), float(past.hottest[1])


@given(st.dictionaries(st.sampled_from([*Report.__dataclass_fields__]), JSON))
def test_any_report_that_is_taken_makes_a_batch(found: dict[str, Any]) -> None:
    try:
        report = Report.from_dict({"processor": 0} | found)
    except SourceError:
        return
    assert HistoryEntry.from_dict(history_entry(3, [report]).to_dict()).last == 3


@given(st.lists(JSON, max_size=3), st.sampled_from(["compared", "migrated", "judged", "x"]))
def test_any_event_that_is_taken_makes_a_batch(found: list[Any], kind: str) -> None:
    names = ("decision", "reasons", "current")
    data = dict(zip(names, found, strict=False))
    event = {"event": kind, "batch": 0, "time": 0, "processor": 0} | data
    migrated = event | {"event": "migrated"}
    report = Report.from_dict({"processor": 0, "events": [event, migrated]})
    assert history_entry(3, [report]).last == 3
