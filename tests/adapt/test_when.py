from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.adapt.conftest import POLICY, QUERY

from plait.adapt.knowledge import BatchObservations, Knowledge, geometry
from plait.adapt.pursuit import Pursuit
from plait.adapt.setting import Setting
from plait.adapt.state import Comparison, Loop, LoopProgress, Price, TimeSpent
from plait.adapt.when import due, estimates, expected_rates, sample_order, wanted_sample
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.testing.examples import chain

SETTING = Setting(QUERY, POLICY, Budget(), DEFAULT)


def loop(seconds: int = 20, **more: Any) -> Loop:
    """One that has seen a hundred rows a second of each stream, and compared plans since."""
    knowledge = Knowledge.of(3, 2.0, 4.0)
    for second in range(1, seconds + 1):
        seen = BatchObservations(second * 1_000_000, 1.0, [100] * 3, nbytes=1000)
        knowledge = knowledge.learn(seen, geometry(QUERY))
    known = Loop(knowledge, LoopProgress(seconds, began=0.0), price=Price(measured=True))
    known = replace(known, comparison=Comparison(seconds, estimates(SETTING, known)))
    return replace(known, **more)


def test_plans_are_not_compared_where_nothing_changed() -> None:
    assert not due(SETTING, loop())


@pytest.mark.parametrize(
    "changed",
    [
        {"comparison": Comparison()},
        {"price": Price()},
        {"comparison": Comparison(estimates={"rate 0": 100.0, "rate 1": 100.0})},
        {"comparison": Comparison(estimates=dict.fromkeys(("rate 0", "rate 1", "rate 2"), 70.0))},
        {"pursuit": Pursuit(confirmed=1)},
        {"pursuit": Pursuit(confirmed=1, learn=(3,), learned=True)},
    ],
    ids=["never compared", "price unknown", "new estimate", "drift", "to confirm", "learned"],
)
def test_plans_are_compared_where_something_changed(changed: dict[str, Any]) -> None:
    assert due(SETTING, loop(**changed))


def test_a_comparison_waits_for_what_is_to_be_learnt_and_for_a_few_batches() -> None:
    assert not due(SETTING, loop(pursuit=Pursuit(confirmed=1, learn=(3,))))
    assert not due(SETTING, loop(seconds=2, comparison=Comparison()))
    assert not due(SETTING, Loop.of(SETTING))


def test_too_much_memory_is_a_reason_unless_no_plan_has_less() -> None:
    limited = replace(SETTING, budget=Budget(memory=999.0))
    known = loop()
    assert due(limited, known)
    short = replace(known.comparison, short="memory")
    assert not due(limited, replace(known, comparison=short))


def test_comparing_has_its_share_of_the_time() -> None:
    frugal = replace(SETTING, policy=replace(POLICY, effort=0.01))
    new = Comparison()
    for comparing, expected in ((0.11, True), (0.13, False)):
        spent = TimeSpent(joining=10.0, comparing=comparing)
        assert due(frugal, loop(comparison=new, spent=spent)) is expected
    over = TimeSpent(joining=10.0, comparing=0.13, last=0.1)
    assert due(frugal, loop(comparison=replace(new, excess=0.3), spent=over)), "it may be a flip"
    pursued = Pursuit(confirmed=1, gain=0.1, regret=1.0, spent=0.4)
    assert due(frugal, loop(pursuit=pursued, spent=over)), "staying costs more than looking"
    assert not due(frugal, loop(pursuit=replace(pursued, spent=0.6), spent=over))


def test_pairs_that_nothing_is_known_of_are_sampled() -> None:
    draw = wanted_sample(SETTING, loop())
    assert draw is not None and draw.order == (0, 1) and draw.rows == POLICY.sample_rows
    known = loop()
    sure = known.knowledge.sampled(1, 2, pairs=1e6, matches=1e5, rows=400)
    second = wanted_sample(SETTING, replace(known, knowledge=sure))
    assert second is not None and second.order == (1, 2)
    both = sure.sampled(2, 4, pairs=1e6, matches=1e5, rows=400)
    assert wanted_sample(SETTING, replace(known, knowledge=both)) is None


def test_what_is_rare_needs_a_larger_sample() -> None:
    known = loop()
    sure = known.knowledge.sampled(2, 4, pairs=1e6, matches=1e5, rows=400)
    rare = sure.sampled(1, 2, pairs=1e4, matches=1.0, rows=10**6)
    draw = wanted_sample(SETTING, replace(known, knowledge=rare))
    assert draw is not None and draw.order == (0, 1)
    assert POLICY.sample_rows < draw.rows <= 8 * POLICY.sample_rows


def test_what_a_decision_hangs_on_is_sampled_first_but_once_per_comparison() -> None:
    learn = Pursuit(confirmed=1, learn=(0b110, 0b111))
    draw = wanted_sample(SETTING, loop(pursuit=learn))
    assert draw is not None and draw.order == (1, 2, 0)
    assert wanted_sample(SETTING, loop(pursuit=replace(learn, learned=True))) is None


def test_sampling_has_its_share_of_the_time() -> None:
    frugal = replace(SETTING, policy=replace(POLICY, sampling=0.01))
    assert wanted_sample(frugal, loop(spent=TimeSpent(joining=10.0, sampling=0.10))) is not None
    assert wanted_sample(frugal, loop(spent=TimeSpent(joining=10.0, sampling=0.11))) is None
    never = replace(SETTING, policy=replace(POLICY, sampling=0.0))
    assert wanted_sample(never, loop()) is None


def test_it_looks_ahead_only_where_rows_come_faster_than_expected() -> None:
    limited = replace(SETTING, budget=Budget(memory=1e6))
    known = loop()
    assert expected_rates(limited, known, [120.0] * 3) is None
    ahead = expected_rates(limited, known, [50.0, 130.0, 100.0])
    assert ahead is not None and ahead == pytest.approx((100.0, 130.0, 100.0))
    foreseen = replace(known, comparison=replace(known.comparison, foreseen=ahead))
    assert expected_rates(limited, foreseen, [50.0, 130.0, 100.0]) is None, "it has looked"


def test_it_looks_ahead_where_memory_comes_to_an_end() -> None:
    crowded = replace(SETTING, budget=Budget(memory=1050.0))
    known = loop()
    assert expected_rates(crowded, known, [1.0] * 3) is not None
    short = replace(known, comparison=replace(known.comparison, short="memory"))
    assert expected_rates(crowded, short, [1.0] * 3) is None


def test_each_stream_of_a_sample_comes_after_a_neighbour() -> None:
    neighbours = chain(5).graph.neighbours
    for streams in range(1, 32):
        order = sample_order(neighbours, streams)
        assert sum(1 << s for s in order) == streams
    assert sample_order(neighbours, 0b11111, first=0b01000) == (3, 2, 1, 0, 4)
