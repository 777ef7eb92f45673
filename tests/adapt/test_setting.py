from __future__ import annotations

import pickle
from dataclasses import replace

from tests.adapt.conftest import QUERY

from plait.adapt.knowledge import Knowledge
from plait.adapt.policy import PlanPolicy
from plait.adapt.setting import Setting
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait_lab.laws.strategies.policies import Lies

SETTING = Setting(QUERY, PlanPolicy(), Budget(), DEFAULT)


def test_what_the_policy_leaves_open_follows_the_window() -> None:
    assert (SETTING.window, SETTING.half_life, SETTING.trial) == (4.0, 2.0, 4.0)
    said = replace(SETTING, policy=PlanPolicy(half_life=7.0, trial=0.0))
    assert (said.half_life, said.trial) == (7.0, 0.0)


def test_half_of_the_memory_is_crowded() -> None:
    limited = replace(SETTING, budget=Budget(memory=1000.0))
    assert limited.limited and limited.crowded(500) and not limited.crowded(499)
    assert not SETTING.limited and not SETTING.crowded(10**12)


def test_what_is_believed_can_be_handed_in() -> None:
    knowledge = Knowledge.of(3, 2.0).sampled(1, 2, pairs=1e4, matches=1e3, rows=100)
    assert "s0 s1" in SETTING.statistics(knowledge).joint
    liar = replace(SETTING, believe=Lies(1))
    first, second = liar.statistics(knowledge), liar.statistics(knowledge)
    assert first != second and set(first.rates) == set(QUERY.names)


def test_it_travels_to_where_the_tasks_are() -> None:
    for setting in (SETTING, replace(SETTING, believe=Lies(1))):
        again = pickle.loads(pickle.dumps(setting))
        assert again.believe == setting.believe and again.query == setting.query
