"""Verdicts: what each comparison says of measurements, of weak ones, and of the opposite."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait_lab.reporting.comparisons import (
    Comparison,
    Crosses,
    Degree,
    Falls,
    Flat,
    Limit,
    Near,
    Same,
    Smaller,
)

REPRODUCED: list[Comparison] = [
    Smaller([1.0, 1.1, 1.2], [2.0, 2.2, 2.0]),
    Smaller([1.0], [4.0], times=0.5),
    Near([1.0, 2.0, 4.1], [1.0, 2.0, 4.0], 0.05),
    Near([1.0, 1.01], [1.0, 1.0], 0.05),
    Falls([4.0, 3.0, 3.5, 2.0, 1.0]),
    Degree([1.0, 2.0, 4.0], [1.0, 5.0, 25.0], 2, 3),
    Crosses([1.0, 2.0, 3.0], [1.0, 2.0, 5.0], [2.0, 3.0, 4.0]),
    Limit(1.0, 2.0),
    Limit(2.0, 2.0),
    Limit(2.0, 2.0, least=True),
    Limit(0.0, 0.0),
    Flat([1.0, 1.02, 0.99], 0.05),
    Same([3, 3, 3]),
]
DEVIATES: list[Comparison] = [
    Smaller([1.0], [1.1], times=0.5),
    Smaller([1.0, 1.0, 3.0], [2.0, 2.0, 2.0]),
    Near([1.0, 1.1], [1.0, 1.0], 0.05),
    Falls([4.0, 1.0, 3.0, 2.0]),
    Degree([1.0, 2.0, 3.0, 4.0], [1.0, 5.0, 6.0, 14.0], 2, 3),
    Crosses([1.0, 2.0], [1.0, 3.0], [4.0, 4.0]),
    Flat([1.0, 1.1], 0.05),
]
CONTRADICTED: list[Comparison] = [
    Smaller([2.0], [1.0]),
    Smaller([1.0], [1.0]),
    Near([1.0, 9.0], [1.0, 1.0], 0.05),
    Falls([1.0, 2.0, 3.0]),
    Falls([1.0, 1.0]),
    Degree([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], 2, 3),
    Crosses([1.0, 2.0], [5.0, 3.0], [4.0, 4.0]),
    Crosses([1.0, 2.0, 3.0, 4.0], [1.0, 5.0, 1.0, 5.0], [4.0] * 4),
    Limit(3.0, 2.0),
    Limit(float("nan"), 2.0),
    Flat([1.0, 9.0], 0.05),
    Same([1, 2]),
    Same([]),
]


@pytest.mark.parametrize(
    ("found", "verdict"),
    [(c, "reproduced") for c in REPRODUCED]
    + [(c, "deviates") for c in DEVIATES]
    + [(c, "contradicted") for c in CONTRADICTED],
)
def test_what_measurements_say(found: Comparison, verdict: str) -> None:
    assert found.verdict == verdict
    assert found.measured or not isinstance(found, Same) or not found.values
    assert found.bound
    json.dumps(found.value)


@pytest.mark.parametrize("found", REPRODUCED)
def test_the_opposite_is_contradicted(found: Comparison) -> None:
    assert found.reversed().verdict == "contradicted"


@pytest.mark.parametrize("found", [Smaller([2.0], [1.0]), Falls([1.0, 2.0]), Limit(3.0, 2.0)])
def test_the_opposite_of_what_is_contradicted_is_reproduced(found: Comparison) -> None:
    assert found.reversed().verdict == "reproduced"


def test_values_at_the_edge_have_an_opposite_too() -> None:
    assert Near([0.5, 0.5], [1.0, 1.0], 0.5).reversed().verdict == "contradicted"


NUMBERS = st.lists(st.floats(0.01, 100), min_size=2, max_size=6)


@given(NUMBERS, st.floats(0.01, 0.5))
def test_nothing_is_reproduced_both_ways(values: list[float], within: float) -> None:
    n = len(values)
    for found in (
        Smaller(values, values[::-1]),
        Near(values, [1.0] * n, within),
        Near(values, values[::-1], within),
        Falls(values),
        Degree(list(range(1, n + 1)), values, 0.5, 3),
        Crosses(list(range(n)), values, [10.0] * n),
        Limit(values[0], values[1]),
        Flat(values, within),
        Same(values),
    ):
        assert {found.verdict, found.reversed().verdict} != {"reproduced"}
