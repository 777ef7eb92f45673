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
from plait.testing.oracle.answer import Result, multiset
from plait_lab.laws.checks import difference
from plait_lab.laws.hosts import any_plan
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, cases
from plait_lab.laws.upgrades import answers

pytestmark = pytest.mark.slow

STREAMS = ("left", "right")


@st.composite
def questions(draw: DrawFn, query: Query) -> Query:
    """A query with some of the conditions, some columns, perhaps another window, other delays."""
    times = draw(st.sampled_from((1, 1, 2, 3)))
    bounds = Bounds(tuple(tuple(times * d for d in row) for row in query.bounds.matrix))
    residuals = tuple(r for r in query.residuals if draw(st.booleans()))
    streams = tuple(
        s if s.unlimited else replace(s, delay=s.delay * draw(st.sampled_from((0, 1, 1, 3, 10))))
        for s in query.streams
    )
    columns = [Column(s.name, f.name) for s in query.streams for f in s.fields]
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4, unique=True))
    select = tuple(Output(f"c{i}", column) for i, column in enumerate(chosen))
    return replace(query, streams=streams, bounds=bounds, residuals=residuals, select=select)


@st.composite
def changing(draw: DrawFn) -> tuple[History, list[Query], list[int]]:
    """Some questions, which may come back, and the batches from which they are asked."""
    history = draw(cases(late=True))
    different = draw(st.lists(questions(history.query), min_size=2, max_size=3))
    asked = [different[0], *draw(st.lists(st.sampled_from(different), min_size=1, max_size=4))]
    numbers = st.integers(0, len(history.batches))
    since = draw(st.lists(numbers, min_size=len(asked) - 1, max_size=len(asked) - 1))
    return history, asked, [0, *sorted(since)]


@settings(max_examples=150)
@given(changing(), st.integers(1, 3), st.integers(0, 2**32))
def test_oracle_goes_on_with_other_questions(
    story: tuple[History, list[Query], list[int]], processors: int, seed: int
) -> None:
    history, asked, since = story
    chance, found = Random(seed), list[Counter[Result]]()
    first, tables = asked[0], history.tables()
    cluster = Cluster(
        first,
        any_plan(first, chance),
        processors,
        tuning=history.tuning,
        seed=chance.choice((None, 5)),
    )
    ends = [*since[1:], len(tables)]
    for number, (query, begin, end) in enumerate(zip(asked, since, ends, strict=True)):
        if number:
            cluster = cluster.asked(query, any_plan(query, chance))
        found.append(Counter())
        for batch in tables[begin:end]:
            results = cluster.run(
                batch,
                worker_of=lambda _: chance.randrange(2),
                die=lambda _processor, _step: chance.random() < 0.2,
            )
            found[-1] += multiset(results)
    phases = zip(asked, since, ends, strict=True)
    wanted = answers([(query, history.batches[begin:end]) for query, begin, end in phases])
    for number, (here, there) in enumerate(zip(found, wanted, strict=True)):
        about = f"question {number} of {asked} from {since}\n{history!r}"
        assert here == there, f"{difference(here, there)}\n{about}"


DELAYS = (10, 100, 10)


def test_oracle_a_delay_that_is_made_longer_and_short_again() -> None:
    """The watermark waits for the longer delay, and not for ever."""
    tables = [
        {stream: pa.Table.from_pylist(rows(s, b), SCHEMA) for s, stream in enumerate(STREAMS)}
        for b in range(3 * BATCHES)
    ]
    join = plait.join(**tables[0]).on("left.sym = right.sym").within("6 seconds")
    asked = [join.watermark(f"{delay} seconds").query for delay in DELAYS]
    cluster = Cluster(asked[0], any_plan(asked[0], Random(1)), 2)
    found = []
    for number, query in enumerate(asked):
        if number:
            cluster = cluster.asked(query, any_plan(query, Random(number)))
        found.append(Counter[Result]())
        for batch in tables[number * BATCHES : (number + 1) * BATCHES]:
            found[-1] += multiset(cluster.run(batch))
    given = [{stream: rows(s, b) for s, stream in enumerate(STREAMS)} for b in range(3 * BATCHES)]
    parts = [given[i : i + BATCHES] for i in range(0, len(given), BATCHES)]
    wanted = answers(list(zip(asked, parts, strict=True)))
    assert found == wanted and all(found)


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
    given = [{stream: rows(s, b) for s, stream in enumerate(STREAMS)} for b in range(BATCHES)]
    assert found == answers([(first, given[:SINCE]), (second, given[SINCE:])])[1] and found
