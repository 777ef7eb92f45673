"""Values fit the annotations of a dataclass, or are named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import SourceError
from plait.node.durable.fields import wrong_field
from plait.node.reports.history import Past, past_of
from plait.node.reports.report import Report

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)
NAMES = [*Past.__dataclass_fields__]


@pytest.mark.parametrize("given", [3, "x", None, [], [1], True, 1.5])
def test_a_line_of_another_type_is_no_batch(given: Any) -> None:
    with pytest.raises(SourceError, match="not an object"):
        Past.from_dict(given)


@pytest.mark.parametrize(
    "field",
    [{"first": "3"}, {"first": True}, {"last": 2}, {"rows": {"a": None}}, {"took": float("nan")},
     {"at": float("inf")}, {"at": 10**400}, {"hottest": []}, {"hottest": [0, "x"]},
     {"decisions": [3]}, {"decisions": {"a": 1}}, {"plans": 3}],
)  # fmt: skip
def test_a_field_of_another_type_is_named(field: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match=f"'{next(iter(field))}'|make no sense"):
        Past.from_dict({"first": 3, "last": 3} | field)


@given(st.dictionaries(st.sampled_from(NAMES), JSON))
def test_what_is_taken_adds_up(found: dict[str, Any]) -> None:
    try:
        past = Past.from_dict({"first": 3, "last": 3} | found)
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
    assert Past.from_dict(past_of(3, [report]).to_dict()).last == 3


@given(st.lists(JSON, max_size=3), st.sampled_from(["compared", "migrated", "judged", "x"]))
def test_any_event_that_is_taken_makes_a_batch(found: list[Any], kind: str) -> None:
    names = ("decision", "reasons", "current")
    data = dict(zip(names, found, strict=False))
    event = {"event": kind, "batch": 0, "time": 0, "processor": 0} | data
    migrated = event | {"event": "migrated"}
    report = Report.from_dict({"processor": 0, "events": [event, migrated]})
    assert past_of(3, [report]).last == 3


def test_fields_of_others_are_left_out() -> None:
    assert wrong_field(Past, {"heat": object()}) is None
