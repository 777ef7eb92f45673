"""The loop at work in a run: flips, lies, memory, and going on elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from tests.adapt.conftest import POLICY as QUICK
from tests.adapt.conftest import QUERY, batches

from plait.adapt.events import Event
from plait.adapt.knowledge import Knowledge
from plait.adapt.setting import Setting
from plait.engine.counters import OperatorCounters
from plait.engine.driver import Engine
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.migrate.strategy import MigrationDone, migrate
from plait.errors import MigrationError
from plait.local.host import LocalRun
from plait.machine.clock import Clock
from plait.node import node
from plait.node.adapting import Adapting
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.optimize.statistics import Estimate, Statistics
from plait.plan.jtree import parse_shape
from plait.plan.migration import Migration
from plait.query.query import Query
from plait.tuning import Tuning
from plait_lab.laws.processors import Cluster

FIRST, SECOND = (parse_shape(QUERY, s) for s in ("(s0 (s1 s2))", "((s0 s1) s2)"))
WITHOUT_ROWS = {s.name: s.schema.empty_table() for s in QUERY.streams}


def results(run: LocalRun, seconds: int, often: str | None = None) -> int:
    """Run until it is over: first `k` matches often, then `m`."""
    for batch in batches(seconds, lambda s: often or ("k" if s < seconds // 2 else "m")):
        run.push(batch)
    return run.counts.results


def kinds(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


@pytest.mark.slow
def test_a_flip_is_followed() -> None:
    run = LocalRun(QUERY, FIRST, adapt=QUICK, costs=DEFAULT)
    found = results(run, 30)
    assert found == results(LocalRun(QUERY, FIRST), 30)
    assert run.plan == SECOND
    moved = kinds(run.events, "migrated")
    assert moved and 15 < moved[0].batch <= 18, "two batches with the new rows are enough"
    assert kinds(run.events, "judged")[0].data["paid"]
    assert run.events[0].kind == "started"
    compared = kinds(run.events, "compared")
    assert all(event.data["decision"]["reasons"] for event in compared)


@pytest.mark.slow
def test_a_large_batch_is_not_joined_to_its_end_by_the_wrong_plan() -> None:
    told = batches(24, lambda s: "k" if s < 16 else "m")
    large = [
        {name: pa.concat_tables(b[name] for b in told[at : at + 8]) for name in QUERY.names}
        for at in range(0, 24, 8)
    ]
    small = Tuning(slice_rows=1024)
    run = LocalRun(QUERY, FIRST, adapt=QUICK, costs=DEFAULT, tuning=small)
    plain = LocalRun(QUERY, FIRST)
    for batch in large:
        assert run.push(batch).num_rows == plain.push(batch).num_rows
    first = kinds(run.events, "migrated")[0]
    assert first.batch == 3 and 16e6 < first.time < 22e6, "in the middle of the third batch"
    decided = kinds(run.events, "compared")
    assert any(event.data["standing"]["waiting"] > 1 for event in decided), "seconds that wait"


def test_nothing_happens_where_nothing_changes() -> None:
    run = LocalRun(QUERY, FIRST, adapt=QUICK, costs=DEFAULT)
    results(run, 20, often="k")
    assert not run.migrations and run.plan == FIRST


def swapped(knowledge: Knowledge, query: Query, least: float) -> Statistics:
    """The wrong pair is said to match often; of all other sets nothing is known."""
    joint = {"s0 s1": 2e-5, "s1 s2": 0.02}
    return replace(
        knowledge.statistics(query, least),
        selectivities={},
        joint={names: Estimate(v, "probability") for names, v in joint.items()},
    )


class Work:
    """A clock that counts what the joins of a run do: other load does not change it."""

    def __init__(self) -> None:
        self.run: LocalRun | None = None
        self._seconds = 0.0
        self._before: dict[int, tuple[OperatorCounters, int]] = {}

    def __call__(self) -> float:
        for counters in [] if self.run is None else self.run.engine.counters:
            steps = [step for given in counters.inputs for step in given.steps]
            now = counters.outputs + sum(s.probes + s.visited + s.matches for s in steps)
            _, before = self._before.get(id(counters), (counters, 0))
            self._before[id(counters)] = (counters, now)
            self._seconds += 1e-7 * max(0, now - before)
        return self._seconds


@pytest.mark.slow
def test_the_guard_takes_back_what_lies_have_done() -> None:
    policy, work = replace(QUICK, confidence=0.01), Work()
    setting = Setting(QUERY, policy, Budget(), DEFAULT, swapped)
    run = work.run = LocalRun(QUERY, FIRST, adapt=setting, clock=Clock(time.perf_counter, work))
    found = results(run, 60, often="k")
    assert found == results(LocalRun(QUERY, FIRST), 60, often="k")
    judged = kinds(run.events, "judged")
    assert judged and not any(event.data["paid"] for event in judged)
    moved = kinds(run.events, "migrated")
    assert [event.data["returned"] for event in moved[:2]] == [False, True]
    assert run.plan == FIRST and moved[-1].data["returned"]
    there = [event.time / 1e6 for event in moved if not event.data["returned"]]
    waits = [later - earlier for earlier, later in pairwise(there)]
    assert all(b > 1.5 * a for a, b in pairwise(waits)), "it backs off"


@pytest.mark.slow
def test_memory_is_kept_while_a_plan_fits() -> None:
    free = LocalRun(QUERY, SECOND)
    peak, least = 0, 0
    for batch in batches(16, lambda _: "k"):
        free.push(batch)
        peak = max(peak, free.engine.nbytes)
    slim = LocalRun(QUERY, FIRST)
    for batch in batches(16, lambda _: "k"):
        slim.push(batch)
        least = max(least, slim.engine.nbytes)
    assert peak > 2 * least, "the wrong plan holds far more"
    budget = Budget(memory=least * 1.4)
    assert budget.memory is not None
    run = LocalRun(QUERY, SECOND, adapt=QUICK, budget=budget, costs=DEFAULT)
    held = []
    for batch in batches(16, lambda s: "k" if s >= 6 else "m"):
        run.push(batch)
        held.append(run.engine.nbytes)
    assert max(held) <= 1.05 * budget.memory
    assert run.migrations and run.plan != SECOND


def test_a_lack_of_memory_is_told_by_name() -> None:
    run = LocalRun(QUERY, FIRST, adapt=QUICK, budget=Budget(memory=10_000.0), costs=DEFAULT)
    results(run, 6, often="k")
    told = kinds(run.events, "unqualified")
    assert told and told[0].data["resource"] == "memory"


@dataclass
class Bare:
    """An engine and nothing around it."""

    engine: Engine
    records: list[Migration] = field(default_factory=list)

    def change(self, wanted: Migration) -> Migration:
        assert wanted.strategy != "auto", "a wish says how"
        done = migrate(self.engine, wanted.new, wanted.strategy)
        self.records.append(done.record)
        return done.record

    def waited(self) -> Iterator[pa.RecordBatch]:
        yield from ()


@pytest.mark.slow
def test_a_loop_goes_on_elsewhere() -> None:
    """As on Spark: after every batch it is plain data and nothing else."""
    setting = Setting(QUERY, QUICK, Budget(), DEFAULT)
    bare, state, found = Bare(Engine(QUERY, FIRST)), None, 0
    for second, batch in enumerate(batches(30, lambda s: "k" if s < 15 else "m"), 1):
        loop = Adapting(setting, cpu=time.thread_time, state=state)
        arrivals = {
            s: bare.engine.admit(s, batch[name].to_batches()[0], BEFORE_ALL_TIMES).arrivals
            for s, name in enumerate(QUERY.names)
        }
        newest = max(int(a.times[-1]) for a in arrivals.values())
        results_of_batch = loop.join(bare, second, arrivals, [newest] * 3, newest)
        found += sum(rows.num_rows for rows in results_of_batch)
        state = json.loads(json.dumps(loop.to_dict()))
    assert bare.records and bare.engine.plan == SECOND
    assert found == results(LocalRun(QUERY, FIRST), 30)


@pytest.mark.slow
def test_a_plan_that_somebody_gave_is_kept_until_it_is_released() -> None:
    run = LocalRun(QUERY, FIRST, adapt=QUICK, costs=DEFAULT)
    told = batches(24, lambda _: "m")
    run.migrate(FIRST)
    for batch in told[:12]:
        run.push(batch)
    assert run.plan == FIRST and not run.events
    run.release()
    for batch in told[12:]:
        run.push(batch)
    assert run.plan == SECOND


def test_batches_that_are_not_looked_at_yet_do_not_start_it_again() -> None:
    run = LocalRun(QUERY, FIRST, adapt=replace(QUICK, look=1e6), costs=DEFAULT)
    results(run, 4)
    assert len(kinds(run.events, "started")) == 1


def test_routers_have_no_plan_to_change() -> None:
    from plait.plan.routed import Teddies

    run = LocalRun(QUERY, Teddies(), adapt=True)
    results(run, 3)
    assert not run.events


FIRST_OFTEN = ["k"] * 10 + ["m"] * 10
"""Whose matches are frequent in each second of a flip."""


@pytest.mark.slow
def test_what_waited_in_an_engine_that_is_replaced_comes_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trees of joins let nothing wait, so the migration is made to find something."""
    plain = LocalRun(QUERY, FIRST)
    told = batches(20, lambda s: FIRST_OFTEN[s])
    wanted = sum(plain.push(batch).num_rows for batch in told)
    extra = pa.RecordBatch.from_pylist([{}] * 3, QUERY.schema)

    def with_more(*given: Any, **named: Any) -> MigrationDone:
        done = migrate(*given, **named)
        return done._replace(waited=[*done.waited, extra])

    monkeypatch.setattr(node, "migrate", with_more)
    run = LocalRun(QUERY, FIRST, adapt=QUICK, costs=DEFAULT)
    cluster = Cluster(QUERY, FIRST, 1, adapt=QUICK)
    for host in (run.push, cluster.run):
        found = sum(host(batch).num_rows for batch in told)
        assert found > wanted and (found - wanted) % 3 == 0
    assert run.counts.results == wanted + 3 * len(run.migrations)


@pytest.mark.slow
def test_a_migration_that_is_refused_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> MigrationDone:
        raise MigrationError("there is no room", remedy="wait")

    monkeypatch.setattr(node, "migrate", refuse)
    run = LocalRun(QUERY, FIRST, adapt=QUICK, costs=DEFAULT)
    found = results(run, 20)
    assert found == results(LocalRun(QUERY, FIRST), 20) and run.plan == FIRST
    assert {m.status for m in run.migrations} == {"refused"}
    assert all("no room" in e.data["refused"] for e in kinds(run.events, "migrated"))
    (cluster := Cluster(QUERY, FIRST, 1, adapt=QUICK)).run(WITHOUT_ROWS)
    statuses = []
    for batch in batches(20, lambda s: FIRST_OFTEN[s]):
        cluster.run(batch)
        statuses += [m["status"] for m in cluster.reports[0].migrations]
    assert statuses and set(statuses) == {"refused"}
    assert cluster.reports[0].plan == str(FIRST)


@pytest.mark.slow
def test_the_host_is_told_where_a_decision_stands() -> None:
    passed: list[str] = []
    setting = Setting(QUERY, QUICK, Budget(), DEFAULT)
    cluster = Cluster(QUERY, FIRST, 1, adapt=QUICK)
    setup = replace(cluster.processor.setup, adapt=setting, milestone=passed.append)
    cluster.processor = replace(cluster.processor, setup=setup)
    moves = 0
    for batch in batches(20, lambda s: FIRST_OFTEN[s]):
        cluster.run(batch)
        moves += len(kinds(cluster.reports[0].events, "migrated"))
    assert moves and passed == ["plan-decided", "plan-changed"] * moves


def test_a_loop_begins_its_log_once_even_if_nothing_came_at_first() -> None:
    cluster = Cluster(QUERY, FIRST, 1, adapt=QUICK)
    cluster.run(WITHOUT_ROWS)
    told = list(cluster.reports[0].events)
    for batch in batches(3, lambda _: "k"):
        cluster.run(batch)
        told += cluster.reports[0].events
    assert [event.batch for event in kinds(told, "started")] == [1]
