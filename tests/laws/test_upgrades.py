"""Law 5 for queries that go on from their state with another question."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from tests.upgrade_cases import BATCHES, CASES, SCHEMA, SINCE, rows

import plait
from plait.query.bounds import Bounds
from plait.query.expr import Column
from plait.query.query import Output, Query
from plait.workshop.laws.checks import difference
from plait.workshop.laws.histories import History, cases
from plait.workshop.laws.hosts import any_plan
from plait.workshop.laws.processors import Cluster
from plait.workshop.laws.upgrades import answer_from
from plait.workshop.oracle.answer import Result, multiset

pytestmark = pytest.mark.slow

STREAMS = ("left", "right")


@st.composite
def questions(draw: DrawFn, query: Query) -> Query:
    """A query with some of the conditions, some columns, and perhaps another window."""
    times = draw(st.sampled_from((1, 1, 2, 3)))
    bounds = Bounds(tuple(tuple(times * d for d in row) for row in query.bounds.matrix))
    residuals = tuple(r for r in query.residuals if draw(st.booleans()))
    columns = [Column(s.name, f.name) for s in query.streams for f in s.fields]
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4, unique=True))
    select = tuple(Output(f"c{i}", column) for i, column in enumerate(chosen))
    return replace(query, bounds=bounds, residuals=residuals, select=select)


@st.composite
def changing(draw: DrawFn) -> tuple[History, Query, Query, int]:
    history = draw(cases(late=True))
    first, second = draw(questions(history.query)), draw(questions(history.query))
    return history, first, second, draw(st.integers(0, len(history.batches)))


@settings(max_examples=150)
@given(changing(), st.integers(1, 3), st.integers(0, 2**32))
def test_oracle_goes_on_with_another_question(
    story: tuple[History, Query, Query, int], processors: int, seed: int
) -> None:
    history, first, second, since = story
    chance, found = Random(seed), Counter[Result]()
    cluster = Cluster(
        first,
        any_plan(first, chance),
        processors,
        tuning=history.tuning,
        seed=chance.choice((None, 5)),
    )
    for number, batch in enumerate(history.tables()):
        if number == since:
            cluster = cluster.asked(second, any_plan(second, chance))
        results = cluster.run(
            batch,
            worker_of=lambda _: chance.randrange(2),
            die=lambda _processor, _step: chance.random() < 0.2,
        )
        if number >= since:
            found += multiset(results)
    wanted = answer_from(first, second, history.batches, since)
    about = f"first {first.residuals} {first.select} {first.bounds}\n{history!r}"
    assert found == wanted, f"{difference(found, wanted)}\n{about}"


@pytest.mark.parametrize("name", CASES)
def test_oracle_each_change_of_the_table(name: str) -> None:
    """The same cases as on Spark, where tasks die and restarts are real."""
    tables = [
        {stream: pa.Table.from_pylist(rows(s, b), SCHEMA) for s, stream in enumerate(STREAMS)}
        for b in range(BATCHES)
    ]
    asked = plait.join(**tables[0]).watermark("2 seconds").on("left.sym = right.sym")
    first, second = (change(asked).query for change in CASES[name])
    cluster, found = Cluster(first, any_plan(first, Random(1)), 2), Counter[Result]()
    for number, batch in enumerate(tables):
        if number == SINCE:
            cluster = cluster.asked(second, any_plan(second, Random(2)))
        results = cluster.run(batch)
        if number >= SINCE:
            found += multiset(results)
    # No row is late by one delay and not by the other.
    pairs = zip(second.streams, first.streams, strict=True)
    streams = tuple(replace(new, delay=old.delay) for new, old in pairs)
    given = [{stream: rows(s, b) for s, stream in enumerate(STREAMS)} for b in range(BATCHES)]
    wanted = answer_from(first, replace(second, streams=streams), given, SINCE)
    assert found == wanted and found
