"""The cost model: the paper's equations, additivity, and every kind of graph."""

from __future__ import annotations

import math

import pytest

from plait.optimize.costs import DEFAULT, PAPER
from plait.optimize.model import Model
from plait.optimize.search.candidate import Joins
from plait.optimize.statistics import Statistics
from plait.plan.jtree import Join, Leaf, mjoin, parse_shape
from plait.testing.examples import chain, clique, keyed
from plait.testing.models import model_of
from plait_lab.exhaustive.plans import all_plans

W = 10.0
CI, CD, CJ = PAPER.insert, PAPER.delete, PAPER.match


def test_equations_1_to_7() -> None:
    a, b, c, ab, bc = 20.0, 30.0, 40.0, 0.05, 0.5
    model = model_of(chain(3), [a, b, c], [ab, bc])
    query = chain(3)
    orders = ((1, 2), (0, 2), (1, 0))
    many = Join((Leaf("a"), Leaf("b"), Leaf("c")), orders)
    cpu_a = a * (CI + CD) + a * b * ab * W * CJ + a * b * ab * c * bc * W**2 * CJ
    steps = model.step_price(0b001, 0b010, 0b001) + model.step_price(0b011, 0b100, 0b001)
    assert a * (CI + CD) + steps == pytest.approx(cpu_a)
    keep = (a + b + c) * (CI + CD)
    results = 3 * a * b * c * ab * bc * W**2 * CJ
    cpu_mjoin = keep + b * c * bc * W * CJ + results + 2 * a * b * ab * W * CJ
    assert model.cost(many).cpu == pytest.approx(cpu_mjoin)
    assert model.cost(many).tuples == pytest.approx((a + b + c) * W)
    tree = parse_shape(query, "((a b) c)")
    cpu_tree = keep + results + 2 * a * b * ab * W * (CJ + CI + CD)
    assert model.cost(tree).cpu == pytest.approx(cpu_tree)
    assert model.cost(tree).tuples == pytest.approx((a + b + c) * W + a * b * ab * W**2)
    recompute, maintain = b * c * bc * W * CJ, 2 * a * b * ab * W * (CI + CD)
    difference = model.cost(many).cpu - model.cost(tree).cpu
    assert difference == pytest.approx(recompute - maintain)


def test_streams_of_one_key_agree_with_one_value() -> None:
    model = model_of(clique(4), [10.0] * 4, [0.1] * 3)
    assert model.density(0b1111) == pytest.approx(10**4 * 0.1**3)
    assert model.density(0b1001) == pytest.approx(10**2 * 0.1)


def test_two_keys_of_one_pair_multiply() -> None:
    query = keyed("xy", "xy")
    model = model_of(query, [10.0, 10.0], [0.1, 0.2])
    assert model.density(0b11) == pytest.approx(100 * 0.02)


def test_a_cycle_has_one_predicate_more_than_a_chain() -> None:
    query = keyed("xz", "xy", "yz")
    model = model_of(query, [1.0, 1.0, 1.0], [0.5, 0.4, 0.3])
    assert model.density(0b111) == pytest.approx(0.5 * 0.4 * 0.3)


def test_pairs_of_one_key_that_differ() -> None:
    known = Statistics.of(
        dict.fromkeys("abc", 1), {"a.k = b.k": 0.1, "b.k = c.k": 0.01, "a.k = c.k": 0.05}
    )
    model = Model(clique(3), known, PAPER)
    assert model.density(0b111) == pytest.approx(0.1 * 0.05)


def test_a_plan_costs_the_sum_over_its_joins(joins: Joins) -> None:
    model = joins.model
    for plan in list(all_plans(model.query, orders="default"))[:20]:
        whole = model.cost(plan)
        assert model.operations(plan).seconds(model.costs) == pytest.approx(whole.cpu)


def test_every_plan_makes_the_same_results(joins: Joins) -> None:
    model = joins.model
    made = {
        round(model.operations(plan).results, 6)
        for plan in all_plans(model.query, orders="default")
    }
    assert len(made) == 1


def test_a_lookup_that_finds_nothing_costs() -> None:
    known = Statistics.of({"a": 100, "b": 100}, {"a.k = b.k": 0.0}, batch=1.0)
    model = Model(clique(2), known, DEFAULT)
    operations = model.operations(mjoin(clique(2)))
    assert operations.matches == 0
    assert operations.probes == pytest.approx(200)
    assert operations.seconds(DEFAULT) > 200 * DEFAULT.probe


def test_more_rate_never_costs_less() -> None:
    costs = []
    for rate in (10, 20, 40, 80):
        model = model_of(chain(3), [rate, 10, 10], [0.1, 0.1], DEFAULT)
        costs.append(model.cost(parse_shape(chain(3), "((a b) c)")))
    assert [c.cpu for c in costs] == sorted(c.cpu for c in costs)
    assert [c.bytes for c in costs] == sorted(c.bytes for c in costs)


@pytest.mark.parametrize("rate", [1e-300, 5e-324, 1e-12])
def test_a_stream_that_fell_silent_long_ago_has_a_finite_cost(rate: float) -> None:
    """What is known of a silent stream fades: its rate becomes a number next to nothing."""
    query = chain(3)
    known = Statistics.of({"a": 20, "b": rate, "c": 20}, {"a.a = b.a": 0.05, "b.b = c.b": 0.5})
    model = Model(query, known, DEFAULT)
    for plan in (mjoin(query), parse_shape(query, "((a b) c)")):
        cost = model.cost(plan)
        assert math.isfinite(cost.cpu) and math.isfinite(cost.tuples)
