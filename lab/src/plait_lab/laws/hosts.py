"""One law for every host: the results and the rows set aside are those of the definition.

A host is a function from a history to an answer. What differs between hosts (batches cut by a
clock, tasks that die, caches that are lost) is inside of it, and must not show in the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa

from plait.engine.intake.times import event_times
from plait.groups.routing.packets import lean
from plait.local.host import LocalRun
from plait.node.batch import Aside
from plait.node.durable.store import Engines
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query
from plait.testing.oracle.answer import Result, Rows, multiset, oracle, split_late
from plait.testing.oracle.fates import FILTERED, LATE, NO_TIME, NULL_KEY, counts, set_aside
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, stream_table
from plait_lab.virtual.host import VirtualRun


@dataclass(slots=True)
class HostAnswer:
    """Everything that a query says about the rows it was given."""

    results: Counter[Result] = field(default_factory=Counter)
    aside: Counter[tuple[str, str, Result]] = field(default_factory=Counter)
    """Stream, reason and values of the rows that were set aside."""
    filtered: Counter[str] = field(default_factory=Counter)
    """Rows of each stream that a condition on their own stream refused."""

    def set_aside(self, query: Query, rows: Aside) -> None:
        """Add rows that a host has handed out."""
        name = query.names[rows.stream]
        self.add_aside(query, name, rows.reason, pa.Table.from_batches([rows.rows]))

    def add_aside(self, query: Query, name: str, reason: str, rows: pa.Table) -> None:
        """Add rows of a stream, without the columns that only conditions on it read.

        Hosts may leave those out.
        """
        needed = [f.name for f in lean(query).streams[query.index(name)].fields]
        for row, n in multiset(rows.select(needed)).items():
            self.aside[name, reason, row] += n


def definition(query: Query, batches: Sequence[Mapping[str, Rows]]) -> HostAnswer:
    """The right answer."""
    on_time, _ = split_late(query, batches)
    aside = set_aside(query, batches)
    answer = HostAnswer(oracle(query, on_time), filtered=counts(aside, FILTERED))
    for stream in query.streams:
        for reason in (NO_TIME, NULL_KEY, LATE):
            table = stream_table(stream, aside[stream.name][reason])
            answer.add_aside(query, stream.name, reason, table)
    return answer


def in_order(history: History) -> History:
    """The same rows as they happened: in the order of time, all known at once, none too late."""
    batch: dict[str, list[dict[str, Any]]] = {}
    for stream in history.query.streams:
        rows: list[dict[str, Any]] = history.rows()[stream.name]
        timed = [row for row in rows if row[stream.time] is not None]
        batch[stream.name] = sorted(timed, key=lambda row: row[stream.time])
    return replace(history, batches=(batch,))


def with_pauses(
    batches: Iterable[Mapping[str, pa.Table]], chance: Random
) -> Iterator[Mapping[str, pa.Table]]:
    """The same batches, and between them some in which no input has a partition."""
    often = chance.choice((0.0, 0.2, 0.6))
    for batch in batches:
        while chance.random() < often:
            yield {}
        yield batch


def any_plan(query: Query, chance: Random) -> Plan:
    """A tree, more often than a router."""
    plans = (sample_plan(query, chance), Teddies(policy="lottery"), Eddies())
    return chance.choices(plans, (4, 1, 1))[0]


def on_local(history: History, chance: Random) -> HostAnswer:
    """In this process."""
    query, answer = history.query, HostAnswer()
    run = LocalRun(
        query,
        any_plan(query, chance),
        tuning=history.tuning,
        seed=chance.getrandbits(64),
        aside=lambda rows: answer.set_aside(query, rows),
    )
    for batch in with_pauses(history.tables(), chance):
        answer.results += multiset(run.push(batch))
    answer.results += multiset(pa.Table.from_batches(list(run.finish()), query.schema))
    answer.filtered = +Counter(run.counts.filtered)
    return answer


def on_processors(history: History, chance: Random) -> HostAnswer:
    """On several processors, whose tasks die and lose their caches."""
    return run_on_processors(history, chance, chance.randrange(1, 5))[0]


def run_on_processors(
    history: History, chance: Random, processors: int, workers: Sequence[Engines] | None = None
) -> tuple[HostAnswer, Cluster]:
    """The same, for those who want to look at the processors afterwards."""
    query, answer = history.query, HostAnswer()
    cluster = Cluster(
        query,
        any_plan(query, chance),
        processors,
        workers,
        aside=True,
        tuning=history.tuning,
        seed=chance.choice((None, 0, chance.getrandbits(64))),
    )
    for batch in with_pauses(history.tables(), chance):
        results = cluster.run(
            batch,
            tasks=chance.choice((1, 2, 3)),
            worker_of=lambda _: chance.randrange(2),
            die=lambda _processor, _step: chance.random() < 0.2,
        )
        answer.results += multiset(results)
        for rows in cluster.aside:
            answer.set_aside(query, rows)
        for report in cluster.reports[:1]:
            answer.filtered += Counter(report.filtered)
    return answer, cluster


def on_virtual(history: History, chance: Random) -> HostAnswer:
    """On a machine whose time is computed; rows come in the order of time."""
    query, answer = history.query, HostAnswer()
    (rows,) = history.tables()
    columns = [rows[s.name].column(s.time) for s in query.streams if len(rows.get(s.name, ()))]
    latest = [int(event_times(column.combine_chunks()).max()) for column in columns]
    last = max([1, *latest])
    run = VirtualRun(
        query,
        sample_plan(query, chance),
        {s.name: rows.get(s.name, stream_table(s, ())) for s in query.streams},
        quantum=last / 1e6 / chance.randint(1, 20),
        keep=True,
        aside=lambda found: answer.set_aside(query, found),
    )
    run.advance()
    answer.results = multiset(pa.Table.from_batches(run.kept, query.schema))
    answer.filtered = run.filtered
    return answer


HOSTS: dict[str, Callable[[History, Random], HostAnswer]] = {
    "local": on_local,
    "simulated": on_processors,
    "virtual": on_virtual,
}
"""The hosts that need no Spark."""


def assert_lawful_on(host: str, history: History, seed: int) -> None:
    """The law."""
    if host == "virtual":
        history = in_order(history)
    wanted = definition(history.query, history.batches)
    assert HOSTS[host](history, Random(seed)) == wanted, f"{host}, seed {seed}\n{history!r}"
