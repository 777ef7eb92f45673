"""The loop at work in a run: flips, lies, memory, and going on elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from tests.adapt.conftest import QUERY, batches

from plait.adapt.adapter import Adapter, Piece
from plait.adapt.events import Event
from plait.adapt.guard import Trial
from plait.adapt.knowledge import Knowledge
from plait.adapt.loop import Setting
from plait.adapt.policy import Policy
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.optimize.statistics import PROBABILITY, Estimate, Statistics
from plait.plan.jtree import parse_shape
from plait.query.query import Query
from plait.runtime.local import LocalRun
from plait.tuning import Tuning

FIRST, SECOND = (parse_shape(QUERY, s) for s in ("(s0 (s1 s2))", "((s0 s1) s2)"))
QUICK = Policy(sampling=0.5, effort=1.0, look=0.0)
"""Batches here take milliseconds, so a share of their time is not enough to learn anything."""


def results(run: LocalRun, seconds: int, often: str | None = None) -> int:
    """Run until it is over: first `k` matches often, then `m`."""
    for batch in batches(seconds, lambda s: often or ("k" if s < seconds // 2 else "m")):
        run.push(batch)
    return run.counts.results


def kinds(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


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


def test_the_guard_takes_back_what_lies_have_done(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = Knowledge.statistics

    def lie(self: Knowledge, query: Query, least: float = 0.0) -> Statistics:
        """The wrong pair is said to match often; of all other sets nothing is known."""
        known = truth(self, query, least)
        swapped = {"s0 s1": 2e-5, "s1 s2": 0.02}
        return replace(
            known,
            selectivities={},
            joint={names: Estimate(v, "probability") for names, v in swapped.items()},
        )

    monkeypatch.setattr(Knowledge, "statistics", lie)
    run = LocalRun(QUERY, FIRST, adapt=replace(QUICK, confidence=0.01), costs=DEFAULT)
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


def test_the_guard_remembers_what_only_the_old_plan_saw() -> None:
    trial = Trial(FIRST, SECOND, 0.0, 0.5, 1.0, joint={"s0 s1": 0.02, "s1 s2": 0.03})
    now = Statistics(
        joint={
            "s0 s1": Estimate(0.5, PROBABILITY, confidence=0.9),
            "s1 s2": Estimate(0.6, PROBABILITY, confidence=0.3),
        }
    )
    filled = trial.filled_up(now, confidence=0.8)
    assert {names: e.value for names, e in filled.joint.items()} == {"s0 s1": 0.5, "s1 s2": 0.03}
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict())), QUERY) == trial


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


def test_a_loop_goes_on_elsewhere() -> None:
    """As on Spark: after every batch it is plain data and nothing else."""
    setting = Setting(QUERY, QUICK, Budget(), DEFAULT)
    plain = LocalRun(QUERY, FIRST)
    adapter, state = Adapter(setting), None
    moved = []
    for second, batch in enumerate(batches(30, lambda s: "k" if s < 15 else "m"), 1):
        adapter = Adapter(setting, state=state)
        adapter.begin(plain.engine)
        for _ in adapter.timed(plain.stream(batch)):
            pass
        decision = adapter.end(plain.engine, Piece({}, [], second * 1_000_000))
        if decision is not None and decision.plan is not None:
            choose = adapter.chooser(plain.engine)
            adapter.carried_out(plain.migrate(decision.plan, "auto", choose=choose))
            moved.append(second)
        state = json.loads(json.dumps(adapter.to_dict()))
    assert moved and plain.plan == SECOND


def test_a_loop_goes_on_from_what_an_older_version_wrote() -> None:
    run = LocalRun(QUERY, FIRST, adapt=QUICK, costs=DEFAULT)
    results(run, 8, often="k")
    setting = Setting(QUERY, QUICK, Budget(), DEFAULT)
    state = json.loads(run.node.header("t", 0).to_json())["adapt"]
    for name in ("began", "priced", "tracked", "compared", "usual", "excess", "step"):
        del state[name]
    for name in ("window", "waiting"):
        del state["knowledge"][name]
    state["knowledge"]["agreements"] = [a[:-1] for a in state["knowledge"]["agreements"]]
    trial = Trial(FIRST, SECOND, 0.0, 0.5, 1.0).to_dict()
    del trial["joint"]
    loop = Adapter(setting, state=state | {"trial": trial}).loop
    assert loop.batches == 8 and loop.knowledge.window == 4.0
    assert loop.trial == Trial(FIRST, SECOND, 0.0, 0.5, 1.0)


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
