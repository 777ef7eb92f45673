"""What a host and the loop tell each other are values that stay as they were said."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from typing import get_args

import pytest
from tests.adapt.conftest import POLICY, QUERY

from plait.adapt.decide import Decision
from plait.adapt.loop import advance
from plait.adapt.observations import (
    ChangePlan,
    Compared,
    Draw,
    IncomingRows,
    Joined,
    Observation,
    PlanChanged,
    Request,
    Sampled,
)
from plait.adapt.setting import Setting
from plait.adapt.state import Loop
from plait.adapt.strategy import Way
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.optimize.model import Cost
from plait.optimize.statistics import Statistics
from plait.plan.jtree import mjoin, parse_shape
from plait.plan.migration import Migration

PLAN, OTHER = mjoin(QUERY), parse_shape(QUERY, "((s0 s1) s2)")
SETTING = Setting(QUERY, POLICY, Budget(), DEFAULT)
STAY = Decision("stay", ("no plan is better by the margin",), Cost(0.1, 1e3, 1e6))
OBSERVED: list[Observation] = [
    IncomingRows(PLAN, (1, 1, 1), 5),
    Joined(PLAN, 5, 0, (1, 1, 1)),
    Sampled(()),
    Compared(),
    PlanChanged(Migration("moving-state", PLAN, OTHER, refused="no room")),
]
REQUESTS: list[Request] = [
    Draw((0, 1, 2), 100, 7, 0.5, 10),
    ChangePlan(STAY, OTHER, Way("moving-state", "it is short"), PLAN, Statistics()),
]


def test_every_kind_is_tried_here() -> None:
    assert {type(observed) for observed in OBSERVED} == set(get_args(Observation))
    assert {type(asked) for asked in REQUESTS} == set(get_args(Request))


@pytest.mark.parametrize("observed", OBSERVED, ids=lambda observed: type(observed).__name__)
def test_facts_need_no_question_and_answers_do(observed: Observation) -> None:
    if isinstance(observed, IncomingRows | Joined):
        step = advance(SETTING, Loop.of(SETTING), observed)
        assert not isinstance(step.request, ChangePlan), (
            "nothing is known that speaks for another plan"
        )
    else:
        with pytest.raises(AssertionError, match=r"requested|compared"):
            advance(SETTING, Loop.of(SETTING), observed)


@pytest.mark.parametrize("said", [*OBSERVED, *REQUESTS], ids=lambda said: type(said).__name__)
def test_what_was_said_travels_and_does_not_change(said: Observation | Request) -> None:
    assert pickle.loads(pickle.dumps(said)) == said
    name = next(iter(type(said).__slots__))
    with pytest.raises(FrozenInstanceError):
        setattr(said, name, None)


def test_a_move_has_the_reasons_of_its_decision() -> None:
    _, move = REQUESTS
    assert isinstance(move, ChangePlan) and move.reasons == STAY.reasons != (move.way.reason,)
