"""What an engine has counted, in the terms of the cost model."""

from __future__ import annotations

import pytest

from plait.engine.counters import InputCounters, OperatorCounters, StepCounters
from plait.node.operation_counts import InputLayout, counted, inputs_of
from plait.optimize.model import Operations
from plait.plan.jtree import Join, parse_shape, preorder
from plait.query.query import Query
from plait.testing.examples import chain, clique


def join(query: Query, shape: str) -> Join:
    found = parse_shape(query, shape)
    assert isinstance(found, Join)
    return found


def test_an_input_gathers_the_streams_of_those_it_probes() -> None:
    root = join(clique(4), "((a b) c d)")
    combined, c, d = inputs_of(clique(4), root)
    assert combined == InputLayout(2, ((1, 3), (2, 4)))
    assert c == InputLayout(1, ((0, 3), (2, 4)))
    assert d == InputLayout(1, ((0, 3), (1, 4)))


def test_the_order_of_probes_is_that_of_the_plan() -> None:
    """In a chain, a new tuple of c can only meet b before a."""
    _, _, c = inputs_of(chain(3), join(chain(3), "(a b c)"))
    assert c == InputLayout(1, ((1, 2), (0, 3)))


def test_one_input_of_a_base_stream() -> None:
    layout = (InputLayout(1, ((1, 2),)), InputLayout(1, ((0, 2),)))
    first = InputCounters(10, 9, 4, [StepCounters(8, 7, 6)])
    second = InputCounters(0, 0, 0, [StepCounters()])
    found = counted([layout], [OperatorCounters("(a b)", [first, second])], batches=3)
    assert found == Operations(
        arrivals=10,
        inserts=9,
        deletes=4,
        probes=8,
        visits=7,
        matches=6,
        carried=8 * 1 + 6 * 2,
        calls=3,
        intakes=3,
    )


def test_an_input_of_combinations_is_stored_and_kept_up() -> None:
    """It comes from a join below, so nothing of it arrives; each is carried in and out."""
    layout = (InputLayout(2, ((1, 3),)), InputLayout(1, ((0, 3),)))
    first = InputCounters(5, 5, 1, [StepCounters(4, 3, 2)])
    second = InputCounters(0, 0, 0, [StepCounters()])
    found = counted([layout], [OperatorCounters("((a b) c)", [first, second])], batches=2)
    assert found == Operations(
        inserts=5,
        deletes=1,
        probes=4,
        visits=3,
        matches=2,
        carried=2 * 5 * 2 + 4 * 2 + 2 * 3,
        calls=2 + 2,
        combined=5,
        upkeep=2,
    )


def test_what_is_carried_grows_with_every_step() -> None:
    """A probe carries what was gathered before it, a match what is together then."""
    two, none = ((1, 2), (2, 3)), InputCounters(steps=[StepCounters(), StepCounters()])
    first = InputCounters(steps=[StepCounters(10, 0, 4), StepCounters(4, 0, 3)])
    layout = (InputLayout(1, two),) * 3
    found = counted([layout], [OperatorCounters("(a b c)", [first, none, none])])
    assert found.carried == 10 * 1 + 4 * 2 + 4 * 2 + 3 * 3


@pytest.mark.parametrize("batches", [0, 1, 7, 100])
def test_a_step_with_few_tuples_had_work_in_few_batches(batches: int) -> None:
    layout = (InputLayout(1, ((1, 2),)), InputLayout(1, ((0, 2),)))
    inputs = [InputCounters(7, 7, 0, [StepCounters(5)]), InputCounters(0, 0, 0, [StepCounters()])]
    found = counted([layout], [OperatorCounters("(a b)", inputs)], batches)
    assert (found.calls, found.intakes) == (min(batches, 5), min(batches, 7))


def test_counters_of_another_plan_are_refused() -> None:
    query = clique(3)
    shape = [inputs_of(query, j) for j in preorder(join(query, "((a b) c)"))]
    with pytest.raises(ValueError, match="zip"):
        counted(shape, [OperatorCounters("(a b)", [])])
