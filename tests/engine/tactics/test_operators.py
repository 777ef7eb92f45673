"""Joins at work: what a valve lets pass, and the rows that a join can find."""

from __future__ import annotations

import numpy as np

from plait.engine.migrate.strategy import migrate
from plait.engine.tactics.operators import Operator
from plait.engine.tactics.parallel_track import ParallelTrack
from plait.local.host import LocalRun
from plait.plan.jtree import parse_shape
from plait.testing.examples import clique
from plait_lab.laws.strategies.lagging import lagging_history

HISTORY = lagging_history(clique(4), batches=8, rows=4, seed=5)
PLANS = [parse_shape(HISTORY.query, s) for s in ("(((a b) c) d)", "((a b) (c d))")]


def on_track() -> tuple[LocalRun, ParallelTrack]:
    """A run that shares the state of a and b between an old box and a new one."""
    run = LocalRun(HISTORY.query, PLANS[0])
    for batch in HISTORY.tables()[:4]:
        run.push(batch)
    migrate(run.engine, PLANS[1], "parallel-track")
    assert isinstance(run.engine.tactic, ParallelTrack)
    return run, run.engine.tactic


def joining(operators: list[Operator], shape: str) -> Operator:
    (found,) = (operator for operator in operators if str(operator.join) == shape)
    return found


def test_a_valve_lets_pass_what_has_an_old_part() -> None:
    run, track = on_track()
    (replaced,) = track.replaced
    run.push(HISTORY.tables()[4])
    bases = run.engine.bases
    assert track.mark.old[0] and len(bases[0]) > track.mark.old[0]
    first = [int(base.window.ring.header[1]) for base in bases]
    capacity = [base.window.ring.capacity for base in bases]
    ages = [[0, track.mark.old[0]], [track.mark.old[1]] * 2]
    tuples = {
        s: np.array([(first[s] + age) % capacity[s] for age in ages[s]], np.int32) for s in (0, 1)
    }
    before = replaced.valve.passed
    passed = replaced.valve.old(tuples)
    assert [len(column) for column in passed.values()] == [1, 1]
    assert passed[0][0] == tuples[0][0], "the row of a is old"
    assert replaced.valve.passed == before + 1


def test_a_new_box_finds_only_new_rows_of_what_it_shares() -> None:
    run, track = on_track()
    (replaced,) = track.replaced
    old = joining(list(replaced.old.values()), "((a b) c)")
    new = joining(list(replaced.joins.values()), "((a b) (c d))")
    assert old.inputs[0] is new.inputs[0], "they share the feed of a and b"
    assert new.rows(0) == 0 and old.rows(0) == len(old.states[0]) > 0
    stored = len(old.states[0])
    seen = []
    for batch in HISTORY.tables()[4:]:
        run.push(batch)
        if not run.engine.migrating:
            break
        seen.append(new.rows(0))
        assert old.rows(0) == len(old.states[0])
    assert 0 < seen[0] < stored + seen[0]
    assert new.rows(0) == len(new.states[0]), "the old box is gone"
    assert new.mark is None and new.inputs[0].readers == [(new, 0)]
