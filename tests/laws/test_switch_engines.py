"""Changing the engine at any batch boundary, between trees and routers, changes no result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.local.host import LocalRun
from plait.plan.jtree import mjoin
from plait.plan.routed import POLICIES, Eddies, Plan, Teddies
from plait.testing.oracle.answer import Result, multiset
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.checks import difference, expected
from plait_lab.laws.strategies.histories import History, cases, crowds

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 10**6)


def _some_plan(history: History, random: Random) -> Plan:
    policy = random.choice(POLICIES)
    return random.choice((
        sample_plan(history.query, random),
        sample_plan(history.query, random),
        Eddies(policy=policy, seed=random.randrange(100), intake=2),
        Teddies(
            policy=policy,
            packet_limit=random.choice((1, 3, 1 << 16)),
            counter_limit=random.choice((0, 16)),
            patience=random.choice((0, 2)),
            intake=random.choice((None, 2)),
        ),
    ))  # fmt: skip


def _run(history: History, plans: Sequence[Plan], hash_bits: int = 64) -> Counter[Result]:
    """Batch i runs with plan i."""
    run = LocalRun(history.query, plans[0], hash_bits=hash_bits, tuning=history.tuning)
    found: Counter[Result] = Counter()
    for plan, batch in zip(plans, history.tables(), strict=True):
        if plan is not run.plan:
            run.migrate(plan)
        found += multiset(run.push(batch))
    found += multiset(pa.Table.from_batches(list(run.finish()), history.query.schema))
    assert run.counts.results == found.total()
    return found


def _check(
    history: History,
    plans: Sequence[Plan],
    hash_bits: int = 64,
    wanted: Counter[Result] | None = None,
) -> None:
    if wanted is None:
        wanted, _ = expected(history)
    found = _run(history, plans, hash_bits)
    about = f"plans {', '.join(map(str, plans))}\n{history!r}"
    assert found == wanted, f"{difference(found, wanted)}\n{about}"


@settings(max_examples=40)
@given(cases(streams=st.integers(2, 5)), SEEDS, st.sampled_from((64, 0)))
def test_oracle_another_engine_for_every_batch(history: History, seed: int, hash_bits: int) -> None:
    random = Random(seed)
    _check(history, [_some_plan(history, random) for _ in history.batches], hash_bits)


@pytest.mark.slow
@settings(max_examples=40)
@given(crowds(streams=st.integers(3, 4)), SEEDS)
def test_oracle_another_engine_for_every_batch_of_a_crowd(history: History, seed: int) -> None:
    random = Random(seed)
    _check(history, [_some_plan(history, random) for _ in history.batches])


@pytest.mark.slow
@settings(max_examples=10)
@given(crowds(streams=st.just(3)), SEEDS)
def test_oracle_there_and_back_at_every_boundary(history: History, seed: int) -> None:
    """From a tree to Teddies at one boundary, and back at a later one: all pairs of them."""
    tree, router = sample_plan(history.query, Random(seed)), Teddies(patience=1)
    n, (wanted, _) = len(history.batches), expected(history)
    for there in range(n + 1):
        for back in range(there, n + 1):
            plans = [router if there <= b < back else tree for b in range(n)]
            _check(history, plans, wanted=wanted)


@pytest.mark.campaign
@settings(max_examples=500)
@given(crowds(streams=st.integers(3, 5), late=True), SEEDS)
def test_oracle_switching_thoroughly(history: History, seed: int) -> None:
    random = Random(seed)
    _check(history, [_some_plan(history, random) for _ in history.batches])


@settings(max_examples=20)
@given(cases(streams=st.integers(2, 3)))
def test_windows_stay_when_the_engine_changes(history: History) -> None:
    run = LocalRun(history.query, tuning=history.tuning)
    tables = history.tables()
    for batch in tables:
        run.push(batch)
    bases = run.engine.bases
    rows = [len(base) for base in bases]
    for plan in (Teddies(), Eddies(), mjoin(history.query)):
        run.migrate(plan)
        assert run.engine.bases is bases
        assert [len(base) for base in bases] == rows
