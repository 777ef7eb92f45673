"""Rows further ahead of the clock than their stream may be, on every host that has a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.local.host import LocalRun
from plait.testing.oracle.answer import Result, multiset, oracle, split_late
from plait.testing.oracle.fates import AHEAD, LATE, counts, set_aside
from plait_lab.laws.hosts import any_plan
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, crowds

pytestmark = pytest.mark.slow


def bounded(history: History, chance: Random) -> tuple[History, list[int]]:
    """With bounds on some streams, and a clock that jumps: milliseconds for each batch."""
    limits = (None, 1, 1_000_000, 5_000_000)
    streams = tuple(replace(s, ahead=chance.choice(limits)) for s in history.query.streams)
    times: list[Any] = [
        value
        for batch in history.batches
        for stream in streams
        for row in batch.get(stream.name, ())
        if (value := row[stream.time]) is not None
    ]
    latest = max(times, default=0) // 1_000
    clocks = [chance.randint(-1_000, max(1, latest)) for _ in history.batches]
    return replace(history, query=replace(history.query, streams=streams)), clocks


@settings(max_examples=100)
@given(crowds(late=True, streams=st.integers(2, 3)), st.integers(1, 3), st.integers(0, 2**32))
def test_oracle_rows_ahead(history: History, processors: int, seed: int) -> None:
    chance = Random(seed)
    history, clocks = bounded(history, chance)
    query, micros = history.query, [1_000 * clock for clock in clocks]
    wanted = oracle(query, split_late(query, history.batches, micros)[0])
    aside = set_aside(query, history.batches, micros)

    cluster = Cluster(query, any_plan(query, chance), processors, aside=True, tuning=history.tuning)
    found, reasons = Counter[Result](), Counter[str]()
    for batch, clock in zip(history.tables(), clocks, strict=True):
        found += multiset(
            cluster.run(
                batch,
                tasks=chance.choice((1, 2)),
                clock=clock,
                worker_of=lambda _: chance.randrange(2),
                die=lambda _processor, _step: chance.random() < 0.1,
            )
        )
        for rows in cluster.aside:
            reasons[rows.reason] += rows.rows.num_rows
    assert found == wanted, f"{history!r}"
    for reason in (AHEAD, LATE):
        assert reasons[reason] == counts(aside, reason).total(), f"{reason}\n{history!r}"
    if cluster.reports:
        assert Counter(cluster.reports[0].total["ahead"]) == counts(aside, AHEAD)

    times: Iterator[int] = iter(micros)
    run = LocalRun(query, any_plan(query, chance), present=lambda: next(times))
    here = Counter[Result]()
    for batch in history.tables():
        here += multiset(run.push(batch))
    here += multiset(pa.Table.from_batches(list(run.finish()), query.schema))
    assert here == wanted and +Counter(run.counts.ahead) == counts(aside, AHEAD)
