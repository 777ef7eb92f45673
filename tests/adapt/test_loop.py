"""The loop step by step, from values alone: nothing runs, and no time passes but what is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.adapt.conftest import POLICY, QUERY, RATE

from plait.adapt.loop import LoopStep, advance, beginning
from plait.adapt.observations import (
    ChangePlan,
    Compared,
    Draw,
    IncomingRows,
    Joined,
    Observation,
    PlanChanged,
    Sampled,
)
from plait.adapt.policy import PlanPolicy
from plait.adapt.setting import Setting
from plait.adapt.state import Loop
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.plan.jtree import Node, parse_shape
from plait.plan.migration import Migration
from plait.plan.observed import Evidence, LookupCounts

OFTEN, SELDOM = 1 / 50, 1 / 50_000
WRONG, RIGHT = (parse_shape(QUERY, s) for s in ("((s0 s1) s2)", "(s0 (s1 s2))"))
"""The pair s0, s1 matches often, s1, s2 seldom."""
SETTING = Setting(QUERY, POLICY, Budget(), DEFAULT)
HELD = 4 * RATE


def joined(second: int, plan: Node, seconds: float = 0.05, **more: Any) -> Joined:
    """A second's batch, looked up as a plan with full windows does."""
    first, rest = (0b011, 0b100) if plan == WRONG else (0b110, 0b001)
    chance = OFTEN if plan == WRONG else SELDOM
    pair = [1 << s for s in range(3) if first >> s & 1]
    pairs = HELD * RATE * chance
    looked = [
        *(LookupCounts(g, first ^ g, g, RATE, round(pairs), HELD) for g in pair),
        LookupCounts(
            rest, first, rest, RATE, round(RATE * HELD**2 * OFTEN * SELDOM / 2), pairs * 4
        ),
    ]
    observed = Joined(plan, second * 1_000_000, 0, [RATE] * 3, looked, seconds, 10**6)
    return replace(observed, **more)


def evidence(draw: Draw) -> Sampled:
    """What a sample of these streams shows."""
    steps: list[tuple[Evidence, int]] = []
    for n, stream in enumerate(draw.order[1:], 1):
        gathered = frozenset(draw.order[:n])
        chance = OFTEN if {0, 1} <= gathered | {stream} and 2 not in gathered | {stream} else SELDOM
        steps.append((Evidence(gathered, frozenset({stream}), 5e5, 5e5 * chance), HELD))
    return Sampled(steps, 0.001)


def until_still(
    setting: Setting, loop: Loop, observed: Observation
) -> tuple[Loop, ChangePlan | None, list[LoopStep]]:
    """Tell the loop, draw what it asks for, and tell what comparing takes."""
    steps: list[LoopStep] = []
    while True:
        step = advance(setting, loop, observed)
        loop, steps = step.loop, [*steps, step]
        if step.compared:
            observed = Compared(0.002)
        elif isinstance(step.request, Draw):
            observed = evidence(step.request)
        else:
            return loop, step.request, steps


def run(
    setting: Setting, plan: Node, seconds: Sequence[int], loop: Loop | None = None
) -> tuple[Loop, ChangePlan | None]:
    loop, request = loop or Loop.of(setting), None
    for second in seconds:
        loop, request, _ = until_still(setting, loop, joined(second, plan))
        if request is not None:
            break
    return loop, request


def test_it_asks_for_the_right_plan_and_a_strategy_with_reasons() -> None:
    loop, request = run(SETTING, WRONG, range(1, 20))
    assert (
        request is not None
        and request.plan == RIGHT
        and request.old == WRONG
        and not request.returned
    )
    assert request.reasons == request.decision.reasons and "less CPU" in request.reasons[0]
    assert request.way.strategy == "moving-state" and request.way.reason.startswith(
        "recomputing takes"
    )
    assert loop.asked == request and loop.look is None


def test_it_changes_nothing_that_it_is_given() -> None:
    loop, _ = run(SETTING, WRONG, range(1, 4))
    before = (loop, loop.to_dict())
    first = until_still(SETTING, loop, joined(4, WRONG))
    again = until_still(SETTING, loop, joined(4, WRONG))
    assert before == (loop, loop.to_dict())
    assert first == again, "and does the same again"


def test_the_right_plan_stays() -> None:
    loop, request = run(SETTING, RIGHT, range(1, 30))
    assert request is None and loop.pursuit.confirmed == 0 and loop.trial is None


def test_a_sample_is_asked_for_where_the_plan_never_looks() -> None:
    step = advance(SETTING, Loop.of(SETTING), joined(1, WRONG))
    assert isinstance(step.request, Draw) and set(step.request.order) == {1, 2}
    assert step.request.rows >= POLICY.sample_rows and 0 < step.request.newest < 1
    silent = replace(SETTING, policy=replace(POLICY, sampling=0.0))
    assert advance(silent, Loop.of(silent), joined(1, WRONG)).request is None


def test_time_is_only_what_it_is_told() -> None:
    loop, _, steps = until_still(SETTING, Loop.of(SETTING), joined(1, WRONG, seconds=0.5))
    draws = sum(isinstance(step.request, Draw) for step in steps)
    assert loop.spent.joining == 0.5 and loop.spent.sampling == pytest.approx(0.001 * draws)
    loop, _ = run(SETTING, WRONG, range(2, 5), loop)
    loop, _, steps = until_still(SETTING, loop, joined(5, WRONG))
    assert loop.spent.comparing > 0, "plans were compared by now"
    busy = replace(loop, spent=replace(loop.spent, comparing=1e6))
    frugal = replace(SETTING, policy=replace(POLICY, pursuit=0.0))
    _, _, steps = until_still(frugal, busy, joined(6, WRONG))
    assert not any(step.compared for step in steps), "it has had its share"


def moved(loop: Loop, **more: Any) -> Loop:
    """The loop after it got what it asked for."""
    assert loop.asked is not None
    record = Migration(loop.asked.way.strategy, loop.asked.old, loop.asked.plan, start=3, end=3)
    return advance(SETTING, loop, PlanChanged(replace(record, **more))).loop


def test_a_plan_that_did_not_pay_is_left_again_and_banned() -> None:
    loop, request = run(SETTING, WRONG, range(1, 20))
    assert request is not None
    at = int(loop.time)
    loop = moved(loop, pause=0.1)
    assert loop.trial is not None and loop.trial.old == WRONG and loop.course.migrated == at
    assert loop.pursuit.confirmed == 0 and loop.price.overhead > 0
    back, kinds = None, list[str]()
    for second in range(at + 1, at + 10):
        observed = joined(second, RIGHT, seconds=50.0)
        loop, back, steps = until_still(SETTING, loop, observed)
        kinds += [event.kind for step in steps for event in step.events]
        if back is not None:
            break
    assert back is not None and back.returned and back.plan == WRONG
    assert back.reasons[-1] == "go back to the old plan" and back.way.strategy == "moving-state"
    assert "judged" in kinds and loop.bans.until["(s0 (s1 s2))"] > loop.time
    loop = moved(loop)
    assert loop.trial is None, "what is taken back is not tried again"


def test_a_plan_that_paid_stays() -> None:
    loop, request = run(SETTING, WRONG, range(1, 20))
    loop, at = moved(loop), int(loop.time)
    loop, request = run(SETTING, RIGHT, range(at + 1, at + 10), loop)
    assert request is None and loop.trial is None and not loop.bans.until


def test_a_refusal_changes_nothing_but_the_wish() -> None:
    loop, request = run(SETTING, WRONG, range(1, 20))
    assert request is not None
    refused = Migration("moving-state", WRONG, RIGHT, start=3, end=3, refused="no room")
    step = advance(SETTING, loop, PlanChanged(refused))
    assert step.loop == replace(loop, asked=None)
    assert [(e.kind, e.data["refused"]) for e in step.events] == [("migrated", "no room")]


def test_while_two_plans_run_nothing_is_compared_and_no_time_counts() -> None:
    loop, _ = run(SETTING, WRONG, range(1, 20))
    loop = moved(loop, strategy="parallel-track", end=None)
    assert loop.course.following == "(s0 (s1 s2))" and loop.trial is not None
    at = int(loop.time)
    for second in (at + 1, at + 2):
        step = advance(SETTING, loop, joined(second, RIGHT, seconds=9.0, migrating=True))
        loop = step.loop
        assert step.request is None and loop.trial is not None and loop.trial.batches == 0
        assert loop.knowledge.timed == 0.0
    record = Migration("parallel-track", WRONG, RIGHT, start=3, end=5)
    loop, _, steps = until_still(SETTING, loop, joined(at + 3, RIGHT, ended=record))
    assert [e.kind for e in steps[0].events][:1] == ["ended"] and not loop.course.following
    assert loop.trial is not None and loop.trial.batches == 0, "half of it was with both"
    loop, _, _ = until_still(SETTING, loop, joined(at + 4, RIGHT))
    assert loop.trial is not None and loop.trial.batches == 1


def test_rows_that_come_too_fast_for_the_memory_are_foreseen() -> None:
    limited = replace(SETTING, budget=Budget(memory=1e8))
    slow = replace(limited, policy=PlanPolicy(look=0.0, effort=0.0, sampling=0.0))
    loop = Loop.of(slow)
    for second in (1, 2, 3):
        loop = advance(slow, loop, joined(second, WRONG)).loop
    assert advance(slow, loop, IncomingRows(WRONG, [RATE] * 3, 4_000_000)) == LoopStep(loop)
    step = advance(slow, loop, IncomingRows(WRONG, [30 * RATE] * 3, 4_000_000))
    assert isinstance(step.request, ChangePlan) and step.request.plan != WRONG
    assert step.request.decision.resource == "memory" and step.loop.asked == step.request
    assert [event.kind for event in step.events][:1] == ["compared"]
    assert advance(SETTING, loop, IncomingRows(WRONG, [30 * RATE] * 3, 4_000_000)).request is None
    assert advance(slow, Loop.of(slow), IncomingRows(WRONG, [RATE] * 3, 4_000_000)).request is None


def test_a_lack_of_memory_is_told_once() -> None:
    tiny = replace(SETTING, budget=Budget(memory=1000.0))
    loop, observed = Loop.of(tiny), list[str]()
    for second in range(1, 9):
        loop, request, steps = until_still(tiny, loop, joined(second, RIGHT))
        observed += [event.kind for step in steps for event in step.events]
        if request is not None:
            loop = replace(loop, asked=None)
    assert observed.count("unqualified") == 1 and loop.comparison.short == "memory"


def test_the_log_begins_with_all_that_a_replay_needs() -> None:
    event = beginning(SETTING, WRONG)
    assert event.kind == "started"
    assert event.data.keys() == {"query", "plan", "policy", "budget", "costs"}
