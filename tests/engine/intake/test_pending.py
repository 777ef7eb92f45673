"""Codes are in use as long as anybody holds the arrivals that have them, or a part of them."""

from __future__ import annotations

import numpy as np

from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.pending import Pending


def arrivals(first: int, *classes: int) -> Arrivals:
    """Three tuples, with the codes first, first + 1 and first + 2 in each class."""
    times = np.arange(3, dtype=np.int64)
    return Arrivals(times, dict.fromkeys(classes, times + first), {})


def codes(pending: Pending, key_class: int) -> set[int]:
    return {int(code) for found in pending.codes(key_class) for code in found}


def test_the_codes_of_everything_that_is_held() -> None:
    pending, one, two = Pending(), arrivals(0, 0), arrivals(10, 0, 1)
    pending.add(one)
    pending.add(two)
    assert codes(pending, 0) == {0, 1, 2, 10, 11, 12}
    assert codes(pending, 1) == {10, 11, 12}, "only one of them has the other class"
    assert codes(pending, 2) == set()


def test_arrivals_that_nobody_holds_are_not_pending() -> None:
    pending, kept = Pending(), arrivals(0, 0)
    pending.add(kept)
    pending.add(arrivals(10, 0))
    assert codes(pending, 0) == {0, 1, 2}


def test_a_part_keeps_the_codes_of_the_whole() -> None:
    """The other parts may still come, and their keys are in no window yet."""
    pending, whole = Pending(), arrivals(0, 0)
    pending.add(whole)
    part = whole.part(1, 3).part(0, 1)
    del whole
    assert codes(pending, 0) == {0, 1, 2}
    del part
    assert codes(pending, 0) == set()
