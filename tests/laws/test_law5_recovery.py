"""Laws 4 and 5 without Spark: any number of processors, crashes at every point, lost caches."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.cluster.packets import LATE, NO_TIME, NULL_KEY, lean
from plait.cluster.processor import Engines, OwnEngines
from plait.plan.enumerate import sample_plan
from plait.plan.routed import Eddies, Teddies
from plait.query.expr import Column, streams_of
from plait.query.query import Query
from plait.runtime.arena import Arena, Places
from plait.testing.histories import History, cases, crowds, stream_table
from plait.testing.laws import difference
from plait.testing.oracle import Result, all_tuples, multiset, oracle, split_late
from plait.testing.processors import Cluster
from plait.testing.scalar import compiled, python_values

Rows = Sequence[Mapping[str, object]]


def _assert_lawful(history: History, processors: int, seed: int, workers: list[Engines]) -> None:
    chance = random.Random(seed)
    query = history.query
    plans = (sample_plan(query, chance), Teddies(policy="lottery"), Eddies())
    plan = chance.choices(plans, (4, 1, 1))[0]
    cluster = Cluster(query, plan, processors, workers, aside=True)
    aside: Counter[tuple[str, str, Result]] = Counter()
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
        for part in cluster.aside:
            name = query.names[part.stream]
            rows = multiset(pa.Table.from_batches([part.rows]))
            aside.update({(name, part.reason, row): n for row, n in rows.items()})
        for report in cluster.reports:
            late_rows.update(report.late)
    on_time, late = split_late(query, history.batches)
    answer = oracle(query, on_time)
    assert found == answer, f"{difference(found, answer)}\n{cluster.processor.plan}\n{history!r}"
    assert aside == set_aside(query, history.batches, late), repr(history)
    assert late_rows == sum_by_stream(aside, LATE)
    totals = [report.total for report in cluster.reports]
    assert sum(total["results"] for total in totals) == answer.total(), "a repeated batch counts"
    assert sum((Counter(total["late"]) for total in totals), Counter()) == late_rows
    if totals:
        seen = {s.name: sum(len(b.get(s.name, ())) for b in history.batches) for s in query.streams}
        assert Counter(totals[0]["rows"]) == Counter({name: n for name, n in seen.items() if n})


def set_aside(
    query: Query, batches: Sequence[Mapping[str, Rows]], late: Mapping[str, Rows]
) -> Counter[tuple[str, str, Result]]:
    """By definition: stream, reason and values of the rows that are not joined for a reason.

    A row that fails a condition on its own stream is no result whenever it comes: it is not late.
    """
    found: Counter[tuple[str, str, Result]] = Counter()
    narrow = lean(query)
    for s, stream in enumerate(query.streams):
        alone = [r for r in query.residuals if streams_of(r) == {stream.name}]
        conditions = [compiled(r, query.type_of) for r in alone]
        keys = [c for e in query.equalities for c in (e.left, e.right) if c.stream == stream.name]
        everything = [row for batch in batches for row in batch.get(stream.name, ())]
        for rows, reasons in ((everything, (NO_TIME, NULL_KEY)), (late[stream.name], (LATE,))):
            table = stream_table(stream, rows).select([f.name for f in narrow.streams[s].fields])
            values = list(zip(*map(python_values, table.columns), strict=True))
            for t, row in zip(all_tuples(stream, rows), values, strict=True):
                reason = LATE
                if t[Column(stream.name, stream.time)] is None:
                    reason = NO_TIME
                elif not all(c(t) is True for c in conditions):
                    continue
                elif any(t[c] is None for c in keys):
                    reason = NULL_KEY
                if reason in reasons:
                    found[stream.name, reason, row] += 1
    return found


def sum_by_stream(aside: Counter[tuple[str, str, Result]], reason: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for (name, why, _), n in aside.items():
        if why == reason:
            found[name] += n
    return found


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
