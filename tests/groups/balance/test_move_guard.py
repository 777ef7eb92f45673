from __future__ import annotations

import pytest

from plait.groups.balance.move_guard import MoveTrial, MoveVerdict, judge_move
from plait.groups.balance.policy import BalancePolicy
from plait.groups.moves.move import Move

FIRST = Move(1, "MSLB", (7,), (0,), (1,))
SECOND = Move(2, "PTLB", (8, 9), (0,), (2,))
TRIAL = MoveTrial((FIRST, SECOND), 0.8, 0.5, 100.0, 40.0, (1, 2))
DONE = MoveTrial((FIRST,), 0.8, 0.5, 100.0, 40.0, (), 0.0)
POLICY = BalancePolicy()


def verdict(slowest: float, rows: float = 1000.0, moved: float = 400.0) -> MoveVerdict:
    """After ten seconds in which the slower of both has taken so much per second."""
    return judge_move(DONE.after({0: 1.0, 1: 10 * slowest}, 10.0, rows, moved), POLICY)


def test_those_that_take_part_and_what_moves() -> None:
    assert TRIAL.processors == (0, 1, 2) and TRIAL.groups == {7, 8, 9}


def test_a_trial_begins_when_the_last_move_is_done() -> None:
    one = TRIAL.ended(1, done=True, time=5.0)
    assert one is not None and one.pending == (2,) and one.began is None
    both = one.ended(2, done=True, time=6.0)
    assert both is not None and both.pending == () and both.began == 6.0
    assert both.ended(2, done=False, time=9.0) is both, "told twice"
    assert both.ended(7, done=True, time=9.0) is both, "not of this trial"


def test_moves_that_were_given_up_are_not_judged() -> None:
    one = TRIAL.ended(1, done=False, time=5.0)
    assert one is not None and one.moves == (SECOND,) and one.processors == (0, 2)
    assert one.ended(2, done=False, time=6.0) is None


def test_nothing_is_held_against_moves_of_which_one_was_given_up() -> None:
    """The slowest went from 0.8 to 0.65; but rows of a processor that is out count no longer."""
    one = TRIAL.ended(1, done=False, time=5.0)
    assert one is not None
    both = one.ended(2, done=True, time=6.0)
    assert both is not None and both.began == 6.0
    found = judge_move(both.after({0: 6.5, 2: 5.0}, 10.0, 700.0, 360.0), POLICY)
    assert found.paid and not found.back


def test_looks_add_up_and_one_without_everybody_does_not_count() -> None:
    one = DONE.after({0: 1.0, 1: 2.0, 5: 9.0}, 10.0, 100.0, 40.0)
    assert one.after({0: 1.0}, 10.0, 100.0, 40.0) is one
    assert one.after({0: 1.0, 1: None}, 10.0, 100.0, 40.0) is one
    two = one.after({0: 3.0, 1: 4.0}, 5.0, 50.0, 20.0)
    assert (dict(two.seconds), two.span, two.snapshots) == ({0: 4.0, 1: 6.0}, 15.0, 2)
    assert (two.rows, two.moved_rows) == (150.0, 60.0)
    unknown = two.after({0: 1.0, 1: 1.0}, 1.0, None, 5.0)
    assert (unknown.rows, unknown.moved_rows) == (None, 65.0)


@pytest.mark.parametrize(
    ("slowest", "paid", "back"),
    [
        (0.40, True, False),  # as predicted
        (0.69, True, False),  # a quarter of the predicted saving came true
        (0.72, False, False),  # less than that
        (0.87, False, False),  # worse than before, within the tolerance
        (0.89, False, True),
    ],
)
def test_a_move_paid_if_a_part_of_the_saving_came_true(
    slowest: float, paid: bool, back: bool
) -> None:
    found = verdict(slowest)
    assert (found.paid, found.back) == (paid, back)
    assert found.measured == pytest.approx(slowest / 0.8)
    assert ("did not pay" in found.reason) == (not paid) and ("go back" in found.reason) == back


def test_groups_do_not_go_back_to_one_that_is_still_the_slowest() -> None:
    """The sender takes 1.25 times what it did, and the receiver less: both have become slower."""
    slow = judge_move(DONE.after({0: 10.0, 1: 9.0}, 10.0, 1000.0, 400.0), POLICY)
    assert not slow.paid and not slow.back
    spread = MoveTrial((Move(1, "MSLB", (7,), (0,), (0, 1), 0),), 0.8, 0.5, 100, 40, (), 0.0)
    slow = judge_move(spread.after({0: 10.0, 1: 9.0}, 10.0, 1000.0, 400.0), POLICY)
    assert not slow.paid and not slow.back, "it would have all of the group again"
    assert judge_move(spread.after({0: 9.0, 1: 10.0}, 10.0, 1000.0, 400.0), POLICY).back


def test_what_came_faster_or_slower_is_not_held_against_a_move() -> None:
    faster = verdict(0.40 * 1.4, rows=1400.0, moved=560.0)
    assert faster.paid and faster.measured == pytest.approx(0.5)
    slower = verdict(0.72, rows=700.0, moved=280.0)
    assert slower.back, "fewer rows, and yet it takes as long"


@pytest.mark.parametrize(
    ("rows", "moved", "said"),
    [
        (1600.0, 400.0, "1.60 times as many rows in all"),
        (600.0, 400.0, "0.60 times as many rows in all"),
        (1000.0, 700.0, "1.75 times as many rows of the groups that moved"),
        (1000.0, 0.0, "0.00 times as many rows of the groups that moved"),
    ],
)
def test_what_cannot_be_compared_is_not_judged(rows: float, moved: float, said: str) -> None:
    found = verdict(5.0, rows, moved)
    assert (found.paid, found.back, found.measured) == (True, False, None) and said in found.reason


def test_what_is_not_known_is_not_judged() -> None:
    unknown = DONE.after({0: 1.0, 1: 90.0}, 10.0, None, 400.0)
    for trial in (DONE, unknown):
        found = judge_move(trial, POLICY)
        assert found.paid and not found.back and found.measured is None


def test_groups_that_had_no_rows_and_have_none_can_be_judged() -> None:
    silent = MoveTrial((FIRST,), 0.8, 0.5, 100.0, 0.0, (), 0.0)
    assert judge_move(silent.after({0: 1.0, 1: 9.0}, 10.0, 1000.0, 0.0), POLICY).back
    assert judge_move(silent.after({0: 1.0, 1: 9.0}, 10.0, 1000.0, 5.0), POLICY).paid


def test_a_move_that_was_to_save_nothing_may_cost_little() -> None:
    """Spreading a group may be for memory; it must not cost more than was predicted."""
    even = MoveTrial((FIRST,), 0.8, 1.2, 100.0, 40.0, (), 0.0)
    for slowest, back in ((0.8 * 1.29, False), (0.8 * 1.31, True)):
        found = judge_move(even.after({0: 0.0, 1: 10 * slowest}, 10.0, 1000.0, 400.0), POLICY)
        assert (found.paid, found.back) == (not back, back)
