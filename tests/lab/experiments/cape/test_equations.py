"""Equations that only the experiments of CAPE need: against each other and the general form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.optimize.costs import PAPER
from plait.optimize.migration_cost import Terms, predict, t_match, t_move, terms_of
from plait.plan.jtree import Node, parse_shape
from plait.testing.examples import chain
from plait.testing.models import long_chain_model
from plait_lab.experiments.cape.equations import (
    equation_1,
    equation_8,
    new_output_rate,
    output_rate,
    t_moving_state,
)

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


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(0.001, 1))
def test_equation_7_reaches_equation_2(b: float, c: float, window: float, sigma: float) -> None:
    full = output_rate(b, c, window, sigma)
    assert new_output_rate(window, b, c, window, sigma) == pytest.approx(full)
    assert new_output_rate(window / 2, b, c, window, sigma) == pytest.approx(full / 2)


def test_equation_8_counts_pairs_twice() -> None:
    """|S_BC| = λ_BC W holds in a running plan; a state that is recomputed has half of that."""
    model, window = long_chain_model(), 10.0
    terms = Terms(0.0, 0.0, join=1.0, store=0.0)
    exact = predict(model, plan(OLD), plan(NEW), terms).t_recompute
    printed = equation_8((10.0, 10.0, 10.0), (0.15, 0.1), window, terms)
    first = equation_1(10.0, 10.0, window, 0.15, terms)
    assert printed - first == pytest.approx(2 * (exact - first))


def test_equation_3_adds_up() -> None:
    terms = Terms(compare=1.0, cursor=10.0, join=0.0, store=0.0)
    assert t_match(2, 3, terms) + t_move(2, 3, terms) == 24 + 40
    assert t_moving_state(2, 3, [100.0], terms) == 164
