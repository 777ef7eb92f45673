"""Laws 4 and 5 without Spark: any number of processors, crashes at every point, lost caches."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.cluster.processor import Engines, OwnEngines
from plait.plan.enumerate import sample_plan
from plait.plan.routed import Eddies, Teddies
from plait.runtime.arena import Arena, Places
from plait.testing.histories import History, cases, crowds
from plait.testing.laws import difference
from plait.testing.oracle import Result, multiset, oracle, split_late
from plait.testing.processors import Cluster


def _assert_lawful(history: History, processors: int, seed: int, workers: list[Engines]) -> None:
    chance = random.Random(seed)
    query = history.query
    plans = (sample_plan(query, chance), Teddies(policy="lottery"), Eddies())
    cluster = Cluster(query, chance.choices(plans, (4, 1, 1))[0], processors, workers)
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
    _assert_lawful(history, processors, seed, [OwnEngines(), OwnEngines()])


@settings(max_examples=40)
@given(cases(late=True), st.integers(1, 4), st.integers(0, 2**32))
def test_oracle_workers_that_share_an_arena(history: History, processors: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        places = Places(Path(folder, "memory"), Path(folder, "disk"), limit=1 << 15, smallest=1)
        workers: list[Engines] = [Arena("run", places), Arena("run", places)]
        _assert_lawful(history, processors, seed, workers)


@pytest.mark.slow
@settings(max_examples=40)
@given(crowds(late=True), st.integers(1, 4), st.integers(0, 2**32))
def test_oracle_crowded_windows(history: History, processors: int, seed: int) -> None:
    _assert_lawful(history, processors, seed, [OwnEngines(), OwnEngines()])
