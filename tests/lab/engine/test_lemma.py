"""Purging by lemma 2.2: what stays, for how long, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from plait.engine.purging import PurgeByWatermarks
from plait.errors import PlanError
from plait.local.host import LocalRun
from plait.plan.jtree import parse_shape
from plait.plan.routed import Eddies
from plait.query.query import Query
from plait.testing.examples import chain, clique, trades_quotes_news
from plait_lab.engine.lemma import PurgeByLemma, lemma_cutoff

SECOND = 1_000_000


def rows(query: Query, stream: str, *seconds: float) -> pa.Table:
    """Rows that all have the key 1."""
    schema = query.streams[query.index(stream)].schema
    columns = {
        f.name: pa.array([round(s * SECOND) for s in seconds]).cast(f.type)
        if f.name == "ts"
        else pa.array([1] * len(seconds), f.type)
        for f in schema
    }
    return pa.table(columns, schema=schema)


def state_rows(run: LocalRun) -> dict[str, int]:
    return {"".join(size.streams): size.rows for size in run.engine.sizes()}


def after(purge: type[PurgeByWatermarks], *steps: tuple[str, float]) -> dict[str, int]:
    """The rows in the states of ((a b) c) after single tuples, one batch each."""
    query = chain(3)
    run = LocalRun(query, parse_shape(query, "((a b) c)"), purge=purge)
    for stream, second in steps:
        run.push({stream: rows(query, stream, second)})
    return state_rows(run)


def test_a_combination_stays_until_w_after_its_latest_time() -> None:
    made = (("a", 0), ("b", 9))
    assert after(PurgeByLemma, *made, ("c", 18.9), ("a", 19), ("b", 19))["ab"] == 3
    assert after(PurgeByLemma, *made, ("c", 19.1))["ab"] == 0


def test_a_base_row_goes_when_its_opposite_input_and_the_watermarks_have_passed() -> None:
    # a is purged by b; but c has not come that far, and a combination with a may still meet it.
    assert after(PurgeByLemma, ("a", 0), ("c", 1), ("b", 12))["a"] == 1
    assert after(PurgeByLemma, ("a", 0), ("b", 12), ("c", 12))["a"] == 0


def test_a_base_row_is_held_as_long_as_a_combination_has_it() -> None:
    steps = (("a", 0), ("b", 9), ("c", 18), ("a", 18), ("b", 18))
    assert after(PurgeByWatermarks, *steps)["a"] == 1
    assert after(PurgeByLemma, *steps)["a"] == 2
    assert after(PurgeByLemma, *steps, ("c", 20))["a"] == 1


def test_rows_that_are_only_held_do_not_count() -> None:
    query = chain(3)
    run = LocalRun(query, parse_shape(query, "((a b) c)"), purge=PurgeByLemma)
    for stream, second in (("a", 0), ("b", 9), ("c", 18), ("a", 18), ("b", 18)):
        run.push({stream: rows(query, stream, second)})
    found = [[operator.rows(c) for c in (0, 1)] for operator in run.engine.operators]
    assert found == [[3, 1], [1, 2]]


def test_c_is_purged_by_combinations_only() -> None:
    apart = (("c", 0), ("a", 11), ("b", 21.5), ("c", 22))
    assert after(PurgeByLemma, *apart)["c"] == 2
    assert after(PurgeByWatermarks, *apart)["c"] == 1
    assert after(PurgeByLemma, *apart, ("a", 23))["c"] == 1


def test_cutoff_waits_for_the_input_that_lags() -> None:
    query = chain(3)
    a, b, c = (frozenset({i}) for i in range(3))
    assert lemma_cutoff(query, a, [(b, 30 * SECOND), (c, 20 * SECOND)]) == 10 * SECOND


def test_streams_out_of_order_are_refused() -> None:
    with pytest.raises(PlanError, match="'trades' may be out of order"):
        LocalRun(trades_quotes_news, purge=PurgeByLemma)


def test_streams_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(PlanError, match="rows are late by the least watermark"):
        LocalRun(replace(clique(2), lateness="least"), purge=PurgeByLemma)


def test_routers_purge_by_watermarks() -> None:
    with pytest.raises(PlanError, match="by watermarks only"):
        LocalRun(chain(3), Eddies(), purge=PurgeByLemma)
