"""Difference-bound matrices against brute force."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import UnboundedPair, WindowError
from plait.query.bounds import Bounds, Constraint, close, global_window, show, stream_windows

NAMES = ("a", "b", "c")
REACH = 8


@st.composite
def systems(draw: st.DrawFn) -> list[Constraint]:
    """Constraints that bound each pair, and some more."""
    bound = st.integers(-2, 4)
    ring = [Constraint(i, (i + 1) % 3, draw(bound)) for i in range(3)]
    pairs = st.tuples(st.integers(0, 2), st.integers(0, 2)).filter(lambda p: p[0] != p[1])
    more = draw(st.lists(st.tuples(pairs, bound), max_size=4))
    return ring + [Constraint(i, j, width) for (i, j), width in more]


@given(systems())
def test_closure_says_the_same_as_the_constraints_and_nothing_looser(
    constraints: list[Constraint],
) -> None:
    # The ring bounds every difference by 2 * 4 = REACH, so that this grid holds all solutions.
    grid = itertools.product([0], range(-REACH, REACH + 1), range(-REACH, REACH + 1))
    solutions = [
        times
        for times in grid
        if all(times[c.later] - times[c.earlier] <= c.micros for c in constraints)
    ]
    if not solutions:
        with pytest.raises(WindowError, match="contradict each other"):
            close(NAMES, constraints)
        return
    bounds = close(NAMES, constraints)
    for i, j in itertools.product(range(3), repeat=2):
        assert bounds.matrix[i][j] == max(times[j] - times[i] for times in solutions)
    for times in itertools.product([0], range(-REACH, REACH + 1), range(-REACH, REACH + 1)):
        close_enough = all(
            times[j] - times[i] <= bounds.matrix[i][j]
            for i, j in itertools.product(range(3), repeat=2)
        )
        assert close_enough == (times in solutions)


def test_windows() -> None:
    everywhere = close(NAMES, global_window(3, 5))
    assert everywhere.uniform == everywhere.widest == 5
    each = close(NAMES, stream_windows([1, 2, 9]))
    assert each.matrix == ((0, 1, 1), (2, 0, 2), (9, 9, 0))
    assert each.uniform is None
    both = close(("a", "b"), [*global_window(2, 5), Constraint(0, 1, 3)])
    assert both.matrix == ((0, 3), (5, 0))


def test_an_unbounded_pair_is_named() -> None:
    with pytest.raises(UnboundedPair) as caught:
        close(NAMES, [*global_window(2, 5), Constraint(0, 2, 7)])
    assert str(caught.value) == (
        "a.time may be arbitrarily long after c.time: their state would grow for ever; bound the "
        "pair (c, a), for example with within('10 seconds') or an interval condition"
    )


def test_a_contradiction_names_the_streams() -> None:
    with pytest.raises(WindowError) as caught:
        close(NAMES, [*global_window(3, 5), Constraint(0, 1, -3), Constraint(1, 0, 2)])
    assert "the time conditions on a and b contradict each other" in str(caught.value)
    assert "check the signs of the intervals" in str(caught.value)


def test_one_line() -> None:
    assert show(("a", "b"), Bounds(((0, -1_000_000), (2_000_000, 0)))) == "a - 2 s <= b <= a - 1 s"
    assert show(("a", "b"), Bounds(((0, 5), (5, 0)))) == "all within 5 us"
