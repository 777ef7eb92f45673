"""Law 2: the same multiset as the oracle for every legal plan.

Two and three streams run every shape with every probe order, four streams every shape, five and
six a sample.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait_lab.exhaustive.plans import all_plans, sample_plan
from plait_lab.laws.checks import assert_lawful, expected
from plait_lab.laws.strategies.histories import History, cases, crowds

COLLIDING = st.sampled_from((64, 0))


def _all_of(history: History, hash_bits: int, orders: str) -> None:
    answer = expected(history)
    for plan in all_plans(history.query, orders="all" if orders == "all" else "default"):
        assert_lawful(history, plan, hash_bits=hash_bits, answer=answer)


@pytest.mark.slow
@settings(max_examples=50)
@given(cases(streams=st.integers(2, 3)), COLLIDING)
def test_oracle_all_plans_of_two_and_three_streams(history: History, hash_bits: int) -> None:
    _all_of(history, hash_bits, "all")


@pytest.mark.slow
@settings(max_examples=15)
@given(cases(streams=st.just(4)), COLLIDING)
def test_oracle_all_shapes_of_four_streams(history: History, hash_bits: int) -> None:
    _all_of(history, hash_bits, "default")


def _some_of(history: History, seed: int, count: int, hash_bits: int = 64) -> None:
    answer, random = expected(history), Random(seed)
    for _ in range(count):
        plan = sample_plan(history.query, random)
        assert_lawful(history, plan, hash_bits=hash_bits, answer=answer)


SEEDS = st.integers(0, 10**6)


@pytest.mark.slow
@settings(max_examples=100)
@given(crowds(streams=st.integers(3, 4)), SEEDS)
def test_oracle_crowds(history: History, seed: int) -> None:
    _some_of(history, seed, 3)


@pytest.mark.slow
@settings(max_examples=40)
@given(crowds(streams=st.integers(3, 5)), SEEDS)
def test_oracle_crowds_in_slices_with_small_blocks(history: History, seed: int) -> None:
    """As if batches and states were so large that the engine cuts and compacts them."""
    small = replace(history.tuning, slice_rows=1, compact_rows=2)
    _some_of(replace(history, tuning=small), seed, 3)


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(streams=st.integers(4, 6)), SEEDS, COLLIDING)
def test_oracle_sampled_plans_of_many_streams(history: History, seed: int, hash_bits: int) -> None:
    _some_of(history, seed, 3, hash_bits)


@pytest.mark.campaign
@settings(max_examples=60)
@given(cases(streams=st.integers(2, 4), late=True), COLLIDING)
def test_oracle_all_shapes_thoroughly(history: History, hash_bits: int) -> None:
    _all_of(history, hash_bits, "default")


@pytest.mark.campaign
@settings(max_examples=250)
@given(cases(streams=st.integers(3, 6), late=True), SEEDS)
def test_oracle_sampled_plans_thoroughly(history: History, seed: int) -> None:
    _some_of(history, seed, 4)


@pytest.mark.campaign
@settings(max_examples=600)
@given(crowds(streams=st.integers(3, 4), late=True), SEEDS)
def test_oracle_crowds_thoroughly(history: History, seed: int) -> None:
    _some_of(history, seed, 3)
