from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.adapt.conftest import QUERY

from plait.adapt.decide import Decision, Situation, decide
from plait.adapt.policy import PlanPolicy
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.optimize.statistics import Estimate, Statistics
from plait.plan.jtree import parse_shape

KNOWN = Statistics.of(
    {"s0": 2000, "s1": 2000, "s2": 2000},
    {"s0.k = s1.k": 0.02, "s1.m = s2.m": 1e-5},
    joint={"s0 s1": 0.02, "s1 s2": 1e-5},
    batch=1.0,
)
WORST, BEST = (parse_shape(QUERY, s) for s in ("((s0 s1) s2)", "(s0 (s1 s2))"))
STANDING = Situation(WORST, 100.0, regret=10.0, confirmed=5)


def asked(
    policy: PlanPolicy | None = None, budget: Budget | None = None, **changes: Any
) -> Decision:
    known = changes.pop("known", KNOWN)
    standing = replace(STANDING, **changes)
    return decide(QUERY, known, standing, policy or PlanPolicy(), budget=budget, costs=DEFAULT)


def test_it_moves_to_the_better_plan_and_says_why() -> None:
    decision = asked()
    assert decision.kind == "move" and decision.plan == BEST and decision.better
    assert decision.cost is not None and decision.gain == decision.current.cpu - decision.cost.cpu
    assert "(s0 (s1 s2)) instead of ((s0 s1) s2) is predicted to take" in decision.reasons[0]
    assert decision.reasons[1].startswith("staying has cost 10 s, the migration takes")


def test_the_best_plan_stays() -> None:
    decision = asked(plan=BEST)
    assert decision.kind == "stay" and not decision.better
    assert decision.reasons == ("(s0 (s1 s2)) is the best plan",)


@pytest.mark.parametrize(
    ("policy", "changes", "kind", "why"),
    [
        (PlanPolicy(margin=0.999), {}, "stay", "less than the margin of 100%"),
        (PlanPolicy(least=1e6), {}, "stay", "saves less than 1e+06 cores"),
        (PlanPolicy(), {"banned": {"(s0 (s1 s2))": 130.0}}, "stay", "not tried for another 30 s"),
        (PlanPolicy(), {"banned": {"(s0 (s1 s2))": 90.0}}, "move", "staying has cost"),
        (PlanPolicy(), {"migrated": 99.0}, "stay", "the last migration was 1.0 s ago"),
        (PlanPolicy(rest=0.5), {"migrated": 99.0}, "move", "staying has cost"),
        (PlanPolicy(confirm=7), {}, "stay", "7 comparisons in a row must"),
        (PlanPolicy(), {"regret": 0.0}, "stay", "staying has cost 0 s so far"),
        (PlanPolicy(), {"regret": 0.0, "waiting": 9.0}, "move", "s for the rows that wait"),
        (PlanPolicy(payback=0.0), {"regret": 0.0}, "move", "staying has cost 0 s"),
        (PlanPolicy(), {"overhead": 20.0}, "stay", "the migration would take 20 s"),
    ],
)
def test_reasons_to_stay(policy: PlanPolicy, changes: dict[str, Any], kind: str, why: str) -> None:
    decision = asked(policy, **changes)
    assert decision.kind == kind and why in decision.reasons[-1]


def test_what_is_not_sure_is_learnt_first() -> None:
    unsure = Estimate(1e-5, "probability", 0.0, 0.3)
    decision = asked(known=replace(KNOWN, joint={**KNOWN.joint, "s1 s2": unsure}))
    assert decision.kind == "learn" and decision.learn == (0b110,) and decision.better
    assert decision.reasons[-1] == "more must be known about s1 ⋈ s2 first"
    unknown = {"s0 s1": KNOWN.joint["s0 s1"]}
    assert asked(known=replace(KNOWN, joint=unknown)).kind == "learn"


def test_what_is_not_sure_but_cannot_matter_need_not_be_learnt() -> None:
    known = {"s0 s1": KNOWN.joint["s0 s1"]}
    few, many = (Estimate(v, "probability") for v in (5e-5, 0.02))
    rare = asked(known=replace(KNOWN, joint=known, at_most={"s1 s2": few}))
    assert rare.kind == "move" and "not enough to matter" in rare.reasons[1]
    assert asked(known=replace(KNOWN, joint=known, at_most={"s1 s2": many})).kind == "learn"


def test_a_plan_that_no_longer_fits_is_left_at_once() -> None:
    hasty = {"regret": 0.0, "confirmed": 0, "migrated": 100.0}
    needs = asked(plan=WORST).current.bytes
    decision = asked(PlanPolicy(margin=1.0), Budget(memory=needs / 2), **hasty)
    assert decision.kind == "move" and decision.resource == "memory" and decision.fits
    assert decision.cost is not None and decision.cost.bytes <= needs / 2 * 0.9
    assert "more than the budget of" in decision.reasons[0]


def test_measured_memory_corrects_what_was_predicted() -> None:
    needs = asked(plan=BEST).current.bytes
    enough = Budget(memory=needs * 2)
    assert asked(plan=BEST, budget=enough).resource is None
    assert asked(plan=BEST, budget=enough, nbytes=needs * 3).resource == "memory"


def test_where_no_plan_fits_the_resource_is_named() -> None:
    decision = asked(budget=Budget(memory=1000.0))
    assert decision.resource == "memory" and not decision.fits
    assert "no plan fits; the nearest is" in decision.reasons[1]
    assert decision.kind == "move", "the nearest plan is nearer by far"
    nearest = decision.plan
    assert nearest is not None
    again = asked(plan=nearest, budget=Budget(memory=1000.0))
    assert again.kind == "unqualified" and again.plan is None
    cpu = asked(plan=BEST, budget=Budget(cpu=1e-6))
    assert cpu.kind == "unqualified" and cpu.resource == "cpu"


def test_the_price_counts_against_the_cpu_budget() -> None:
    cpu = asked(plan=BEST).current.cpu
    assert asked(plan=BEST, budget=Budget(cpu=cpu * 1.5)).resource is None
    assert asked(plan=BEST, budget=Budget(cpu=cpu * 1.5), price=2.0).resource == "cpu"


def test_a_decision_says_how_to_get_there() -> None:
    decision = asked()
    assert decision.way is not None and decision.way.strategy == "moving-state"
    told = decision.to_dict()
    assert told["way"]["reason"] == decision.way.reason and told["pause"] == decision.way.pause
    assert asked(plan=BEST).way is None and asked(plan=BEST).to_dict()["pause"] == 0.0
    hurried = asked(PlanPolicy(latency=decision.way.pause / 2))
    assert hurried.way is not None and hurried.way.strategy == "parallel-track"


@pytest.mark.parametrize(
    ("policy", "strategy"),
    [(PlanPolicy(), "moving-state"), (PlanPolicy(latency=0.0), "parallel-track")],
)
def test_what_the_chosen_strategy_costs_must_have_been_lost(
    policy: PlanPolicy, strategy: str
) -> None:
    way = asked(policy).way
    assert way is not None and way.strategy == strategy
    for regret, kind in ((0.99 * way.work, "stay"), (1.01 * way.work, "move")):
        assert asked(policy, regret=regret).kind == kind


def test_the_strategies_cost_differently() -> None:
    moving, parallel = (asked(PlanPolicy(latency=latency)).way for latency in (None, 0.0))
    assert moving is not None and parallel is not None
    assert moving.work < parallel.work and moving.pause > parallel.pause


def test_a_plan_that_must_go_for_lack_of_memory_moves_its_state() -> None:
    needs = asked(plan=WORST).current.bytes
    decision = asked(PlanPolicy(latency=0.0), Budget(memory=needs / 2), nbytes=needs)
    assert decision.kind == "move" and decision.resource == "memory"
    assert decision.way is not None and decision.way.strategy == "moving-state"
    assert "0 B are free" in decision.way.reason


def test_neither_the_order_of_estimates_nor_an_earlier_question_matters() -> None:
    known = replace(
        KNOWN,
        rates=dict(sorted(KNOWN.rates.items(), reverse=True)),
        joint=dict(sorted(KNOWN.joint.items(), reverse=True)),
    )
    asked(plan=BEST, budget=Budget(memory=1000.0))
    assert asked(known=known) == asked()
