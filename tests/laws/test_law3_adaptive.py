"""Law 3 with the loop in charge: whatever is decided, on whatever grounds, results are exact."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.adapt.policy import PlanPolicy
from plait.adapt.setting import Setting
from plait.local.host import LocalRun
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.plan.jtree import Node
from plait.query.query import Query
from plait.testing.examples import chain
from plait.testing.oracle.answer import Result, multiset, oracle, split_late
from plait.tuning import Tuning
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.checks import difference, expected
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, cases, churns, crowds
from plait_lab.laws.strategies.lagging import lagging_history
from plait_lab.laws.strategies.policies import Lies, eager

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 2**32)
LIES = Lies(1)


def lied_to(query: Query, policy: PlanPolicy, budget: Budget | None = None) -> Setting:
    """A loop that is told lies."""
    return Setting(query, policy, budget or Budget(), DEFAULT, believe=LIES)


def in_pieces(history: History, random: Random) -> Tuning:
    """The history's sizes; mostly batches come in pieces of a few rows, joined in slices of one."""
    if random.random() < 0.2:
        return history.tuning
    return replace(
        history.tuning, slice_rows=1, large_slices=1, piece_rows=1, pieces_per_window=1_000
    )


def check_local(history: History, seed: int) -> int:
    random = Random(seed)
    policy = eager(random.choice((0.001, 1.0, 100.0)), random.choice((None, 0.0)))
    budget = random.choice((None, Budget(memory=1e9), Budget(memory=20_000.0)))
    plan = sample_plan(history.query, random)
    setting = lied_to(history.query, policy, budget)
    run = LocalRun(history.query, plan, adapt=setting, tuning=in_pieces(history, random))
    found: Counter[Result] = Counter()
    for batch in history.tables():
        found += multiset(run.push(batch))
    found += multiset(pa.Table.from_batches(list(run.finish()), history.query.schema))
    wanted, _ = expected(history)
    assert found == wanted, f"{difference(found, wanted)}\n{history!r}"
    return len(run.migrations)


@settings(max_examples=25)
@given(cases(streams=st.integers(3, 4), late=True), SEEDS)
def test_oracle_a_run_that_decides_for_itself(history: History, seed: int) -> None:
    check_local(history, seed)


@pytest.mark.campaign
@settings(max_examples=150)
@given(crowds(streams=st.integers(3, 5)), SEEDS)
def test_oracle_a_run_that_decides_for_itself_thoroughly(history: History, seed: int) -> None:
    check_local(history, seed)


def check_processors(history: History, processors: int, seed: int) -> int:
    """Each processor decides for itself, tasks die, engines are lost: how many plans changed."""
    random = Random(seed)
    policy = eager(random.choice((0.001, 1.0)), random.choice((None, 0.0)))
    query = history.query
    cluster = Cluster(
        query,
        sample_plan(query, random),
        processors,
        adapt=policy,
        believe=LIES,
        tuning=in_pieces(history, random),
    )
    found: Counter[Result] = Counter()
    moves = 0
    for batch in history.tables():
        found += multiset(
            cluster.run(
                batch,
                worker_of=lambda _: random.randrange(2),
                die=lambda _processor, _step: random.random() < 0.2,
            )
        )
        moves += sum(event.kind == "migrated" for r in cluster.reports for event in r.events)
    on_time, _ = split_late(query, history.batches)
    wanted = oracle(query, on_time)
    assert found == wanted, f"{difference(found, wanted)}\n{history!r}"
    return moves


@settings(max_examples=12)
@given(cases(streams=st.just(3), late=True), st.integers(1, 3), SEEDS)
def test_oracle_processors_that_decide_and_crash(
    history: History, processors: int, seed: int
) -> None:
    check_processors(history, processors, seed)


@pytest.mark.campaign
@settings(max_examples=80)
@given(crowds(streams=st.integers(3, 4)), st.integers(1, 3), SEEDS)
def test_oracle_processors_that_decide_and_crash_thoroughly(
    history: History, processors: int, seed: int
) -> None:
    check_processors(history, processors, seed)


@settings(max_examples=60)
@given(churns(), SEEDS)
def test_oracle_a_batch_in_pieces_whose_keys_come_and_go(history: History, seed: int) -> None:
    """Between two pieces keys are forgotten, but none that a later piece has."""
    random = Random(seed)
    check_pieces(history, sample_plan(history.query, random))


def check_pieces(history: History, plan: Node) -> None:
    setting = lied_to(history.query, eager(1.0, None))
    run = LocalRun(history.query, plan, adapt=setting, tuning=history.tuning)
    found: Counter[Result] = Counter()
    for batch in history.tables():
        found += multiset(run.push(batch))
    wanted, _ = expected(history)
    assert found == wanted, f"{difference(found, wanted)}\n{history!r}"


def test_the_laws_above_are_about_something() -> None:
    history = lagging_history(chain(4), batches=9, rows=12, seed=3, disorder=0)
    assert check_local(history, 1) >= 3
    assert check_processors(history, 2, 1) >= 3
