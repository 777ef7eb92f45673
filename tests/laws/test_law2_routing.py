"""Law 2 for routers: the same multiset as the oracle for every policy, packet size and intake."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.plan.routed import POLICIES, Eddies, Routed, Teddies
from plait_lab.laws.checks import assert_lawful, expected
from plait_lab.laws.strategies.histories import History, cases, crowds

SEEDS = st.integers(0, 10**6)
SIZES = (1, 2, 3, 7, 1 << 16)

TEDDIES = st.builds(
    Teddies,
    policy=st.sampled_from(POLICIES),
    seed=SEEDS,
    packet_limit=st.sampled_from(SIZES),
    threshold_limit=st.sampled_from(SIZES),
    counter_limit=st.sampled_from((0, 1, 3, 16)),
    patience=st.sampled_from((0, 0, 1, 3)),
    intake=st.sampled_from((None, 1, 2, 5)),
)
EDDIES = st.builds(
    Eddies, policy=st.sampled_from(POLICIES), seed=SEEDS, intake=st.sampled_from((1, 2, 64))
)
ROUTERS: st.SearchStrategy[Routed] = st.one_of(TEDDIES, TEDDIES, EDDIES)
COLLIDING = st.sampled_from((64, 64, 0))


@pytest.mark.slow
@settings(max_examples=10)
@given(cases(streams=st.integers(2, 4)), SEEDS)
def test_oracle_every_policy_and_packet_size(history: History, seed: int) -> None:
    answer = expected(history)
    for policy in POLICIES:
        for size in SIZES:
            router = Teddies(policy=policy, seed=seed, packet_limit=size, intake=2)
            assert_lawful(history, router, answer=answer)
        assert_lawful(history, Eddies(policy=policy, seed=seed), answer=answer)


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(streams=st.integers(2, 6)), ROUTERS, COLLIDING)
def test_oracle_routers_of_up_to_six_streams(
    history: History, router: Routed, hash_bits: int
) -> None:
    assert_lawful(history, router, hash_bits=hash_bits)


@pytest.mark.slow
@settings(max_examples=60)
@given(crowds(streams=st.integers(2, 4)), ROUTERS)
def test_oracle_crowds(history: History, router: Routed) -> None:
    assert_lawful(history, router)


@pytest.mark.slow
@settings(max_examples=50)
@given(crowds(streams=st.integers(2, 4), late=True), ROUTERS)
def test_oracle_crowds_with_late_rows(history: History, router: Routed) -> None:
    assert_lawful(history, router)


@pytest.mark.campaign
@settings(max_examples=1000)
@given(cases(streams=st.integers(2, 6), late=True), ROUTERS, COLLIDING)
def test_oracle_routers_thoroughly(history: History, router: Routed, hash_bits: int) -> None:
    assert_lawful(history, router, hash_bits=hash_bits)


@pytest.mark.campaign
@settings(max_examples=1000)
@given(crowds(streams=st.integers(2, 5), late=True), ROUTERS)
def test_oracle_crowds_thoroughly(history: History, router: Routed) -> None:
    assert_lawful(history, router)
