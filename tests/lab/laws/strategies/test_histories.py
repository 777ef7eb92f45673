"""The strategies make what the laws need: lawful input, all kinds of it, and results."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from plait.query.query import Query
from plait.testing.oracle.answer import multiset, oracle, split_late
from plait_lab.laws.strategies.histories import History, cases, crowds
from plait_lab.laws.strategies.queries import queries

pytestmark = pytest.mark.slow

QUIET = settings(
    max_examples=60,
    phases=[Phase.generate],
    database=None,
    suppress_health_check=list(HealthCheck),
)
"""Examples to take statistics of."""


@settings(max_examples=40)
@given(st.one_of(cases(), crowds()))
def test_no_row_is_late_unless_asked_for(history: History) -> None:
    on_time, late = split_late(history.query, history.batches)
    assert not any(late.values())
    known = {s.name: s.time for s in history.query.streams}
    for name, rows in history.rows().items():
        assert len(on_time[name]) == sum(row[known[name]] is not None for row in rows)


@settings(max_examples=40)
@given(cases(late=True))
def test_tables_hold_the_rows_of_their_batches(history: History) -> None:
    for batch, tables in zip(history.batches, history.tables(), strict=True):
        for stream in history.query.streams:
            table = tables.get(stream.name, stream.schema.empty_table())
            rows = [tuple(row[f.name] for f in stream.fields) for row in batch.get(stream.name, ())]
            assert table.schema == stream.schema
            assert table.num_rows == len(rows)
            position = table.schema.get_field_index("id")
            ids = Counter(row[position] for row in rows)
            assert Counter(result[position] for result in multiset(table).elements()) == ids


def _tally(strategy: st.SearchStrategy[History]) -> Counter[str]:
    seen: Counter[str] = Counter()

    @QUIET
    @given(strategy)
    def collect(history: History) -> None:
        results = oracle(history.query, history.rows()).total()
        seen["all"] += 1
        seen["with results"] += results > 0
        seen["late"] += any(split_late(history.query, history.batches)[1].values())
        seen["several batches"] += len(history.batches) > 1

    collect()
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("size", range(2, 7))
def test_histories_have_results_for_every_number_of_streams(size: int) -> None:
    seen = _tally(cases(streams=st.just(size)))
    assert seen["with results"] >= 5, seen
    assert seen["several batches"] >= 5, seen
    assert seen["late"] == 0, seen


@pytest.mark.slow
def test_crowds_have_results_and_late_rows() -> None:
    seen = _tally(crowds(late=True))
    assert seen["late"] >= 5, seen
    assert seen["with results"] >= 5, seen


def _kinds(query: Query) -> set[str]:
    """What is special about a query."""
    graph, size, matrix = query.graph, len(query.streams), query.bounds.matrix
    edges = {(i, j) for i in range(size) for j in graph.neighbours(i) if i < j}
    pairs = Counter((e.left.stream, e.right.stream) for e in query.equalities)
    both = [(matrix[i][j], matrix[j][i]) for i in range(size) for j in range(i)]
    kinds = {
        "clique": size > 2 and len(graph.classes) == 1,
        "no clique": len(edges) < size * (size - 1) // 2,
        "cycle": size > 2 and len(edges) >= size and len(graph.classes) > 1,
        "composite key": max(pairs.values()) > 1 and len(graph.classes) > 1,
        "two attributes": any(len(names) > 1 for c in graph.classes for names in c.columns),
        "global window": query.bounds.uniform is not None,
        "asymmetric bounds": any(there != back for there, back in both),
        "offset bounds": any(there < 0 or back < 0 for there, back in both),
        "zero width": any(there + back == 0 for there, back in both),
        "residual": bool(query.residuals),
        "mixed types": any(
            query.type_of(e.left) != query.type_of(e.right) for e in query.equalities
        ),
    }
    types = {str(c.type).split("(")[0].split("[")[0] for c in graph.classes}
    return {kind for kind, holds in kinds.items() if holds} | types


KINDS = (
    "clique",
    "no clique",
    "cycle",
    "composite key",
    "two attributes",
    "global window",
    "asymmetric bounds",
    "offset bounds",
    "zero width",
    "residual",
    "mixed types",
    "int64",
    "large_string",
    "double",
    "decimal128",
    "date32",
    "timestamp",
    "bool",
    "large_binary",
    "time64",
)


@pytest.mark.parametrize("kind", KINDS)
def test_queries_are_of_every_kind(kind: str) -> None:
    find(
        queries(), lambda query: kind in _kinds(query), settings=settings(QUIET, max_examples=2000)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(cases(), id="cases"),
        pytest.param(crowds(), id="crowds", marks=pytest.mark.campaign),
    ],
)
def test_failures_shrink_to_something_small(strategy: st.SearchStrategy[History]) -> None:
    """The plainest history with a result is one row of each of two streams in one batch."""
    smallest: list[History] = []

    @settings(max_examples=300, database=None, derandomize=True, deadline=None)
    @given(strategy)
    def has_no_results(history: History) -> None:
        if oracle(history.query, history.rows()).total():
            smallest.append(history)
            raise AssertionError

    with pytest.raises(AssertionError):
        has_no_results()
    last = smallest[-1]
    assert len(last.query.streams) == 2
    assert len(last.batches) == 1
    assert sum(map(len, last.rows().values())) == 2
    assert not last.query.residuals
