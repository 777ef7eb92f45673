from __future__ import annotations

from typing import Any

import pytest

from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, ProcessorSnapshot, Work
from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.proposal import BalanceContext, BalanceProposal, BalanceSetting, several


def group(number: int, *holders: int, rows: int = 10, **more: object) -> GroupSnapshot:
    given = {"nbytes": 1e4, **more}
    return GroupSnapshot(number, holders, (rows, rows), (rows, rows), **given)  # type: ignore[arg-type]  # by name


SNAPSHOT = ClusterSnapshot(
    20.0,
    2.0,
    (
        ProcessorSnapshot(0, 1.0, 3e4, matches=0),
        ProcessorSnapshot(1, 0.0, matches=0),
        ProcessorSnapshot(2, None, None),
        ProcessorSnapshot(3, 0.4, 1e4, matches=0, active=False),
    ),
    (group(0, 0, rows=30), group(1, 0, rows=10), group(2, 0, rows=10, moving=True),
     group(3, 2), group(4, 3), group(5, 0, 3, rows=0, spread=0)),
)  # fmt: skip
CONTEXT = BalanceContext({0: 0.5, 1: 0.0, 3: 0.2}, number=7)


def proposal(context: BalanceContext = CONTEXT, **policy: Any) -> BalanceProposal:
    return BalanceProposal(BalanceSetting(10.0, BalancePolicy(**policy)), SNAPSHOT, context)


def test_unset_times_follow_the_window() -> None:
    usual = BalanceSetting(10.0)
    assert (usual.half_life, usual.rest, usual.trial) == (5.0, 10.0, 10.0)
    given = BalanceSetting(10.0, BalancePolicy(half_life=1.0, rest=0.0, trial=2.0))
    assert (given.half_life, given.rest, given.trial) == (1.0, 0.0, 2.0)
    assert BalanceSetting(0.0).half_life > 0, "a join of equal times has no window"


def test_what_is_unknown_stays_unknown() -> None:
    found = proposal()
    assert found.loads == {0: 0.5, 1: 0.0, 3: 0.2}
    assert found.nbytes == {0: 3e4, 1: 0.0, 3: 1e4}, "one without groups holds nothing"


def test_the_mean_is_for_those_that_take_part() -> None:
    """What the one that has left still carries is theirs to take; of 2 nothing is known."""
    assert proposal().mean(proposal().loads) == pytest.approx(0.7 / 2)


def test_loads_of_groups_add_up_to_that_of_their_processor() -> None:
    works = proposal().work(0)
    totals = {g: w.total for g, w in works.items() if w is not None}
    assert totals == pytest.approx({0: 0.3, 1: 0.1, 2: 0.1, 5: 0.0})
    longer = proposal(BalanceContext({0: 1.0})).work(0)[0]
    assert longer == pytest.approx(Work(0.6, 0.0)), "the load is that of a longer time"
    fresh = proposal(BalanceContext({})).work(0)[0]
    assert fresh == pytest.approx(Work(0.3, 0.0)), (
        "the last snapshot is all that is known: 1 s of 2"
    )


def test_groups_that_one_processor_can_give() -> None:
    found = proposal()
    assert [g.group for g in found.movable(0)] == [0, 1], "not one on the way, nor one spread"
    found.accept(found.move(0, 1, [SNAPSHOT.groups[0]]))
    assert [g.group for g in found.movable(0)] == [1]


def test_a_move_changes_what_the_next_one_sees() -> None:
    found = proposal(moves=3)
    assert found.left == 3
    found.accept(found.move(0, 1, [SNAPSHOT.groups[0]]))
    assert found.loads == pytest.approx({0: 0.2, 1: 0.3, 3: 0.2})
    assert (found.nbytes[0], found.nbytes[1]) == (2e4, 1e4)
    assert found.left == 2 and found.involved == {0, 1}
    decision = found.decision()
    assert decision.kind == "move" and [m.number for m in decision.moves] == [7]
    assert (decision.before, decision.after) == pytest.approx((0.5, 0.3))
    assert decision.predicted == pytest.approx({0: 0.2, 1: 0.3})


def test_moves_under_way_count() -> None:
    assert proposal(BalanceContext({}, under_way=2), moves=3).left == 1


def test_pauses_of_one_sender_add_up() -> None:
    """A second move at the same time would pause it for longer than it may."""
    pause = proposal().move(0, 1, [SNAPSHOT.groups[0]]).forecast.pause
    tight = proposal(latency=pause * 1.5)
    first, second = (tight.move(0, 1, [SNAPSHOT.groups[0]]).protocol for _ in range(2))
    assert (first, second) == ("MSLB", "PTLB")
    tight.undone(0)
    assert tight.move(0, 1, [SNAPSHOT.groups[0]]).protocol == "MSLB"


def test_who_is_left_alone_and_why() -> None:
    found = proposal(
        BalanceContext({}, busy={0: "it rests"}, banned={"to 1": 25.0, "from 2": 19.0})
    )
    assert found.hindrance(0, "from") == found.hindrance(0, "to") == "it rests"
    assert found.hindrance(1, "from") is None
    assert found.hindrance(1, "to") == "moving groups to it did not pay, so not for 5.0 s more"
    assert found.hindrance(2, "from") is None, "that was until 19"
    assert found.receivers() == [2], "3 does not take part"


def test_room_is_what_memory_allows_less_the_headroom() -> None:
    found = proposal(memory=5e4, headroom=0.2)
    assert found.room == pytest.approx(4e4) and proposal().room == float("inf")
    large, small = group(8, 9, nbytes=2e4), group(9, 9, nbytes=1e4)
    assert found.has_room_for(0, small) and not found.has_room_for(0, large)
    assert not found.has_room_for(2, small), "nobody knows what it holds"
    assert not found.has_room_for(1, group(8, 9, nbytes=None))
    assert found.has_room_for(0, group(8, 0, nbytes=9e9)), "it has it already"
    assert proposal().has_room_for(2, large)


def test_one_unknown_makes_the_sum_unknown() -> None:
    found = proposal()
    assert found.move(0, 1, [SNAPSHOT.groups[0], group(1, 0, nbytes=None)]).forecast.amount is None
    assert found.move(0, 1, [SNAPSHOT.groups[0], SNAPSHOT.groups[1]]).forecast.amount == 2e4


def test_a_group_with_several_holders_moves_from_all_of_them() -> None:
    move = proposal().several_move(SNAPSHOT.groups[5], (1,), None, 0.1)
    assert (move.protocol, move.senders, move.receivers) == ("MSLB", (0, 3), (1,))
    assert (move.spread, move.spread_before, move.forecast.load) == (None, 0, 0.1)


def test_nothing_to_do_is_to_stay_or_to_be_stuck() -> None:
    found = proposal()
    assert found.decision().kind == "stay"
    found.stuck.append(0)
    assert found.decision().kind == "stuck" and found.decision().stuck == (0,)


def test_many_processors_are_not_all_listed() -> None:
    assert several((3,)) == "processor 3"
    assert several(range(9)) == "processors 0, 1, 2, 3, 4, 5, 6, 7, ..."
