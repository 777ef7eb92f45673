"""Laws 4 and 5 without Spark: any number of processors, crashes at every point, lost caches."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.plan.enumerate import sample_plan
from plait.plan.routed import Eddies, Teddies
from plait.testing.histories import History, cases, crowds
from plait.testing.laws import difference
from plait.testing.oracle import Result, multiset, oracle, split_late
from plait.testing.processors import Cluster


def _assert_lawful(history: History, processors: int, seed: int) -> None:
    chance = random.Random(seed)
    query = history.query
    plans = (sample_plan(query, chance), Teddies(policy="lottery"), Eddies())
    cluster = Cluster(query, chance.choices(plans, (4, 1, 1))[0], processors, workers=2)
    found: Counter[Result] = Counter()
    late_rows = 0
    for batch in history.tables():
        table = cluster.run(
            batch,
            tasks=chance.choice((1, 2, 3)),
            worker_of=lambda _: chance.randrange(2),
            die=lambda _processor, _step: chance.random() < 0.2,
        )
        found += multiset(table)
        late_rows += sum(sum(report.late.values()) for report in cluster.reports)
    on_time, late = split_late(query, history.batches)
    answer = oracle(query, on_time)
    assert found == answer, f"{difference(found, answer)}\n{cluster.processor.plan}\n{history!r}"
    assert late_rows <= processors * sum(map(len, late.values()))


@settings(max_examples=60)
@given(cases(late=True), st.integers(1, 5), st.integers(0, 2**32))
def test_oracle_any_processors_and_crashes(history: History, processors: int, seed: int) -> None:
    _assert_lawful(history, processors, seed)


@pytest.mark.slow
@settings(max_examples=40)
@given(crowds(late=True), st.integers(1, 4), st.integers(0, 2**32))
def test_oracle_crowded_windows(history: History, processors: int, seed: int) -> None:
    _assert_lawful(history, processors, seed)
