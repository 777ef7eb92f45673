"""Law 3: the same multiset as the oracle for a migration by each strategy at every instant.

Every pair of plans of three and four streams, at every batch boundary of small, mean histories
(few keys, ties, disorder, a stream that lags); sampled pairs of five and six streams; several
migrations one after the other, also asked for while one is under way.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from plait.engine.migrate import Order, Strategy
from plait.plan.enumerate import all_plans
from plait.plan.examples import chain, clique
from plait.plan.jtree import Node
from plait.query.query import Query
from plait.runtime.local import LocalRun
from plait.testing.histories import History
from plait.testing.laws import difference, expected
from plait.testing.oracle import Result, multiset

Way = tuple[Strategy, Order]
WAYS: tuple[Way, ...] = (
    ("moving-state", "any"),
    ("parallel-track", "any"),
    ("parallel-track", "timestamp"),
)
WINDOW, DELAY = 4, 2
SEEDS = st.integers(0, 10**6)


def mean_history(query: Query, *, batches: int, rows: int, seed: int, keys: int = 2) -> History:
    """A few keys, ties, disorder up to the delay, and a last stream that lags behind the others."""
    random = Random(seed)
    query = replace(query, streams=tuple(replace(s, delay=DELAY) for s in query.streams))
    found: list[dict[str, list[dict[str, object]]]] = []
    for batch in range(batches):
        found.append({})
        for number, stream in enumerate(query.streams):
            lag = 3 if number == len(query.streams) - 1 else 0
            for _ in range(random.randint(0, rows)):
                tick = 3 * batch + random.randint(-DELAY, 1) - lag
                row: dict[str, object] = {
                    f.name: tick if f.name == stream.time else random.randrange(keys)
                    for f in stream.fields
                }
                found[-1].setdefault(stream.name, []).append(row)
    return History(query, tuple(found))


def narrow(query: Query) -> Query:
    """The same query with a window of a few ticks, so that old tuples go within the history."""
    matrix = query.bounds.matrix
    small = tuple(
        tuple(0 if i == j else WINDOW for j in range(len(matrix))) for i in range(len(matrix))
    )
    return replace(query, bounds=replace(query.bounds, matrix=small))


def collect(run: LocalRun, batches: Sequence[Mapping[str, pa.Table]]) -> Counter[Result]:
    found: Counter[Result] = Counter()
    for batch in batches:
        found += multiset(run.push(batch))
    return found


def ended(run: LocalRun) -> Counter[Result]:
    return multiset(pa.Table.from_batches(list(run.finish()), run.query.schema))


def check_pairs(
    history: History, plans: Sequence[Node], ways: Sequence[Way], instants: Sequence[int]
) -> None:
    """From every plan to every other, by each way, at each of the instants."""
    wanted, _ = expected(history)
    assert wanted, "a history without results shows nothing"
    tables = history.tables()
    for old in plans:
        run, before = LocalRun(history.query, old), Counter[Result]()
        for instant in range(len(tables) + 1):
            if instant in instants:
                for new in plans:
                    for strategy, order in ways:
                        other = copy.deepcopy(run)
                        other.migrate(new, strategy, order=order)
                        found = before + collect(other, tables[instant:]) + ended(other)
                        about = f"{old} → {new} by {strategy} ({order}) before batch {instant}"
                        assert found == wanted, f"{difference(found, wanted)}\n{about}\n{history!r}"
            if instant < len(tables):
                before += multiset(run.push(tables[instant]))


@pytest.mark.parametrize("graph", [chain, clique])
def test_oracle_every_pair_of_shapes_of_three_streams(graph: object) -> None:
    assert callable(graph)
    history = mean_history(narrow(graph(3)), batches=5, rows=4, seed=1)
    check_pairs(history, list(all_plans(history.query, orders="default")), WAYS, [2, 3])
