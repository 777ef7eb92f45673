from __future__ import annotations

from dataclasses import replace

from tests.adapt.conftest import QUERY

from plait.adapt.decide import Decision
from plait.adapt.pursuit import Pursuit
from plait.optimize.model import Cost
from plait.plan.jtree import mjoin

BETTER = Decision("stay", (), Cost(3.0, 0, 0), mjoin(QUERY), Cost(1.0, 0, 0), better=True)


def test_regret_grows_with_time_while_there_is_a_better_plan() -> None:
    pursuit = Pursuit().decided(BETTER)
    assert (pursuit.confirmed, pursuit.gain, pursuit.regret) == (1, 2.0, 0.0)
    later = pursuit.after(1.5).decided(BETTER).after(0.5)
    assert (later.confirmed, later.regret) == (2, 4.0)
    assert Pursuit().after(9.0) == Pursuit()


def test_a_comparison_that_finds_none_ends_it() -> None:
    pursuit = Pursuit().decided(BETTER).after(5.0).spending(0.1)
    assert pursuit.spent == 0.1
    assert pursuit.decided(replace(BETTER, better=False)) == Pursuit()


def test_two_comparisons_after_one_batch_confirm_once() -> None:
    pursuit = Pursuit().decided(BETTER)
    assert pursuit.again().decided(BETTER).confirmed == 1
    assert Pursuit().again().confirmed == 0


def test_samples_count_only_while_something_is_to_be_learnt() -> None:
    learning = Pursuit().decided(replace(BETTER, kind="learn", learn=(0b11,)))
    tried = learning.spending(0.1, sample=True)
    assert (tried.tries, tried.learned, tried.spent) == (1, True, 0.1)
    again = tried.decided(replace(BETTER, kind="learn", learn=(0b11,)))
    assert (again.tries, again.learned) == (1, False)
    other = Pursuit().decided(BETTER).spending(0.1, sample=True)
    assert (other.tries, other.learned) == (0, False)
    assert Pursuit().spending(0.1).spent == 0.0, "nothing is pursued"
