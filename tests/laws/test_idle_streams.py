"""Idle streams follow the others: results and late rows are those of a watermark by definition."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.plan.jtree import mjoin
from plait.query.query import Query
from plait.testing.oracle.answer import Result, event_times, multiset, oracle
from plait_lab.laws.checks import difference
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, Row, crowds

SECOND = 1_000


def split(
    query: Query, history: History, clocks: list[int]
) -> tuple[dict[str, list[object]], dict[str, list[object]]]:
    """The rows on time and the late ones, with a watermark per stream kept as itself.

    Nothing here speaks of the newest time that a stream is taken to have reached, as processors
    do: a watermark is raised by rows, or by those of the others while its stream is idle.
    """
    on_time: dict[str, list[object]] = {s.name: [] for s in query.streams}
    late: dict[str, list[object]] = {s.name: [] for s in query.streams}
    watermark: dict[str, int | None] = {s.name: None for s in query.streams}
    heard = {s.name: clocks[0] if clocks else 0 for s in query.streams}
    for batch, clock in zip(history.batches, clocks, strict=True):
        after = dict(watermark)
        for s in query.streams:
            rows = batch.get(s.name, ())
            times = event_times(s, rows)
            for row, time in zip(rows, times, strict=True):
                limits = [watermark[s.name]] if query.lateness == "own" else watermark.values()
                is_late = time is not None and all(
                    limit is not None and time < limit for limit in limits
                )
                (late if is_late else on_time)[s.name].append(row)
            if seen := [t for t in times if t is not None]:
                heard[s.name] = clock
                reached = max(seen) - s.delay
                old = after[s.name]
                after[s.name] = reached if old is None else max(old, reached)
        idle = {
            s.name
            for s in query.streams
            if s.idle is not None and (clock - heard[s.name]) * 1_000 >= s.idle
        }
        leading = [after[s.name] for s in query.streams if s.name not in idle]
        known = [w for w in leading if w is not None]
        if leading and len(known) == len(leading):
            for name in idle:
                own = after[name]
                after[name] = min(known) if own is None else max(own, min(known))
        watermark = after
    return on_time, late


def thinned(
    batches: Sequence[Mapping[str, Sequence[Row]]], chance: random.Random
) -> tuple[dict[str, list[Row]], ...]:
    """Batches of a few rows each, most of them of few streams: some streams are silent."""
    found = []
    for batch in batches:
        left = {name: list(rows) for name, rows in batch.items()}
        while any(left.values()):
            some = {name: rows[:2] for name, rows in left.items() if rows and chance.random() < 0.4}
            left = {name: rows[2:] if name in some else rows for name, rows in left.items()}
            if some:  # Spark runs no batch without rows
                found.append(some)
    return tuple(found)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    crowds(late=True, streams=st.integers(2, 3)),
    st.integers(1, 4),
    st.integers(0, 2**32),
    st.data(),
)
def test_oracle_idle_streams(
    history: History, processors: int, seed: int, data: st.DataObject
) -> None:
    chance = random.Random(seed)
    timeouts = st.one_of(st.none(), st.integers(1, 2).map(lambda n: n * 1_000_000))
    streams = tuple(replace(s, idle=data.draw(timeouts)) for s in history.query.streams)
    query = replace(history.query, streams=streams)
    history = replace(history, query=query, batches=thinned(history.batches, chance))
    clocks = [1_000_000]
    for _ in history.batches[1:]:
        clocks.append(clocks[-1] + chance.choice((0, 500, 1_000, 2_000)))
    clocks = clocks[: len(history.batches)]
    cluster = Cluster(query, mjoin(query), processors, aside=True, tuning=history.tuning)
    found: Counter[Result] = Counter()
    late_rows = 0
    for batch, clock in zip(history.tables(), clocks, strict=True):
        table = cluster.run(
            batch,
            clock=clock,
            worker_of=lambda _: chance.randrange(2),
            die=lambda _processor, _step: chance.random() < 0.1,
        )
        found += multiset(table)
        late_rows += sum(part.rows.num_rows for part in cluster.aside if part.reason == "late")
        marks = {tuple(sorted(r.watermarks.items())) for r in cluster.reports}
        assert len(marks) == 1, "all processors agree"
    on_time, late = split(query, history, clocks)
    answer = oracle(query, on_time)
    assert found == answer, f"{difference(found, answer)}\n{history!r}"
    assert late_rows <= sum(map(len, late.values()))


@pytest.mark.slow
def test_a_silent_stream_holds_state_until_it_is_idle() -> None:
    """Rows of a, and none of b: with a timeout, what a keeps is bounded."""
    import pyarrow as pa

    from plait.testing.examples import clique

    def kept(idle: int | None) -> int:
        query = clique(2)
        b = replace(query.streams[1], idle=idle)
        query = replace(query, streams=(query.streams[0], b))
        cluster = Cluster(query, mjoin(query), 2)
        for n in range(30):
            times = [n * 10_000_000 + i for i in range(5)]
            rows = pa.table([times, [1] * 5], schema=query.streams[0].schema)
            cluster.run({"a": rows}, clock=n * SECOND)
        return sum(report.state_rows for report in cluster.reports)

    assert kept(None) == 150
    assert kept(5_000_000) <= 15


@pytest.mark.slow
def test_a_shorter_delay_after_idleness_makes_no_row_late_that_is_not_older() -> None:
    """A stream that followed the others has come no further itself."""
    import pyarrow as pa

    from plait.testing.examples import clique

    query = clique(2)
    a, b = query.streams[0], replace(query.streams[1], idle=5_000_000, delay=100_000_000)
    query = replace(query, streams=(a, b))
    cluster = Cluster(query, mjoin(query), 2)

    def rows(second: int) -> pa.Table:
        return pa.table([[second * SECOND * 1_000], [1]], schema=a.schema)

    cluster.run({"a": rows(10), "b": rows(10)}, clock=10 * SECOND)
    cluster.run({"a": rows(20)}, clock=20 * SECOND)
    assert cluster.reports[0].watermarks["b"] == 20_000_000, "it follows"
    shorter = replace(query, streams=(a, replace(b, delay=1_000_000)))
    cluster = cluster.asked(shorter, mjoin(shorter))
    found = cluster.run({"a": rows(25), "b": rows(25)}, clock=25 * SECOND)
    assert cluster.reports[0].watermarks["b"] == 24_000_000 and len(found) == 2
