"""Lengths of time as people write them."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import WindowError
from plait.query.durations import LONGEST, micros, positive, show_micros, unit_micros


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 seconds", 10_000_000),
        ("1 s", 1_000_000),
        ("250ms", 250_000),
        ("250 MILLISECONDS", 250_000),
        ("1.5 min", 90_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("2 days", 172_800_000_000),
        ("1 week", 604_800_000_000),
        ("-5 sec", -5_000_000),
        ("0.000001 s", 1),
        ("7 us", 7),
        (dt.timedelta(milliseconds=3), 3_000),
    ],
)
def test_durations(text: str | dt.timedelta, expected: int) -> None:
    assert micros(text) == expected


@pytest.mark.parametrize(
    "text", ["", "10", "ten seconds", "10 parsecs", "5 s 3", "0.1 us", "1 month"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(WindowError) as caught:
        micros(text, what="the window")
    assert f"the window {text!r} is not a length of time in whole microseconds" in str(caught.value)
    assert "write for example '10 seconds'" in str(caught.value)


def test_other_things_are_no_duration() -> None:
    with pytest.raises(WindowError, match="duration is 10, not a length of time"):
        micros(10)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(WindowError, match="longer than a century"):
        micros("40000 days")


@pytest.mark.parametrize("width", ["0 s", "-1 minute", dt.timedelta(0)])
def test_a_window_must_be_longer_than_nothing(width: str | dt.timedelta) -> None:
    with pytest.raises(WindowError) as caught:
        positive(width, what="the window")
    assert f"the window is {str(width)!r}: a window must be longer than 0" in str(caught.value)


@given(st.integers(-LONGEST, LONGEST))
def test_what_is_shown_is_read_back(total: int) -> None:
    assert micros(show_micros(total)) == total


def test_units() -> None:
    assert unit_micros("Hours") == 3_600_000_000
    assert unit_micros("fortnight") is None
