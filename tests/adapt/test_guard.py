from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.adapt.conftest import QUERY

from plait.adapt.guard import Bans, Trial, judge
from plait.optimize.statistics import PROBABILITY, Estimate, Statistics
from plait.plan.jtree import parse_shape

FIRST, SECOND = (parse_shape(QUERY, s) for s in ("(s0 (s1 s2))", "((s0 s1) s2)"))
TRIAL = Trial(FIRST, SECOND, 0.0, 0.5, 2.0)


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


def test_a_trial_adds_up() -> None:
    trial = TRIAL.after(3.0, 1.0).after(4.0, 1.5)
    assert (trial.seconds, trial.span, trial.batches) == (7.0, 2.5, 2)
    assert replace(trial, seconds=0.0, span=0.0, batches=0) == TRIAL


@pytest.mark.parametrize(("seconds", "paid"), [(22.9, True), (23.1, False), (1.0, True)])
def test_the_new_plan_may_be_dearer_by_the_tolerance(seconds: float, paid: bool) -> None:
    """The model says 1 second per second, the old plan took 2 for each of them."""
    verdict = judge(TRIAL.after(seconds, 10.0), 1.0, 0.15)
    assert verdict.paid == paid and verdict.measured == pytest.approx(seconds / 20)
    assert verdict.reason.endswith("it paid" if paid else "it did not pay")


def test_without_anything_measured_nothing_is_held_against_it() -> None:
    assert judge(TRIAL, 1.0, 0.15).paid and judge(TRIAL.after(9.0, 1.0), 0.0, 0.15).paid


def test_each_ban_takes_twice_as_long_as_the_last_one_of_its_plan() -> None:
    bans = Bans().after("a", 10.0, 3.0).after("b", 11.0, 3.0).after("a", 20.0, 3.0)
    assert bans.until == {"a": 26.0, "b": 14.0} and bans.failures == {"a": 2, "b": 1}
