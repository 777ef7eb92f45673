from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from tests.adapt.conftest import QUERY, RATE, batches

from plait.adapt.knowledge import BatchObservations, Knowledge, geometry
from plait.engine.monitor import Watch
from plait.local.host import LocalRun
from plait.plan.jtree import Node, parse_shape
from plait.plan.observed import LookupCounts
from plait_lab.exhaustive.plans import all_plans

WINDOW = 4.0


def watched(plan: Node, seconds: int, often: str = "k") -> Knowledge:
    """What a plan's own lookups tell."""
    knowledge = Knowledge.of(3, WINDOW / 2)
    run = LocalRun(QUERY, plan)
    for second, batch in enumerate(batches(seconds, lambda _: often), 1):
        watch = Watch(run.engine)
        run.push(batch)
        seen = BatchObservations(second * 1_000_000, 1.0, watch.stored(), watch.looked())
        knowledge = knowledge.learn(seen, geometry(QUERY))
    return knowledge


@pytest.mark.slow
@pytest.mark.parametrize("plan", list(all_plans(QUERY, orders="default")), ids=str)
def test_every_plan_tells_the_same_of_the_streams(plan: Node) -> None:
    knowledge = watched(plan, 10)
    known = knowledge.statistics(QUERY)
    assert all(math.isclose(r.value, RATE, rel_tol=0.05) for r in known.rates.values())
    truth = {"s0 s1": 1 / 50, "s1 s2": 1 / 50_000}
    for pair, value in truth.items():
        if pair in known.joint:
            assert math.isclose(known.joint[pair].value, value, rel_tol=0.15), pair
    assert set(truth) & set(known.joint), "some pair is always looked up"
    whole = known.joint["s0 s1 s2"]
    assert math.isclose(whole.value, 1 / 2_500_000, rel_tol=0.15)
    assert known.batch is not None and math.isclose(known.batch.value, 1.0)


@pytest.mark.slow
def test_a_state_that_still_fills_misleads_nobody() -> None:
    """After one batch the windows hold a quarter of what they will."""
    known = watched(parse_shape(QUERY, "((s0 s1) s2)"), 2).statistics(QUERY)
    assert math.isclose(known.joint["s0 s1"].value, 1 / 50, rel_tol=0.2)


def test_it_forgets() -> None:
    knowledge = Knowledge.of(2, half_life=10.0)
    volumes = geometry(QUERY)
    for second in range(1, 61):
        rate = 100 if second <= 20 else 120  # too little for a leap
        knowledge = knowledge.learn(BatchObservations(second * 1_000_000, 1.0, [rate, 0]), volumes)
    assert 118.5 < knowledge.rows[0] / knowledge.span < 119.5


def test_a_leap_is_believed_at_once_but_not_again_and_again() -> None:
    knowledge = Knowledge.of(2, half_life=10.0)
    volumes = geometry(QUERY)
    rates = []
    for second in range(1, 41):
        rate = 100 if second <= 20 or second % 2 else 1000
        knowledge = knowledge.learn(BatchObservations(second * 1_000_000, 1.0, [rate, 5]), volumes)
        rates.append(knowledge.rows[0] / knowledge.span)
    assert rates[19] == 100 and rates[21] == 1000
    assert 400 < rates[-1] < 700, "what goes back and forth has a mean"


def test_after_a_leap_samples_of_new_rows_count_until_the_old_rows_are_gone() -> None:
    knowledge = Knowledge.of(2, half_life=2.0, window=4.0)
    volumes = geometry(QUERY)

    def look(second: int, matches: int) -> float:
        nonlocal knowledge
        looked = LookupCounts(1, 2, 1, probes=1000, matches=matches, rows=1000.0)
        knowledge = knowledge.learn(
            BatchObservations(second * 1_000_000, 1.0, [100, 100], [looked]), volumes
        )
        return knowledge.agreements[1, 2].value

    before = look(1, 1000)
    leapt = look(2, 5000)
    assert math.isclose(leapt, 5 * before, rel_tol=0.01) and knowledge.doubtful() == [(1, 2)]
    assert not knowledge.settled
    knowledge = knowledge.sampled(1, 2, pairs=1e6, matches=1e6 * 20 * before, rows=1000)
    assert not knowledge.doubtful()
    assert math.isclose(look(3, 9000), 20 * before, rel_tol=0.01), "lookups meet old rows, too"
    assert look(6, 9000) < 15 * before, "now all rows are new"
    assert knowledge.settled


def test_what_was_not_heard_of_since_a_leap_is_doubtful_until_there_is_a_sample() -> None:
    knowledge = Knowledge.of(3, half_life=2.0, window=4.0)
    knowledge = knowledge.sampled(2, 4, pairs=1e5, matches=1e4, rows=1000)
    for second, matches in ((1, 1000), (2, 5000)):
        looked = LookupCounts(1, 2, 1, probes=1000, matches=matches, rows=1000.0)
        knowledge = knowledge.learn(
            BatchObservations(second * 1_000_000, 1.0, [100] * 3, [looked]), geometry(QUERY)
        )
    assert knowledge.doubtful() == [(2, 4), (1, 2)]
    knowledge = knowledge.sampled(2, 4, pairs=0.0, matches=0.0, rows=1000)
    assert knowledge.doubtful() == [(1, 2)], "no sample can tell"
    knowledge = replace(knowledge, time=knowledge.time + 5_000_000)
    assert not knowledge.doubtful()


def test_of_a_larger_set_lookups_among_old_rows_say_nothing() -> None:
    knowledge = Knowledge.of(3, half_life=2.0, window=4.0)
    volumes = geometry(QUERY)
    for second, matches in ((1, 100), (2, 5000)):
        looked = [
            LookupCounts(1, 2, 1, probes=1000, matches=1000, rows=1000.0),
            LookupCounts(3, 4, 1, probes=1000, matches=matches, rows=1000.0),
        ]
        knowledge = knowledge.learn(
            BatchObservations(second * 1_000_000, 1.0, [100] * 3, looked), volumes
        )
        assert (7 in knowledge.joint()) == (second == 1)
    assert 3 in knowledge.joint()


def test_a_sample_that_found_nothing_is_better_than_an_assumption() -> None:
    knowledge = Knowledge.of(3, half_life=10.0)
    knowledge = knowledge.learn(BatchObservations(1_000_000, 1.0, [100] * 3), geometry(QUERY))
    knowledge = knowledge.sampled(1, 2, pairs=1e5, matches=0.0, rows=10**5)
    knowledge = knowledge.sampled(2, 4, pairs=1e3, matches=0.0, rows=10**5)
    known = knowledge.statistics(QUERY, 0.8)
    assert known.joint["s0 s1"].value == pytest.approx(5e-6, rel=0.01)
    assert known.joint["s0 s1"].confidence == 0.0
    assert "s1 s2" not in known.joint, "a thousand pairs tell nothing of one in 100,000"


def test_confidence_grows_with_matches_and_fades_with_age() -> None:
    knowledge = Knowledge.of(2, half_life=10.0)
    knowledge = replace(knowledge, time=1)
    knowledge = knowledge.sampled(1, 2, pairs=1000.0, matches=3.0, rows=10_000)
    few = knowledge.confidence((1, 2))
    knowledge = knowledge.sampled(1, 2, pairs=100_000.0, matches=300.0, rows=10_000)
    many = knowledge.confidence((1, 2))
    assert few < 0.6 and many > 0.9
    knowledge = replace(knowledge, time=40_000_001)
    assert math.isclose(knowledge.confidence((1, 2)), many / 2, rel_tol=0.01)
    assert knowledge.confidence((2, 1)) == 0.0, "keys are in order"


def test_what_is_never_found_is_sure_enough_where_it_costs_nothing() -> None:
    knowledge = Knowledge.of(2, half_life=10.0)
    knowledge = knowledge.sampled(1, 2, pairs=1e6, matches=0.0, rows=1000)
    assert knowledge.confidence((1, 2)) == 1.0
    knowledge = knowledge.sampled(1, 2, pairs=1.0, matches=0.0, rows=10**8)
    assert knowledge.confidence((1, 2)) < 0.1


def test_unknown_is_unknown() -> None:
    known = Knowledge.of(3, 1.0).statistics(QUERY)
    assert not known.rates and not known.joint and known.batch is None


def test_a_set_is_as_sure_as_its_parts() -> None:
    knowledge = Knowledge.of(3, half_life=10.0)
    knowledge = knowledge.sampled(1, 2, pairs=1000.0, matches=10.0, rows=10**6)
    knowledge = knowledge.sampled(3, 4, pairs=1e6, matches=1e5, rows=10**6)
    value, sure, _, most, *_ = knowledge.joint()[7]
    assert most > value
    assert math.isclose(value, 0.0105 * 0.1, rel_tol=0.01)
    assert sure == knowledge.confidence((1, 2)) < knowledge.confidence((3, 4))


@pytest.mark.slow
def test_it_survives_as_plain_data() -> None:
    knowledge = watched(parse_shape(QUERY, "(s0 s1 s2)"), 3)
    again = Knowledge.from_dict(json.loads(json.dumps(knowledge.to_dict())))
    assert again == knowledge


def test_a_step_without_pairs_says_nothing() -> None:
    knowledge = Knowledge.of(3, half_life=10.0)
    empty = LookupCounts(1, 2, 1, probes=5, matches=0, rows=0.0)
    knowledge = knowledge.learn(BatchObservations(1, 1.0, [5, 0, 0], [empty]), geometry(QUERY))
    assert not knowledge.agreements
