"""Laws 4 and 5 without Spark: any number of processors, crashes at every point, lost caches."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.cluster.processor import Engines, OwnEngines
from plait.plan.enumerate import sample_plan
from plait.plan.routed import Eddies, Teddies
from plait.query.expr import streams_of
from plait.query.query import Query, Stream
from plait.runtime.arena import Arena, Places
from plait.testing.histories import History, cases, crowds
from plait.testing.laws import difference
from plait.testing.oracle import Result, all_tuples, multiset, oracle, split_late
from plait.testing.processors import Cluster
from plait.testing.scalar import compiled


def _assert_lawful(history: History, processors: int, seed: int, workers: list[Engines]) -> None:
    chance = random.Random(seed)
    query = history.query
    plans = (sample_plan(query, chance), Teddies(policy="lottery"), Eddies())
    cluster = Cluster(query, chance.choices(plans, (4, 1, 1))[0], processors, workers)
    found: Counter[Result] = Counter()
    late_rows: Counter[str] = Counter()
    for batch in history.tables():
        table = cluster.run(
            batch,
            tasks=chance.choice((1, 2, 3)),
            worker_of=lambda _: chance.randrange(2),
            die=lambda _processor, _step: chance.random() < 0.2,
        )
        found += multiset(table)
        for report in cluster.reports:
            late_rows.update(report.late)
    on_time, late = split_late(query, history.batches)
    answer = oracle(query, on_time)
    assert found == answer, f"{difference(found, answer)}\n{cluster.processor.plan}\n{history!r}"
    wanted = {s.name: joinable(query, s, late[s.name]) for s in query.streams}
    assert late_rows == Counter({name: n for name, n in wanted.items() if n}), repr(history)
    totals = [report.total for report in cluster.reports]
    assert sum(total["results"] for total in totals) == answer.total(), "a repeated batch counts"
    assert sum((Counter(total["late"]) for total in totals), Counter()) == late_rows
    if totals:
        seen = {s.name: sum(len(b.get(s.name, ())) for b in history.batches) for s in query.streams}
        assert Counter(totals[0]["rows"]) == Counter({name: n for name, n in seen.items() if n})


def joinable(query: Query, stream: Stream, rows: Sequence[Mapping[str, object]]) -> int:
    """How many rows have all their keys and satisfy the conditions on their own stream."""
    alone = [r for r in query.residuals if streams_of(r) == {stream.name}]
    conditions = [compiled(r, query.type_of) for r in alone]
    keys = [c for e in query.equalities for c in (e.left, e.right) if c.stream == stream.name]
    tuples = all_tuples(stream, rows)
    return sum(
        all(t[c] is not None for c in keys) and all(c(t) is True for c in conditions)
        for t in tuples
    )


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
