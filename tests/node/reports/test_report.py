"""Reports come back from JSON, add up over batches, and are refused by name when damaged."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.adapt.events import Event
from plait.errors import SourceError
from plait.node.reports.report import SUMMED, Report, added, plus

COUNTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9))
GROUPS = st.dictionaries(st.sampled_from("ab"), st.dictionaries(st.integers(0, 9), st.integers()))
EVENTS = st.builds(
    Event, st.just("judged"), st.integers(), st.integers(), st.just({"paid": True}), st.integers()
)
REPORTS = st.builds(
    Report,
    st.integers(0, 9),
    st.integers(0, 9),
    rows=COUNTS,
    late=COUNTS,
    groups=GROUPS,
    results=st.integers(0, 9),
    rebuilt=st.booleans(),
    written_bytes=st.integers(0, 9),
    unwritten=COUNTS,
    events=st.lists(EVENTS, max_size=2),
    notes=st.lists(st.text(), max_size=2),
    seconds=st.dictionaries(st.sampled_from(["join", "write"]), st.integers(0, 9)),
)


@given(REPORTS)
def test_a_report_comes_back_from_json(report: Report) -> None:
    assert Report.from_json(report.to_json()) == report


def test_what_only_a_replay_needs_stays_behind() -> None:
    long = Event("compared", 1, 2, {"statistics": {"rates": [1.0]}, "reasons": ["it pays"]})
    (found,) = Report.from_json(Report(0, events=[long]).to_json()).events
    assert found.data == {"reasons": ["it pays"]}


def test_fields_of_another_version_are_left_out_and_missing_ones_are_blank() -> None:
    found = Report.from_dict({"processor": 3, "heat": 7, "rebuilt": 1})
    assert found == Report(3, rebuilt=True)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"processor": "0"}, "processor cannot be '0'"),
        ({"processor": 0, "rows": [1]}, r"rows\[0\] cannot be 1"),
        ({"processor": 0, "notes": None}, "notes cannot be None"),
        ({"processor": 0, "rebuilt": "yes"}, "rebuilt cannot be 'yes'"),
        (
            {"processor": 0, "events": [{"event": "judged"}]},
            "it is no report: a EventHead lacks the field 'batch'",
        ),
        ({"processor": 0, "events": [3]}, "it is no report"),
        ({"processor": 0, "groups": {"a": 3}}, r"groups\['a'\] cannot be 3"),
        ({"processor": 0, "rows": {"a": "x"}}, r"rows\['a'\] cannot be 'x'"),
        ({"processor": 0, "seconds": {"a": float("inf")}}, r"seconds\['a'\] cannot be inf"),
        ({"processor": 0, "states": {"a": [1, None]}}, r"states\['a'\]\[1\] cannot be None"),
        ({"processor": 0, "migrations": [3]}, r"migrations\[0\] cannot be 3"),
        ({"processor": 0, "total": {"late": 3}}, "late cannot be 3"),
        (
            {"processor": 0, "events": [{"event": 3, "batch": 0, "time": 0, "processor": 0}]},
            "it is no report",
        ),
        ({"processor": 0, "groups": {"a": {"x": 3}}}, "it is no report"),
        ({}, "it is no report"),
    ],
)
def test_what_is_no_report_is_named(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        Report.from_dict(parts)


@given(st.lists(REPORTS, max_size=4))
def test_the_sums_are_those_of_all_batches(reports: list[Report]) -> None:
    total: dict[str, Any] = reduce(added, reports, {})
    assert set(total) == (set(SUMMED) if reports else set())
    for name in ("results", "rebuilt", "written_bytes"):
        assert total.get(name, 0) == sum(getattr(r, name) for r in reports)
    for name in ("rows", "late", "unwritten", "seconds"):
        found = total.get(name, {})
        for key in {key for r in reports for key in getattr(r, name)}:
            assert found.pop(key) == sum(getattr(r, name).get(key, 0) for r in reports)
        assert not found


def test_sums_go_on_from_those_of_an_earlier_version() -> None:
    """Its totals lack the fields that it did not know."""
    found = added({"results": 2, "rows": {"a": 1}}, Report(0, rows={"b": 5}, late={"a": 1}))
    assert (found["results"], found["rows"], found["late"]) == (2, {"a": 1, "b": 5}, {"a": 1})


@given(COUNTS, COUNTS)
def test_adding_changes_neither_side(a: dict[str, int], b: dict[str, int]) -> None:
    before = (dict(a), dict(b))
    assert plus(a, b) == plus(b, a)
    assert plus(a, 0) == plus(0, a) == a
    assert (a, b) == before
