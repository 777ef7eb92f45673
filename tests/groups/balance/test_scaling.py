from __future__ import annotations

from typing import Any

import pytest

from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, ProcessorSnapshot
from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.proposal import BalanceContext, BalanceProposal, BalanceSetting
from plait.groups.balance.scaling import drain, scale


def group(
    number: int, *holders: int, spread: int | None = None, moving: bool = False
) -> GroupSnapshot:
    return GroupSnapshot(number, holders, (5, 5), (5, 5), 1e4, spread=spread, moving=moving)


def proposal(
    loads: list[float | None],
    taking_part: set[int],
    groups: tuple[GroupSnapshot, ...] = (),
    pressed: int = 0,
    movable: bool = True,
    **policy: Any,
) -> BalanceProposal:
    processors = tuple(
        ProcessorSnapshot(p, load, 1e4 * (p + 1), matches=0, active=p in taking_part)
        for p, load in enumerate(loads)
    )
    known = {p: load for p, load in enumerate(loads) if load is not None}
    setting = BalanceSetting(10.0, BalancePolicy(**policy), movable=movable)
    snapshot = ClusterSnapshot(20.0, 1.0, processors, groups)
    return BalanceProposal(setting, snapshot, BalanceContext(known, pressed=pressed))


def test_as_many_as_were_asked_for_take_part() -> None:
    more = scale(proposal([0.1] * 4, {1}, active=3))
    assert more is not None and (more.kind, more.join) == ("join", (0, 2))
    fewer = scale(proposal([0.1] * 4, {0, 1, 2}, active=1))
    assert fewer is not None and (fewer.kind, fewer.leave) == ("leave", (0, 1)), "least state"
    assert scale(proposal([0.1] * 4, {0, 1}, active=2)) is None


def test_more_than_exist_are_all_that_exist() -> None:
    found = scale(proposal([0.1] * 2, {0}, active=9))
    assert found is not None and found.join == (1,)
    assert scale(proposal([0.1] * 2, {0, 1}, active=9)) is None


@pytest.mark.parametrize(
    ("load", "kind"), [(0.51, "join"), (0.5, None), (0.15, None), (0.09, "leave")]
)
def test_the_load_asks_for_one_more_or_one_less(load: float, kind: str | None) -> None:
    """Of two, one would have twice the load: below 0.2 one is enough."""
    found = scale(proposal([load, load, 0.0], {0, 1}, grow=0.5, shrink=0.2, confirm=1))
    assert (None if found is None else found.kind) == kind


def test_what_the_load_asks_for_is_confirmed() -> None:
    for pressed, kind in ((0, None), (1, None), (2, "join"), (-5, None)):
        asked = proposal([0.9, 0.0], {0}, pressed=pressed, grow=0.5, confirm=3)
        found = scale(asked)
        assert (None if found is None else found.kind) == kind
        assert asked.pressed == 1
        assert bool(asked.reasons) == (kind is None)


def test_the_load_does_not_ask_for_what_there_is_not() -> None:
    assert scale(proposal([0.9, 0.9], {0, 1}, grow=0.5, confirm=1)) is None
    few = proposal([0.01, 0.01, 0.01], {0, 1}, shrink=0.5, confirm=1, least_active=2)
    assert scale(few) is None
    assert scale(proposal([0.01], {0}, shrink=0.5, confirm=1)) is None
    assert scale(proposal([0.9, None, 0.0], {0, 1}, grow=0.5, confirm=1)) is None, "unknown"


def test_what_a_processor_has_that_left_is_for_the_others() -> None:
    found = scale(proposal([0.3, 0.3, 0.0], {0}, grow=0.5, confirm=1))
    assert found is not None and found.join == (1,)


def test_groups_of_a_processor_that_left_go_to_those_with_the_least() -> None:
    groups = tuple(group(g, 0) for g in range(4))
    found = proposal([0.8, 0.5, 0.1], {1, 2}, groups)
    drain(found)
    assert {(m.receivers, m.groups) for m in found.moves} == {((2,), (0, 1, 3)), ((1,), (2,))}
    assert found.loads == pytest.approx({0: 0.0, 1: 0.7, 2: 0.7})
    assert found.reasons == ["processor 0 has left and gives its groups away"]


def test_groups_of_unknown_weight_are_divided_by_number() -> None:
    groups = tuple(GroupSnapshot(g, (0,)) for g in range(6))
    found = proposal([None, 0.5, 0.5], {1, 2}, groups)
    drain(found)
    assert sorted(len(m.groups) for m in found.moves) == [3, 3]


def test_one_of_which_nothing_is_known_comes_last() -> None:
    found = proposal([0.4, None, 0.3], {1, 2}, (group(0, 0), group(9, 1)))
    drain(found)
    assert [m.receivers for m in found.moves] == [(2,)]


def test_no_more_moves_than_are_allowed() -> None:
    groups = tuple(group(g, 0) for g in range(4))
    found = proposal([0.8, 0.0, 0.0, 0.0], {1, 2, 3}, groups, moves=2)
    drain(found)
    assert len(found.moves) == 2


def test_groups_on_the_way_stay_until_they_have_arrived() -> None:
    found = proposal([0.8, 0.0], {1}, (group(0, 0, moving=True), group(1, 0)))
    drain(found)
    assert [m.groups for m in found.moves] == [(1,)]


def test_spread_groups_stay_at_the_holders_that_remain() -> None:
    groups = (group(0, 0, 1, 2, spread=1), group(1, 0, 1, spread=0), group(2, 0, 3, spread=0))
    found = proposal([0.8, 0.2, 0.1, 0.1], {1, 2}, groups)
    drain(found)
    moves = {m.groups[0]: (m.senders, m.receivers, m.spread, m.spread_before) for m in found.moves}
    assert moves[0] == ((0, 1, 2), (1, 2), 1, 1)
    assert moves[1] == ((0, 1), (1,), None, 0)
    assert moves[2] == ((0, 3), (2,), None, 0), "both of its holders have left"
    assert len(found.moves) == 3


def test_without_anybody_who_stays_or_groups_that_can_move_nothing_moves() -> None:
    for found in (
        proposal([0.8, 0.1], set(), (group(0, 0),)),
        proposal([0.8, 0.1], {1}, (group(0, 0),), movable=False),
        proposal([0.8, 0.1], {0, 1}, (group(0, 0),)),
    ):
        drain(found)
        assert not found.moves and not found.reasons
