"""Law 4: partition groups move between processors, by both protocols, at every instant.

Processors run different plans, and change them meanwhile. Rows come out of order and late. Tasks
die, caches vanish, moves are given up, groups are spread over processors and put together again.
In some batches no processor runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.testing.oracle.answer import multiset
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.checks import difference
from plait_lab.laws.hosts import HostAnswer, any_plan, definition, with_pauses
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, Row, cases, crowds
from plait_lab.laws.strategies.moves import Restless
from plait_lab.laws.strategies.policies import Lies, eager
from plait_lab.laws.strategies.tunings import drawn_tuning
from plait_lab.workloads.keyed import keyed_query

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 2**32)


def long_history(seed: int) -> History:
    """Three streams, few keys, and windows of some batches out of so many that moves come to ends.

    Groups leave and come back while rows that they left behind are alive, moves are given up and
    begun again, and groups that are spread move on.
    """
    chance = Random(seed)
    keys, delay, late = chance.choice((1, 2, 5)), chance.choice((0, 5, 30)), chance.choice((0, 25))
    query = keyed_query([["k"]] * 3, chance.choice((20, 40, 80)), delay)
    batches: list[dict[str, list[Row]]] = []
    for number in range(chance.choice((15, 30))):
        batch: dict[str, list[Row]] = {}
        for name in query.names:
            early = -delay - late
            times = [10 * number + chance.randint(early, 10) for _ in range(chance.randint(0, 3))]
            batch[name] = [{"ts": t, "k": chance.randrange(keys), "v": t} for t in times]
        batches.append(batch)
    return History(query, tuple(batches), drawn_tuning(chance))


def check(history: History, processors: int, seed: int, *, adaptive: bool) -> Restless:
    """Run a history with a restless manager; the answer is that of the definition."""
    chance, query, answer = Random(seed), history.query, HostAnswer()
    tuning = replace(history.tuning, groups=chance.choice((1, 2, 3, 8)))
    cluster = Cluster(
        query,
        sample_plan(query, chance) if adaptive else any_plan(query, chance),
        processors,
        aside=True,
        adapt=eager(chance.choice((0.001, 1.0)), chance.choice((None, 0.0))) if adaptive else None,
        believe=Lies(seed),
        tuning=tuning,
        seed=chance.choice((None, chance.getrandbits(64))),
    )
    manager = Restless(chance, busy=chance.choice((0.3, 0.7, 1.0)))
    for batch in with_pauses(history.tables(), chance):
        manager.manage(cluster)
        answer.results += multiset(
            cluster.run(
                batch,
                tasks=chance.choice((1, 2)),
                worker_of=lambda _: chance.randrange(2),
                die=lambda _processor, _step: chance.random() < 0.1,
            )
        )
        for rows in cluster.aside:
            answer.set_aside(query, rows)
        for report in cluster.reports[:1]:
            answer.filtered += Counter(report.filtered)
    wanted = definition(query, history.batches)
    about = f"{cluster.table}\n{history!r}"
    assert answer.results == wanted.results, (
        f"{difference(answer.results, wanted.results)}\n{about}"
    )
    assert answer == wanted, about
    return manager


@settings(max_examples=15)
@given(cases(streams=st.integers(2, 4), late=True, one_key=True), st.integers(2, 4), SEEDS)
def test_oracle_groups_that_move(history: History, processors: int, seed: int) -> None:
    check(history, processors, seed, adaptive=False)


@settings(max_examples=15)
@given(crowds(streams=st.integers(2, 4), late=True), st.integers(2, 3), SEEDS)
def test_oracle_a_crowded_group_that_moves(history: History, processors: int, seed: int) -> None:
    check(history, processors, seed, adaptive=False)


@settings(max_examples=10)
@given(crowds(streams=st.integers(3, 4), late=True), st.integers(2, 3), SEEDS)
def test_oracle_groups_that_move_while_plans_change(
    history: History, processors: int, seed: int
) -> None:
    check(history, processors, seed, adaptive=True)


@pytest.mark.campaign
@settings(max_examples=60)
@given(crowds(streams=st.integers(2, 4), late=True), st.integers(2, 4), SEEDS, st.booleans())
def test_oracle_crowded_groups_that_move_thoroughly(
    history: History, processors: int, seed: int, adaptive: bool
) -> None:
    check(history, processors, seed, adaptive=adaptive)


@pytest.mark.campaign
@settings(max_examples=60)
@given(
    cases(streams=st.integers(2, 5), late=True, one_key=True),
    st.integers(2, 5),
    SEEDS,
    st.booleans(),
)
def test_oracle_groups_that_move_thoroughly(
    history: History, processors: int, seed: int, adaptive: bool
) -> None:
    check(history, processors, seed, adaptive=adaptive)


@pytest.mark.parametrize("seed", range(5))
def test_oracle_moves_that_follow_each_other(seed: int) -> None:
    check(long_history(seed), 2 + seed % 3, seed, adaptive=seed % 2 == 0)


@pytest.mark.campaign
def test_oracle_moves_that_follow_each_other_thoroughly() -> None:
    ended = given_up = 0
    for seed in range(5, 100):
        manager = check(long_history(seed), 2 + seed % 3, seed, adaptive=seed % 2 == 0)
        ended, given_up = ended + manager.ended, given_up + manager.given_up
    assert ended > 200 and given_up > 50, "moves are made, and come to their ends"
