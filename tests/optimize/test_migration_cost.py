"""The migration cost models: equations against each other, against the general form, and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.optimize.costs import DEFAULT, PAPER
from plait.optimize.migration_cost import (
    JoinKind,
    Terms,
    equation_1,
    equation_8,
    new_join_work,
    new_output_rate,
    old_join_work,
    output_rate,
    parallel_bytes,
    predict,
    state_size,
    t_match,
    t_move,
    t_moving_state,
    t_parallel_track,
    t_state,
    terms_of,
)
from plait.plan.jtree import Node, parse_shape
from plait.testing.examples import chain
from plait.testing.models import long_chain_model, model_of

NESTED = terms_of(PAPER, "nested-loop")
POSITIVE = st.floats(0.1, 100)
OLD, NEW = "(((a b) c) d)", "(a ((b c) d))"


def plan(shape: str) -> Node:
    return parse_shape(chain(4), shape)


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(0.001, 1))
def test_equation_1_is_the_state_of_full_windows(
    a: float, b: float, window: float, sigma: float
) -> None:
    printed = a * b * window**2 * (NESTED.join + NESTED.store * sigma)
    assert equation_1(a, b, window, sigma, NESTED) == pytest.approx(printed)


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE, st.floats(0.001, 1), st.floats(0.001, 1))
def test_equation_8_is_equations_1_and_2_twice(
    b: float, c: float, d: float, window: float, bc: float, bcd: float
) -> None:
    joined = output_rate(b, c, window, bc)
    stacked = equation_1(b, c, window, bc, NESTED) + equation_1(joined, d, window, bcd, NESTED)
    assert equation_8((b, c, d), (bc, bcd), window, NESTED) == pytest.approx(stacked)
    printed = b * c * window**2 * (NESTED.join + NESTED.store * bc)
    printed += 2 * b * c * d * window**3 * (NESTED.join * bc + NESTED.store * bc * bcd)
    assert equation_8((b, c, d), (bc, bcd), window, NESTED) == pytest.approx(printed)


def test_equation_3_adds_up() -> None:
    terms = Terms(compare=1.0, cursor=10.0, join=0.0, store=0.0)
    assert t_match(2, 3, terms) + t_move(2, 3, terms) == 24 + 40
    assert t_moving_state(2, 3, [100.0], terms) == 164


def test_equation_4() -> None:
    assert [t_parallel_track(h, 3.0) for h in (1, 2, 5)] == [3.0, 6.0, 6.0]


@given(POSITIVE, POSITIVE, POSITIVE)
def test_equation_5_and_6_differ_by_the_first_window(a: float, b: float, window: float) -> None:
    """In the first W the new box compares half the pairs, and takes nothing out."""
    old, new = old_join_work(a, b, window, NESTED), new_join_work(a, b, window, NESTED)
    pairs = a * b * window**2 * NESTED.join
    assert old - new == pytest.approx(pairs + (a + b) * window * NESTED.store)


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(0.001, 1))
def test_equation_7_reaches_equation_2(b: float, c: float, window: float, sigma: float) -> None:
    full = output_rate(b, c, window, sigma)
    assert new_output_rate(window, b, c, window, sigma) == pytest.approx(full)
    assert new_output_rate(window / 2, b, c, window, sigma) == pytest.approx(full / 2)


@pytest.mark.parametrize("kind", ["nested-loop", "hash"])
def test_predict_recomputes_bc_and_bcd(kind: JoinKind) -> None:
    model = long_chain_model()
    terms = terms_of(PAPER, kind)
    found = predict(model, plan(OLD), plan(NEW), terms)
    window, rate = 10.0, 10.0
    size = state_size(rate, window)
    pairs = size * size * 0.15
    expected = t_state(size, size, 0.15, terms) + t_state(pairs, size, 0.1, terms, 3)
    assert found.t_recompute == pytest.approx(expected)
    assert found.t_ms == pytest.approx(expected + t_match(3, 3, terms) + t_move(3, 3, terms))


def test_equation_8_counts_pairs_twice() -> None:
    """|S_BC| = λ_BC W holds in a running plan; a state that is recomputed has half of that."""
    model, window = long_chain_model(), 10.0
    terms = Terms(0.0, 0.0, join=1.0, store=0.0)
    exact = predict(model, plan(OLD), plan(NEW), terms).t_recompute
    printed = equation_8((10.0, 10.0, 10.0), (0.15, 0.1), window, terms)
    first = equation_1(10.0, 10.0, window, 0.15, terms)
    assert printed - first == pytest.approx(2 * (exact - first))


def test_the_same_plan_recomputes_nothing() -> None:
    found = predict(long_chain_model(), plan(OLD), plan(OLD), NESTED)
    assert found.t_recompute == 0
    assert found.old_load == found.new_load


def test_a_machine_without_power_takes_longer_than_two_windows() -> None:
    model = model_of(chain(4), [1.0] * 4, [0.1] * 3)
    fast, slow = (predict(model, plan(OLD), plan(NEW), NESTED, speed) for speed in (1.0, 1e-5))
    assert fast.t_pt == fast.t_purge == 20.0
    assert slow.t_pt == pytest.approx(slow.parallel_work / 1e-5)
    assert slow.t_pt > 20
    assert fast.t_clean(100.0) == 0
    assert slow.t_clean(100.0) == pytest.approx(100 * (slow.old_load / 1e-5 - 1))
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
    assert found.t_pt == 10.0


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
