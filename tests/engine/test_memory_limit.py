"""A limit on what a running plan may hold: the plan that does not fit fails, and says why."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.errors import MemoryExceeded, PlanError
from plait.local.host import LocalRun
from plait.plan.jtree import mjoin, parse_shape
from plait.plan.routed import Eddies
from plait.testing.examples import chain

QUERY = chain(3)


def _batch(rows: int) -> dict[str, pa.Table]:
    stamps = pa.array(range(rows)).cast(pa.timestamp("us"))
    key = pa.array([i % 2 for i in range(rows)])
    return {
        s.name: pa.table({f.name: stamps if f.name == "ts" else key for f in s.fields})
        for s in QUERY.streams
    }


def _results(run: LocalRun, rows: int) -> int:
    return sum(len(results) for results in run.stream(_batch(rows)))


@pytest.mark.slow
def test_the_plan_that_keeps_too_much_fails_and_names_its_largest_state() -> None:
    free = LocalRun(QUERY, parse_shape(QUERY, "((a b) c)"))
    _results(free, 400)
    limit = free.engine.nbytes // 2
    run = LocalRun(QUERY, parse_shape(QUERY, "((a b) c)"), memory_limit=limit)
    with pytest.raises(MemoryExceeded, match=r"memory limit of \d+; the largest state is a⋈b"):
        _results(run, 400)
    try:
        _results(LocalRun(QUERY, parse_shape(QUERY, "((a b) c)"), memory_limit=limit), 400)
    except MemoryExceeded as error:
        assert error.limit == limit < error.total_bytes
        assert error.state_bytes <= error.total_bytes


def test_a_plan_that_fits_runs_as_without_a_limit() -> None:
    free, tight = LocalRun(QUERY, mjoin(QUERY)), LocalRun(QUERY, mjoin(QUERY), memory_limit=10**6)
    assert _results(tight, 100) == _results(free, 100) > 0
    assert tight.engine.nbytes <= 10**6


@pytest.mark.slow
def test_the_limit_stays_when_the_plan_changes() -> None:
    run = LocalRun(QUERY, mjoin(QUERY), memory_limit=200_000)
    _results(run, 50)
    run.migrate(parse_shape(QUERY, "((a b) c)"))
    with pytest.raises(MemoryExceeded):
        _results(run, 600)


def test_routers_have_no_memory_limit() -> None:
    with pytest.raises(PlanError, match="memory limit"):
        LocalRun(QUERY, Eddies(), memory_limit=10**6)
