"""Routing policies by themselves: no windows, no queues."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.tactics.policies import (
    Choice,
    Lottery,
    Ordered,
    Random,
    RoutingPolicy,
    make_policy,
)
from plait.errors import PlanError
from plait.plan.routed import POLICIES, Eddies, Teddies, routed
from plait.plan.text import read_router

A, B, C = 1, 2, 4


def onward(history: int) -> list[int]:
    return [s for s in range(3) if not history >> s & 1]


def teach(policy: RoutingPolicy, fanouts: dict[int, float], rounds: int = 50) -> Counter[int]:
    """Route packets of history A; each target produces its fanout. The tuples sent to each."""
    sent: Counter[int] = Counter()
    for _ in range(rounds):
        choice = policy.choose(A, [1, 2])
        n = 100 if choice.at_most is None else min(100, choice.at_most)
        made = round(n * fanouts[choice.target])
        policy.observe(A, choice.target, n, made, n + made)
        sent[choice.target] += n
    return sent


@given(st.sampled_from(POLICIES), st.integers(0, 99), st.data())
def test_choices_are_ready_and_repeat_with_the_seed(
    name: str, seed: int, data: st.DataObject
) -> None:
    first, second = (make_policy(name, seed, onward) for _ in range(2))
    for _ in range(20):
        history = data.draw(st.sampled_from((A, B, C, A | B)))
        ready = onward(history)
        choice = first.choose(history, ready)
        assert choice == second.choose(history, ready)
        assert choice.target in ready
        assert choice.at_most is None or choice.at_most >= 1
        seen = (data.draw(st.integers(1, 9)), data.draw(st.integers(0, 99)))
        for policy in (first, second):
            policy.observe(history, choice.target, *seen, sum(seen))


def test_random_takes_every_way() -> None:
    sent = teach(Random(3), {1: 9.0, 2: 0.1})
    assert min(sent.values()) > 1000


def test_lottery_prefers_the_window_that_consumes_more_than_it_makes() -> None:
    sent = teach(Lottery(3), {1: 9.0, 2: 0.1})
    assert sent[2] > 4 * sent[1]


def test_lottery_follows_a_change() -> None:
    policy = Lottery(3)
    teach(policy, {1: 9.0, 2: 0.1})
    sent = teach(policy, {1: 0.1, 2: 9.0}, rounds=200)
    assert sent[1] > 2 * sent[2]


def test_lottery_keeps_a_ticket_for_everyone() -> None:
    policy = Lottery(3)
    policy.observe(A, 1, 10, 10_000, 0)
    assert policy.tickets(1) == 1


def test_ordered_tries_every_way_once_and_then_takes_the_best() -> None:
    policy = Ordered(onward, explore=1000)
    sent = teach(policy, {1: 9.0, 2: 0.1})
    assert sent[1] == 64
    assert sent[2] == 64 + 48 * 100


def test_ordered_counts_what_comes_after_a_visit() -> None:
    """Window 1 makes fewer tuples, but each of them makes a hundred more in window 2."""
    policy = Ordered(onward)
    policy.observe(A, 1, consumed=100, produced=100, work=200)
    policy.observe(A, 2, consumed=100, produced=200, work=300)
    policy.observe(A | B, 2, consumed=100, produced=10_000, work=10_100)
    policy.observe(A | C, 1, consumed=100, produced=0, work=100)
    assert policy.choose(A, [1, 2]) == Choice(2)


def test_ordered_tries_the_other_ways_again() -> None:
    policy = Ordered(onward, explore=10)
    teach(policy, {1: 9.0, 2: 1.0})
    sent = teach(policy, {1: 0.1, 2: 1.0}, rounds=40)
    assert sent[1] > sent[2]


def test_ordered_tries_the_other_ways_at_once_when_the_best_becomes_dear() -> None:
    policy = Ordered(onward, explore=1000)
    teach(policy, {1: 9.0, 2: 0.1})
    sent = teach(policy, {1: 0.1, 2: 9.0}, rounds=20)
    assert sent[1] > 4 * sent[2]


def test_a_large_packet_sends_a_scout_and_turns_round_when_that_fares_badly() -> None:
    policy = Ordered(onward, explore=1000)
    teach(policy, {1: 9.0, 2: 0.1})
    assert policy.choose(A, [1, 2], 20_000) == Choice(2, 64)
    policy.observe(A, 2, 64, 64 * 50, 64 * 51)
    assert policy.choose(A, [1, 2], 19_936) == Choice(1, 64)
    policy.observe(A, 1, 64, 6, 70)
    assert policy.choose(A, [1, 2], 19_872) == Choice(1)


def test_a_scout_that_finds_nothing_new_is_followed_by_the_rest() -> None:
    policy = Ordered(onward, explore=1000)
    teach(policy, {1: 9.0, 2: 0.1})
    for _ in range(3):
        assert policy.choose(A, [1, 2], 20_000) == Choice(2, 64)
        policy.observe(A, 2, 64, 6, 70)
        assert policy.choose(A, [1, 2], 19_936) == Choice(2)
        policy.observe(A, 2, 19_936, 1994, 21_930)


def test_small_packets_send_no_scouts() -> None:
    policy = Ordered(onward, explore=1000)
    teach(policy, {1: 9.0, 2: 0.1})
    assert policy.choose(A, [1, 2], 1000) == Choice(2)


@pytest.mark.parametrize("kind", [Eddies, Teddies])
def test_unknown_policies_are_refused(kind: type[Eddies] | type[Teddies]) -> None:
    with pytest.raises(PlanError, match=r"no routing policy 'lotery'; did you mean 'lottery'"):
        kind(policy="lotery")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"packet_limit": 0}, "the packet limit is 0"),
        ({"packet_limit": -3}, "the packet limit is -3"),
        ({"threshold_limit": 0}, "the threshold limit is 0"),
        ({"counter_limit": -1}, "the counter limit is -1; it cannot be negative"),
        ({"patience": -1}, "the patience is -1"),
        ({"intake": 0}, "the intake is 0"),
        ({"packets": 3}, "the engine 'teddies' has no option 'packets'; did you mean"),
    ],
)
def test_bad_settings_are_refused_by_name(options: dict[str, int], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        routed("teddies", **options)


def test_unknown_engines_are_refused() -> None:
    with pytest.raises(PlanError, match=r"no engine 'teddy'; did you mean 'teddies'"):
        routed("teddy")


@pytest.mark.parametrize("router", [Eddies(policy="random"), Teddies(), Teddies(policy="lottery")])
def test_what_a_router_prints_names_it(router: Eddies | Teddies) -> None:
    assert read_router(str(router)) == router
