from __future__ import annotations

import pytest

from plait.errors import StatisticsError
from plait.groups.moves.cost import Cargo, MoveCosts, predict_move
from plait.optimize.costs import PAPER

COSTS = MoveCosts(transfer=1e6, store=1e-5, recompute=1e-4, overhead=0.5)
CARGO = Cargo(nbytes=2e6, rows=1e4, rows_work=0.1, match_work=0.2)


def test_mslb_is_transfer_and_recomputation() -> None:
    flat = predict_move(CARGO, COSTS, 10.0, receiver_height=1)
    deep = predict_move(CARGO, COSTS, 10.0, receiver_height=3)
    assert flat.pause == pytest.approx(0.5 + 2.0 + 0.1)
    assert deep.pause == pytest.approx(0.5 + 2.0 + 0.1 + 1.0)


def test_ptlb_takes_one_window_or_two() -> None:
    flat = predict_move(CARGO, COSTS, 10.0, sender_height=1)
    deep = predict_move(CARGO, COSTS, 10.0, sender_height=3)
    assert (flat.duration, deep.duration) == (10.0, 20.0)
    assert flat.extra == pytest.approx(0.1 * 10), "no match is found twice"
    assert deep.extra == pytest.approx(0.1 * 20 + 0.2 * 15)
    assert predict_move(CARGO, COSTS, 10.0, purge=12.0).duration == 12.0


def test_a_large_state_of_slow_streams_is_the_case_of_figure_13() -> None:
    slow = predict_move(Cargo(1e8, 1e6, 1e-3, 1e-3), COSTS, 10.0)
    fast = predict_move(Cargo(1e5, 1e3, 0.3, 0.3), COSTS, 10.0)
    assert slow.pause is not None and slow.extra is not None and slow.extra < slow.pause
    assert fast.pause is not None and fast.extra is not None and fast.pause < fast.extra


@pytest.mark.parametrize("window", [0.0, 15.0, 30.0, 60.0])
def test_ptlb_grows_with_the_window_and_mslb_does_not(window: float) -> None:
    found = predict_move(CARGO, COSTS, window)
    assert found.duration == 2 * window
    assert found.pause == predict_move(CARGO, COSTS, 1.0).pause


def test_unknown_is_unknown() -> None:
    assert predict_move(Cargo(None, 1.0, 1.0, 1.0), COSTS, 1.0).pause is None
    assert predict_move(Cargo(1.0, None, 1.0, 1.0), COSTS, 1.0).pause is None
    assert predict_move(Cargo(1.0, 1.0, None, 1.0), COSTS, 1.0).extra is None
    assert predict_move(Cargo(1.0, 1.0, 1.0, None), COSTS, 1.0).extra is None
    assert predict_move(Cargo(1.0, 1.0, 1.0, None), COSTS, 1.0, sender_height=1).extra == 1.0


def test_costs_are_learnt_from_moves_and_from_calibration() -> None:
    assert COSTS.learnt() == COSTS
    found = COSTS.learnt(nbytes=1e6, transferred=0.5, rows=10, recomputed=0.01)
    assert found.transfer == pytest.approx(1.5e6) and found.recompute == pytest.approx(5.5e-4)
    assert MoveCosts.of(PAPER, 5.0).transfer == 5.0
    assert MoveCosts.of(PAPER).store == PAPER.insert


def test_costs_without_sense_are_refused() -> None:
    with pytest.raises(StatisticsError, match="transfer=0"):
        MoveCosts(transfer=0)
    with pytest.raises(StatisticsError, match="store=-1"):
        MoveCosts(store=-1)
