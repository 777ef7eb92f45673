from __future__ import annotations

from typing import Any

import pytest

from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, ProcessorSnapshot
from plait.groups.balance.hot_groups import merge_cooled, spread_hottest
from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.proposal import BalanceContext, BalanceProposal, BalanceSetting

HOT = GroupSnapshot(0, (0,), (900, 100), (900, 100), 1e4)
COLD = GroupSnapshot(1, (0,), (5, 5), (5, 5), 1e4)


def proposal(
    groups: tuple[GroupSnapshot, ...],
    loads: dict[int, float],
    processors: int = 4,
    busy: dict[int, str] | None = None,
    **policy: Any,
) -> BalanceProposal:
    holding = {h for g in groups for h in g.holders}
    snapshots = tuple(
        ProcessorSnapshot(p, loads.get(p, None if p in holding else 0.0), 1e4, matches=0)
        for p in range(processors)
    )
    setting = BalanceSetting(10.0, BalancePolicy(**policy))
    context = BalanceContext(loads, busy=busy or {})
    return BalanceProposal(setting, ClusterSnapshot(20.0, 1.0, snapshots, groups), context)


def spread(found: BalanceProposal, sender: int = 0, waited: float = 100.0) -> bool:
    return spread_hottest(found, sender, found.mean(found.loads), waited, "processor 0 is hot")


LOADS = {0: 1.0, 1: 0.1, 2: 0.1, 3: 0.1}


def test_a_hot_group_is_spread_by_its_faster_stream() -> None:
    found = proposal((HOT, COLD), LOADS)
    assert spread(found)
    (move,) = found.moves
    assert (move.groups, move.senders, move.spread) == ((0,), (0,), 0)
    assert 0 in move.receivers and len(move.receivers) > 1
    assert max(found.loads.values()) == pytest.approx(1.0 - move.forecast.load)
    assert move.forecast.load > 0.4
    assert "the rows of stream 0 are divided over processors" in found.reasons[0]


def test_a_group_that_another_processor_could_take_is_not_spread() -> None:
    found = proposal(
        (COLD, GroupSnapshot(2, (0,), (5, 5), (5, 5), 1e4)), {0: 0.5, 1: 0.4, 2: 0.4, 3: 0.4}
    )
    assert not spread(found) and not found.moves and not found.stuck


def test_what_may_not_or_cannot_be_spread_is_said() -> None:
    unknown = GroupSnapshot(0, (0,), (900, 100), None, 1e4, work=1.0)
    full = proposal((HOT,), LOADS, memory=1.5e4)
    for found, said in (
        (proposal((HOT,), LOADS, spread=False), "it may not be spread"),
        (proposal((unknown,), LOADS), "the rows of its streams are not known"),
        (proposal((HOT,), LOADS, busy=dict.fromkeys((1, 2, 3), "x")), "no processors to spread it"),
        (full, "no processors to spread it"),
    ):
        assert not spread(found) and not found.moves
        assert found.stuck == [0] and said in found.reasons[0]


def test_spreading_that_gains_nothing_is_not_done() -> None:
    """Both streams are equally fast: each of two would still have three quarters."""
    even = GroupSnapshot(0, (0,), (500, 500), (500, 500), 1e4)
    found = proposal((even,), {0: 1.0, 1: 0.6}, processors=2)
    assert not spread(found) and found.stuck == [0]
    assert "would leave the slowest with" in found.reasons[0]


def test_spreading_waits_until_staying_has_cost_as_much() -> None:
    found = proposal((HOT,), LOADS, payback=1e6)
    assert spread(found, waited=0.001), "nothing else is to happen meanwhile"
    assert not found.moves and not found.stuck and "staying has cost" in found.reasons[0]


def test_a_spread_group_that_got_hotter_is_spread_further() -> None:
    held = GroupSnapshot(0, (0, 1), (9000, 100), (9000, 100), 1e4, spread=0)
    found = proposal((held,), {0: 1.0, 1: 1.0, 2: 0.0, 3: 0.0})
    assert spread(found)
    (move,) = found.moves
    assert (move.senders, move.receivers, move.spread_before) == ((0, 1), (0, 1, 2, 3), 0)
    assert max(found.loads.values()) == pytest.approx(0.5, rel=0.1)


def test_holders_that_are_left_alone_keep_their_part() -> None:
    held = GroupSnapshot(0, (0, 1), (9000, 100), (9000, 100), 1e4, spread=0)
    found = proposal((held,), {0: 1.0, 1: 1.0, 2: 0.0}, busy={1: "it rests"})
    assert spread(found) and not found.moves
    assert "another of its holders is left alone" in found.reasons[0]


def test_a_holder_of_which_nothing_is_known_keeps_its_part() -> None:
    """Its load was taken for 0 once the group was spread anew."""
    held = GroupSnapshot(0, (0, 1), (9000, 100), (9000, 100), 1e4, spread=0)
    found = proposal((held,), {0: 1.0, 2: 0.0, 3: 0.0})
    assert 1 not in found.loads
    spread(found)
    assert not found.moves and 1 not in found.loads and found.reasons


COOL = GroupSnapshot(0, (0, 1), (9, 1), (9, 1), 1e4, spread=0)
BUSY = GroupSnapshot(1, (2,), (90, 10), (90, 10), 1e4)


def test_a_group_that_has_cooled_is_put_together_at_the_holder_with_the_least() -> None:
    found = proposal((COOL, BUSY), {0: 0.05, 1: 0.04, 2: 1.0, 3: 0.5})
    merge_cooled(found)
    (move,) = found.moves
    assert (move.senders, move.receivers, move.spread, move.spread_before) == (
        (0, 1),
        (1,),
        None,
        0,
    )
    assert found.loads[0] == pytest.approx(0.05 - 0.045)
    assert "is put together at processor 1" in found.reasons[0]


def test_a_group_between_hot_and_cool_stays_as_it_is() -> None:
    for load, together in ((0.04, True), (0.10, False)):
        found = proposal((COOL, BUSY), {0: load, 1: load, 2: 0.4, 3: 0.4}, cool=0.5)
        merge_cooled(found)
        assert bool(found.moves) is together


@pytest.mark.parametrize(
    "found",
    [
        proposal((COOL, BUSY), {0: 0.05, 2: 1.0, 3: 0.5}),
        proposal((COOL, BUSY), {0: 0.05, 1: 0.04, 2: 1.0}, busy={1: "it rests"}),
        proposal((COOL, BUSY), {0: 0.05, 1: 0.04, 2: 1.0}, cool=0.0),
        proposal((GroupSnapshot(0, (0, 1), spread=0), BUSY), {0: 0.05, 1: 0.04, 2: 1.0}),
        proposal(
            (GroupSnapshot(0, (0, 1), (9, 1), (9, 1), spread=0, moving=True),), {0: 0.1, 1: 0.1}
        ),
    ],
    ids=["unknown", "busy", "not cool", "unknown rows", "moving"],
)
def test_otherwise_it_stays_spread(found: BalanceProposal) -> None:
    merge_cooled(found)
    assert not found.moves
