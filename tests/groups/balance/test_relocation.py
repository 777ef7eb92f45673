from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.relocation import (
    ProtocolChoice,
    choose_protocol,
    groups_to_move,
    move_record,
    way_back,
)
from plait.groups.moves.cost import Cargo, MoveCosts
from plait.groups.moves.move import Move, MoveForecast

WEIGHTS = st.lists(st.none() | st.integers(0, 20), max_size=8)


@given(WEIGHTS, st.integers(0, 60), st.none() | st.integers(0, 60))
def test_groups_come_to_about_the_amount(
    given_: list[int | None], amount: int, most: int | None
) -> None:
    weights = dict(enumerate(given_))
    chosen = groups_to_move(list(weights.items()), amount, most)
    moved = sum(weights[g] or 0 for g in chosen)
    assert len(set(chosen)) == len(chosen) and all(weights[g] for g in chosen)
    assert most is None or moved <= most
    limit = amount if most is None else min(amount, most)
    left = [w for g, w in weights.items() if w and g not in chosen]
    # Nothing that is left fits as well, and one more would be further from the amount.
    assert all(moved + w > limit for w in left)
    if moved > amount:
        taken = [w for g in chosen if (w := weights[g])]
        assert any(moved - amount < amount - (moved - w) for w in taken), "one more came nearer"


def test_large_groups_go_first_and_ties_to_the_smaller_number() -> None:
    assert groups_to_move([(5, 1.0), (4, 1.0), (3, 6.0)], 6.0) == (3,)
    assert groups_to_move([(5, 1.0), (4, 1.0)], 1.0) == (4,)


SMALL = Cargo(nbytes=1e6, rows=1e4, rows_work=0.1, match_work=0.2)
LARGE = Cargo(nbytes=1e9, rows=1e7, rows_work=1e-4, match_work=1e-4)


def way(cargo: Cargo, latency: float | None = None, **options: object) -> ProtocolChoice:
    policy = BalancePolicy(latency=latency)
    return choose_protocol(cargo, MoveCosts(), policy, 10.0, **options)  # type: ignore[arg-type]  # by name


def test_the_cheaper_protocol_is_taken() -> None:
    cheap, dear = way(SMALL), way(LARGE)
    assert cheap.protocol == "MSLB" and cheap.pause == cheap.work > 0
    assert dear.protocol == "PTLB" and dear.pause == 0 < dear.work


def test_the_latency_target_rules_mslb_out() -> None:
    pause = way(SMALL).pause
    assert way(SMALL, latency=pause * 1.01).protocol == "MSLB"
    assert way(SMALL, latency=pause * 0.99).protocol == "PTLB"
    assert way(SMALL, latency=pause * 1.5, paused=pause).protocol == "PTLB", "pauses add up"


def test_what_ptlb_cannot_do() -> None:
    assert way(LARGE, short=True).protocol == "MSLB"
    several = way(LARGE, latency=0.001, several=True)
    assert several.protocol == "MSLB" and "although the limit is 1.0 ms" in several.reason
    assert "although" not in way(LARGE, several=True).reason


def test_what_is_not_known_is_not_waited_for() -> None:
    assert way(Cargo(None, 1.0, 1.0, 1.0)).protocol == "PTLB"
    assert way(Cargo(1.0, 1.0, None, 1.0)).protocol == "MSLB"
    assert way(Cargo(None, None, None, None))[2:] == (0.0, 0.0)


def test_heights_and_purging_are_those_of_the_plans() -> None:
    flat = way(LARGE, heights=(1, 1))
    assert flat.work == pytest.approx(LARGE.rows_work * 10.0 if LARGE.rows_work else 0)
    assert "for 12 s" in way(SMALL, purge=12.0).reason


MOVE = Move(3, "PTLB", (7, 8), (0,), (1, 2), spread=1, forecast=MoveForecast(5.0, 0.5))


def test_the_event_log_has_a_move_and_its_forecast_in_one() -> None:
    found = move_record(MOVE)
    assert (found["groups"], found["amount"], found["was"]) == ((7, 8), 5.0, None)


def test_the_way_back_undoes_a_move() -> None:
    back = way_back(MOVE, 9, ProtocolChoice("MSLB", "it did not pay", 1.0, 2.0))
    assert (back.number, back.protocol, back.groups) == (9, "MSLB", (7, 8))
    assert (back.senders, back.receivers) == ((1, 2), (0,))
    assert (back.spread, back.spread_before, back.forecast.returned) == (None, 1, True)
    assert (back.forecast.pause, back.forecast.work) == (1.0, 2.0)
    assert back.forecast.reason == "it did not pay"
    again = way_back(back, 3, ProtocolChoice("PTLB", "", 0.0, 0.0))
    assert again == MOVE
