"""Questions that change while a query keeps its state, drawn at random, and the law for them.

Windows get wider and narrower, delays longer and shorter, conditions and columns come and go, in
any order and also back to what was asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from plait.query.bounds import Bounds
from plait.query.expr import Column
from plait.query.query import NEVER_LATE, Output, Query
from plait.testing.oracle.answer import multiset
from plait.testing.oracle.fates import LATE, NO_TIME, NULL_KEY
from plait_lab.laws.checks import difference
from plait_lab.laws.hosts import HostAnswer, any_plan
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, stream_table
from plait_lab.laws.strategies.moves import Restless
from plait_lab.laws.upgrades import Answer, Asked, full_answers, phases_of

_WIDER = (1, 1, 2, 3)
_LONGER = (0, 0, 1, 5)
"""How many windows a delay is longer."""


def drawn_question(query: Query, chance: Random, *, keep: Sequence[Output] = ()) -> Query:
    """Another question to the same streams; its output begins with what is to be kept."""
    times = chance.choice(_WIDER)
    bounds = Bounds(tuple(tuple(times * d for d in row) for row in query.bounds.matrix))
    streams = tuple(
        stream
        if stream.delay >= NEVER_LATE
        else replace(stream, delay=stream.delay + chance.choice(_LONGER) * query.bounds.widest)
        for stream in query.streams
    )
    residuals = tuple(r for r in query.residuals if chance.random() < 0.5)
    columns = [Column(s.name, f.name) for s in query.streams for f in s.fields]
    chosen = chance.sample(columns, chance.randint(0 if keep else 1, min(3, len(columns))))
    select = (*keep, *(Output(f"c{i}", column) for i, column in enumerate(chosen)))
    return replace(query, streams=streams, bounds=bounds, residuals=residuals, select=select)


def drawn_questions(
    query: Query, batches: int, chance: Random, *, keep: Sequence[Output] = ()
) -> list[Asked]:
    """Two to four questions, each for some batches; now and then the first one comes back."""
    number = min(chance.randint(2, 4), batches)
    first = drawn_question(query, chance, keep=keep)
    found = [Asked(0, first)]
    for since in sorted(chance.sample(range(1, batches), number - 1)):
        back = len(found) > 1 and chance.random() < 0.5
        found.append(Asked(since, first if back else drawn_question(query, chance, keep=keep)))
    return found


def assert_lawful_through_changes(history: History, seed: int) -> int:
    """Run a history on processors with questions that change; how many changes there were.

    Tasks die, caches are lost and partition groups move meanwhile.
    """
    chance = Random(seed)
    if not history.batches:
        return 0
    asked = drawn_questions(history.query, len(history.batches), chance)
    manager = Restless(chance, busy=chance.choice((0.0, 0.5)))
    query, tables = asked[0].query, history.tables()
    cluster = Cluster(
        query,
        any_plan(query, chance),
        chance.randrange(1, 4),
        aside=True,
        tuning=history.tuning,
        seed=chance.choice((None, 5)),
    )
    wanted = full_answers(phases_of(asked, history.batches))
    for number, (since, query) in enumerate(asked):
        if number:
            cluster = cluster.asked(query, any_plan(query, chance))
        until = asked[number + 1].since if number + 1 < len(asked) else len(tables)
        found = HostAnswer()
        for batch in tables[since:until]:
            manager.manage(cluster)
            found.results += multiset(
                cluster.run(
                    batch,
                    tasks=chance.choice((1, 2)),
                    worker_of=lambda _: chance.randrange(2),
                    die=lambda _processor, _step: chance.random() < 0.2,
                )
            )
            for rows in cluster.aside:
                found.set_aside(query, rows)
        _compare(found, wanted[number], query, f"question {number} of {asked}\n{history!r}")
    return len(asked) - 1


def _compare(found: HostAnswer, wanted: Answer, query: Query, about: str) -> None:
    assert found.results == wanted.results, f"{difference(found.results, wanted.results)}\n{about}"
    right = HostAnswer()
    for stream in query.streams:
        for reason in (NO_TIME, NULL_KEY, LATE):
            rows = stream_table(stream, wanted.aside[stream.name][reason])
            right.add_aside(query, stream.name, reason, rows)
    assert found.aside == right.aside, f"rows set aside: {found.aside}, not {right.aside}\n{about}"
