"""The migration cost models: equations against each other, against the general form, and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.optimize.costs import DEFAULT, PAPER
from plait.optimize.migration_cost import (
    JoinKind,
    new_join_work,
    old_join_work,
    parallel_bytes,
    predict,
    t_match,
    t_move,
    t_parallel_track,
    t_state,
    terms_of,
)
from plait.plan.jtree import Node, parse_shape
from plait.testing.examples import chain
from plait.testing.models import long_chain_model, model_of
from plait_lab.experiments.cape.equations import t_clean, t_pt

NESTED = terms_of(PAPER, "nested-loop")
POSITIVE = st.floats(0.1, 100)
OLD, NEW = "(((a b) c) d)", "(a ((b c) d))"


def plan(shape: str) -> Node:
    return parse_shape(chain(4), shape)


def test_equation_4() -> None:
    assert [t_parallel_track(h, 3.0) for h in (1, 2, 5)] == [3.0, 6.0, 6.0]


@given(POSITIVE, POSITIVE, POSITIVE)
def test_equation_5_and_6_differ_by_the_first_window(a: float, b: float, window: float) -> None:
    """In the first W the new box compares half the pairs, and takes nothing out."""
    old, new = old_join_work(a, b, window, NESTED), new_join_work(a, b, window, NESTED)
    pairs = a * b * window**2 * NESTED.join
    assert old - new == pytest.approx(pairs + (a + b) * window * NESTED.store)


@pytest.mark.parametrize("kind", ["nested-loop", "hash"])
def test_predict_recomputes_bc_and_bcd(kind: JoinKind) -> None:
    model = long_chain_model()
    terms = terms_of(PAPER, kind)
    found = predict(model, plan(OLD), plan(NEW), terms)
    window, rate = 10.0, 10.0
    size = rate * window
    pairs = size * size * 0.15
    expected = t_state(size, size, 0.15, terms) + t_state(pairs, size, 0.1, terms, 3)
    assert found.t_recompute == pytest.approx(expected)
    assert found.t_ms == pytest.approx(expected + t_match(3, 3, terms) + t_move(3, 3, terms))


def test_the_same_plan_recomputes_nothing() -> None:
    found = predict(long_chain_model(), plan(OLD), plan(OLD), NESTED)
    assert found.t_recompute == 0
    assert found.old_load == found.new_load


def test_a_machine_without_power_takes_longer_than_two_windows() -> None:
    model = model_of(chain(4), [1.0] * 4, [0.1] * 3)
    fast, slow = (predict(model, plan(OLD), plan(NEW), NESTED, speed) for speed in (1.0, 1e-5))
    assert t_pt(fast) == fast.t_purge == 20.0
    assert t_pt(slow) == pytest.approx(slow.parallel_work / 1e-5)
    assert t_pt(slow) > 20
    assert t_clean(fast, 100.0) == 0
    assert t_clean(slow, 100.0) == pytest.approx(100 * (slow.old_load / 1e-5 - 1))
    assert slow.t_ms == pytest.approx(fast.t_ms * 1e5)


def test_hash_joins_are_cheaper_where_few_pairs_match() -> None:
    model = long_chain_model()
    nested = predict(model, plan(OLD), plan(NEW), terms_of(PAPER, "nested-loop"))
    hashed = predict(model, plan(OLD), plan(NEW), terms_of(PAPER, "hash"))
    assert hashed.t_ms < 0.3 * nested.t_ms
    assert hashed.old_load < 0.3 * nested.old_load
    assert terms_of(DEFAULT).probe == DEFAULT.probe


def test_an_mjoin_is_purged_after_one_window() -> None:
    found = predict(long_chain_model(), plan("(a b c d)"), plan(NEW), NESTED, 100.0)
    assert t_pt(found) == 10.0


def test_a_parallel_track_costs_what_is_beyond_the_new_plan() -> None:
    found = predict(long_chain_model(), plan(OLD), plan(NEW), NESTED, 100.0)
    alone = found.new_load * found.t_purge
    assert found.parallel_extra == pytest.approx((found.parallel_work - alone) / 100)
    filling = found.parallel_work - found.old_load * found.t_purge
    assert 0 < filling < alone, "a new plan that fills does less than one whose states are full"


def test_how_long_old_tuples_live_can_be_told() -> None:
    model = long_chain_model()
    usual, half = (predict(model, plan(OLD), plan(NEW), NESTED, t_purge=t) for t in (None, 10.0))
    assert (usual.t_purge, half.t_purge) == (20.0, 10.0)
    assert half.parallel_work == pytest.approx(usual.parallel_work / 2)
    assert half.t_ms == usual.t_ms


def test_a_parallel_track_holds_the_states_of_both_plans() -> None:
    model = long_chain_model()
    deep, flat = plan(OLD), plan("(a b c d)")
    states = [model.state_cost(mask, [0b010]).bytes for mask in (0b0011, 0b0111)]
    assert parallel_bytes(model, flat, deep) >= 0.9 * sum(states)
    assert parallel_bytes(model, deep, deep) >= 0.9 * sum(states), "nothing is shared"
    assert 0 <= parallel_bytes(model, deep, flat) < min(states), "indexes of base windows only"
