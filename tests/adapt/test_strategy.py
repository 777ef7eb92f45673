"""Both predictions, the latency and the memory decide on the strategy."""

from __future__ import annotations

import pytest

from plait.adapt.policy import PlanPolicy
from plait.adapt.strategy import way_to
from plait.optimize.costs import DEFAULT
from plait.optimize.migration_cost import parallel_bytes
from plait.optimize.model import Model
from plait.optimize.statistics import Statistics
from plait.plan.jtree import parse_shape
from plait.testing.examples import chain

QUERY = chain(3)
OLD, NEW = (parse_shape(QUERY, s) for s in ("((a b) c)", "(a (b c))"))


def model(ab: float, bc: float, rate: float = 1000.0) -> Model:
    known = Statistics.of(dict.fromkeys(QUERY.names, rate), joint={"a b": ab, "b c": bc}, batch=1.0)
    return Model(QUERY, known, DEFAULT)


RARE, MUCH = model(1e-4, 1e-4), model(1e-4, 0.05)
"""What the new plan has to compute: little, or far more than the old plan ever did."""


def test_the_cheaper_strategy_is_taken() -> None:
    little, much = (way_to(m, OLD, NEW, PlanPolicy()) for m in (RARE, MUCH))
    assert little.strategy == "moving-state" and much.strategy == "parallel-track"
    for way in (little, much):
        assert way.reason.startswith("recomputing takes ") and "running both plans" in way.reason
    moving = way_to(MUCH, OLD, NEW, PlanPolicy(), room=0.0)
    assert much.work < moving.work and much.pause < moving.pause


def test_what_both_plans_have_is_not_recomputed() -> None:
    same = parse_shape(QUERY, "(c (b a))")
    way = way_to(MUCH, OLD, same, PlanPolicy(latency=0.0))
    assert way.strategy == "moving-state" and "every state" in way.reason
    assert way.pause < 1e-3


def test_a_pause_beyond_the_latency_is_avoided() -> None:
    pause = way_to(RARE, OLD, NEW, PlanPolicy()).pause
    assert way_to(RARE, OLD, NEW, PlanPolicy(latency=2 * pause)).strategy == "moving-state"
    way = way_to(RARE, OLD, NEW, PlanPolicy(latency=pause / 2))
    assert way.strategy == "parallel-track" and "would pause for" in way.reason
    assert way_to(RARE, OLD, NEW, PlanPolicy(latency=2 * pause), price=4.0).pause == pytest.approx(
        0.0
    ), "what the machine takes counts, not what the model foresees"


def test_the_states_of_both_plans_must_fit() -> None:
    needed = parallel_bytes(MUCH, OLD, NEW)
    assert way_to(MUCH, OLD, NEW, PlanPolicy(), room=1.01 * needed).strategy == "parallel-track"
    way = way_to(MUCH, OLD, NEW, PlanPolicy(latency=0.0), room=0.99 * needed)
    assert way.strategy == "moving-state" and "are free" in way.reason


def test_overhead_counts_as_pause_and_as_work() -> None:
    for m, latency in ((RARE, None), (RARE, 0.0)):
        plain = way_to(m, OLD, NEW, PlanPolicy(latency=latency))
        more = way_to(m, OLD, NEW, PlanPolicy(latency=latency), overhead=0.5)
        assert more.strategy == plain.strategy
        assert (more.pause, more.work) == pytest.approx((plain.pause + 0.5, plain.work + 0.5))


def test_what_was_measured_of_the_old_plan_counts_more_than_what_was_foreseen() -> None:
    assert way_to(MUCH, OLD, NEW, PlanPolicy()).strategy == "parallel-track"
    slow = way_to(MUCH, OLD, NEW, PlanPolicy(), running=1e6)
    assert slow.strategy == "moving-state", "nobody wants to run that for another window"


def test_asking_is_free_of_consequences() -> None:
    assert way_to(MUCH, OLD, NEW, PlanPolicy()) == way_to(MUCH, OLD, NEW, PlanPolicy())
    assert way_to(MUCH, OLD, NEW, PlanPolicy()).to_dict()["strategy"] == "parallel-track"
