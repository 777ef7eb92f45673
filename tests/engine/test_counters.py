"""Counters go on elsewhere from the numbers of another one of the same shape."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.counters import InputCounters, OperatorCounters, StepCounters

COUNTS = st.integers(0, 2**40)
STEPS = st.builds(StepCounters, COUNTS, COUNTS, COUNTS)
INPUTS = st.builds(InputCounters, COUNTS, COUNTS, COUNTS, st.lists(STEPS, max_size=3))
OPERATORS = st.builds(OperatorCounters, st.just("(a b)"), st.lists(INPUTS, max_size=3), COUNTS)


def blank(like: OperatorCounters) -> OperatorCounters:
    """One of the same shape that has counted nothing."""
    inputs = [InputCounters(steps=[StepCounters() for _ in i.steps]) for i in like.inputs]
    return OperatorCounters(like.operator, inputs)


@given(OPERATORS)
def test_numbers_survive_as_plain_data(counters: OperatorCounters) -> None:
    again = blank(counters)
    again.set_state(json.loads(json.dumps(counters.to_state())))
    assert again == counters


@given(OPERATORS)
def test_whoever_goes_on_counts_for_itself(counters: OperatorCounters) -> None:
    before, again = counters.to_state(), blank(counters)
    again.set_state(before)
    again.outputs += 1
    for given_ in again.inputs:
        given_.arrivals += 1
        for step in given_.steps:
            step.probes += 1
    assert counters.to_state() == before


def test_numbers_of_another_shape_are_refused() -> None:
    one, two = (
        OperatorCounters("(a b)", [InputCounters(steps=[StepCounters()]) for _ in range(n)])
        for n in (1, 2)
    )
    for saved, read in ((one, two), (two, one)):
        with pytest.raises(ValueError, match="argument"):
            blank(read).set_state(saved.to_state())
