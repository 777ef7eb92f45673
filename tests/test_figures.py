"""Figures for people: no exponents, and one form for one kind of figure."""

from __future__ import annotations

import re

import pytest

from plait.figures import duration, event_time, instant, size


@pytest.mark.parametrize("power", range(-12, 13))
@pytest.mark.parametrize("factor", [1.0, 3.03, 9.996, -2.5])
def test_a_duration_has_no_exponent_and_at_most_four_digits(power: int, factor: float) -> None:
    text = duration(factor * 10**power)
    assert "e-" not in text
    if power < 10:
        assert "e+" not in text
        assert len(re.sub(r"\D", "", text)) <= 4


def test_what_is_unknown_or_endless_is_marked() -> None:
    assert [duration(None), duration(float("nan")), duration(float("inf"))] == ["–", "–", "∞"]
    assert [event_time(None), instant(None), size(None)] == ["–", "–", "–"]


def test_times_beyond_the_calendar_are_numbers() -> None:
    assert event_time(2**62) == f"{2**62} µs"
    assert instant(1e15) == "1000000000000000 s"
