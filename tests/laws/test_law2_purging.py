"""Laws 2 and 3 with purging by lemma 2.2: the same multiset as the oracle, for streams in order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.local.host import LocalRun
from plait.plan.migration import STRATEGIES
from plait.testing.oracle.answer import Result, multiset
from plait_lab.engine.lemma import PurgeByLemma
from plait_lab.exhaustive.plans import all_plans, sample_plan
from plait_lab.laws.checks import assert_lawful, difference, expected
from plait_lab.laws.strategies.histories import History, cases, crowds

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 10**6)


def in_order(history: History) -> History:
    """The same rows without watermark delays: what is out of order is late."""
    query = history.query
    streams = tuple(replace(s, delay=0) for s in query.streams)
    return replace(history, query=replace(query, streams=streams, lateness="own"))


@settings(max_examples=40)
@given(cases(streams=st.integers(2, 3)))
def test_oracle_all_plans_of_two_and_three_streams(history: History) -> None:
    ordered = in_order(history)
    answer = expected(ordered)
    for plan in all_plans(ordered.query, orders="default"):
        assert_lawful(ordered, plan, answer=answer, purge=PurgeByLemma)


@pytest.mark.slow
@settings(max_examples=150)
@given(crowds(streams=st.integers(3, 5)), SEEDS)
def test_oracle_crowds_in_slices(history: History, seed: int) -> None:
    ordered, random = in_order(history), Random(seed)
    answer = expected(ordered)
    ordered = replace(ordered, tuning=replace(ordered.tuning, slice_rows=1))
    for _ in range(3):
        plan = sample_plan(ordered.query, random)
        assert_lawful(ordered, plan, answer=answer, purge=PurgeByLemma)


@settings(max_examples=60)
@given(cases(streams=st.integers(3, 4)), SEEDS)
def test_oracle_migrations_at_every_batch(history: History, seed: int) -> None:
    """Another plan after every batch, by either strategy; a track is queued behind another."""
    ordered, random = in_order(history), Random(seed)
    answer, _ = expected(ordered)
    run = LocalRun(
        ordered.query,
        sample_plan(ordered.query, random),
        purge=PurgeByLemma,
        tuning=ordered.tuning,
    )
    found: Counter[Result] = Counter()
    for batch in ordered.tables():
        found += multiset(run.push(batch))
        run.migrate(sample_plan(ordered.query, random), random.choice(STRATEGIES))
    for results in run.finish():
        found += multiset(results)
    assert found == answer, f"{difference(found, answer)}\n{history!r}"
