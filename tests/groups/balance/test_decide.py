from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, ProcessorSnapshot
from plait.groups.balance.decide import rebalance
from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.proposal import BalanceContext, BalanceSetting, Overload
from plait.groups.balance.relocation import BalanceDecision

LONG = Overload(9, 1000.0)
"""Above the margin for so long that anything pays."""


def decide(
    works: list[list[float | None]],
    *,
    nbytes: list[list[float]] | None = None,
    active: set[int] | None = None,
    busy: dict[int, str] | None = None,
    past: Overload = LONG,
    under_way: int = 0,
    movable: bool = True,
    **policy: Any,
) -> BalanceDecision:
    """One list of groups, by their load, for each processor; groups are numbered in order."""
    groups, snapshots, loads = list[GroupSnapshot](), list[ProcessorSnapshot](), dict[int, float]()
    for p, mine in enumerate(works):
        sizes = [1e4] * len(mine) if nbytes is None else nbytes[p]
        for load, size in zip(mine, sizes, strict=True):
            rows = (10, 10)
            groups.append(GroupSnapshot(len(groups), (p,), rows, rows, size, work=load))
        taking_part = active is None or p in active
        snapshots.append(
            ProcessorSnapshot(p, nbytes=float(sum(sizes)), matches=0, active=taking_part)
        )
        if None not in mine:
            loads[p] = sum(load for load in mine if load is not None)
    setting = BalanceSetting(10.0, BalancePolicy(**policy), movable=movable)
    context = BalanceContext(
        loads, dict.fromkeys(range(len(works)), past), busy or {}, under_way=under_way
    )
    return rebalance(setting, ClusterSnapshot(20.0, 1.0, tuple(snapshots), tuple(groups)), context)


def went(decision: BalanceDecision) -> dict[int, tuple[int, ...]]:
    """Where each group goes."""
    return {g: move.receivers for move in decision.moves for g in move.groups}


def test_the_overloaded_give_to_those_with_the_least() -> None:
    found = decide([[0.125] * 8, [0.125], [0.375]])
    assert found.kind == "move" and found.overloaded == (0,)
    assert went(found) == {0: (1,), 1: (1,), 2: (1,), 3: (2,)}
    assert (found.before, found.after) == (1.0, 0.5)


def test_a_pair_does_not_swap_roles() -> None:
    """A group of half the load would make the receiver the slowest."""
    assert not decide([[0.5, 0.5], [0.25], [0.25]], spread=False).moves


def test_within_the_margin_everything_stays() -> None:
    found = decide([[0.1] * 5, [0.1] * 4, [0.1] * 5], margin=0.2)
    assert found.kind == "stay" and found.overloaded == ()
    assert "processor 0 has the most" in found.reasons[0]


def test_it_is_confirmed_by_looks_in_a_row_and_by_what_staying_has_cost() -> None:
    works: list[list[float | None]] = [[0.2] * 4, []]
    waiting = decide(works, past=Overload(1, 1.0), confirm=3)
    assert waiting.kind == "stay" and waiting.overloaded == (0,)
    assert "to be confirmed by 3 snapshots" in waiting.reasons[0]
    assert decide(works, past=Overload(2, 1.0), confirm=3).kind == "move"
    dear = decide(works, past=Overload(2, 0.0), confirm=3, payback=1e6)
    assert dear.kind == "stay" and "staying has cost" in dear.reasons[0]


def test_little_relief_is_not_worth_a_move() -> None:
    found = decide([[0.4, 0.001], [0.1]], least=0.01, spread=False)
    assert not found.moves and "relieve it of 0.001 only" in found.reasons[-1]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (decide([[0.2] * 4, [0.1]], movable=False), "no groups that could move"),
        (decide([[0.2] * 4, [0.1]], busy={0: "it rests"}), "it rests"),
        (decide([[0.2] * 4, [0.1]], busy={1: "it rests"}), "no processor is free to take groups"),
        (decide([[0.2] * 4, [0.1]], under_way=16), "16 moves are under way"),
        (decide([[0.2] * 4]), "not two processors"),
        (decide([[0.0], [0.0]]), "there is no load"),
        (decide([[0.2] * 4, [0.1], [None]]), "of 1 processors it is not known"),
    ],
)
def test_reasons_to_stay_or_to_know_less(found: BalanceDecision, said: str) -> None:
    assert any(said in reason for reason in found.reasons)
    assert found.kind == "stay" or "not known" in said


def test_one_of_which_nothing_is_known_neither_gives_nor_takes() -> None:
    found = decide([[0.2] * 4, [0.1], [None, 0.1]])
    assert set(went(found).values()) == {(1,)}
    assert all(move.senders == (0,) for move in found.moves)


def test_one_group_that_is_too_large_for_anybody_is_stuck() -> None:
    found = decide([[0.5, 0.5], [0.45, 0.4]], spread=False, margin=0.05)
    assert found.kind == "stuck" and found.stuck == (0,)
    assert "its smallest group takes 0.5" in found.reasons[-1]


def test_a_receiver_gets_what_it_has_memory_for() -> None:
    """The group that would be best does not fit; the next one does, and it is not given up."""
    found = decide(
        [[0.5, 0.125, 0.125, 0.25], [0.0]],
        nbytes=[[9e4, 1e4, 1e4, 1e4], [1e4]],
        memory=1e6,
        headroom=0.96,
    )
    assert found.kind == "move" and set(went(found)) == {1, 2, 3}


def test_a_processor_without_memory_does_not_keep_others_from_taking() -> None:
    found = decide(
        [[0.25, 0.25], [0.0], [0.0]],
        nbytes=[[4e4, 4e4], [5e4], [1e4]],
        memory=1e5,
        headroom=0.5,
        spread=False,
    )
    assert went(found) == {0: (2,)}


def test_a_receiver_that_is_full_for_one_sender_takes_from_the_next() -> None:
    """Only the small group of the first fits; the second has nothing but small ones."""
    found = decide(
        [[0.5, 0.5, 0.25], [0.25] * 4, []],
        nbytes=[[3e5, 3e5, 1e3], [1e3] * 4, []],
        memory=1e6,
        headroom=0.9,
        spread=False,
    )
    assert went(found) == {2: (2,), 3: (2,)}


@pytest.mark.parametrize("second", [[0.125] * 8, [0.25] * 4])
def test_a_sender_that_finds_nobody_below_the_mean_says_so(second: list[float | None]) -> None:
    """The first sender fills the only one that is free; it is neither memory nor a hot group."""
    found = decide([[0.125] * 8, second, [0.5], []], busy={3: "it rests"}, spread=False)
    assert went(found) == {0: (2,)} and found.stuck == ()
    assert "no processor has less than the mean now" in found.reasons[1]


def test_who_is_short_of_memory_gives_at_once() -> None:
    found = decide(
        [[0.1, 0.1, 0.1], [0.1]],
        nbytes=[[4e9, 4e9, 4e9], [1e9]],
        past=Overload(),
        busy={0: "it rests"},
        memory=1e10,
        confirm=5,
    )
    assert found.kind == "move" and {m.protocol for m in found.moves} == {"MSLB"}
    assert (
        "processor 0 holds 12,000,000,000 bytes of state, more than 10,000,000,000"
        in found.reasons[0]
    )
    assert set(went(found).values()) == {(1,)}


def test_without_anybody_who_has_room_it_is_said() -> None:
    found = decide([[0.1], [0.1]], nbytes=[[2e5], [2e5]], memory=1e5)
    assert not found.moves and "nobody can take a group" in found.reasons[0]


def test_memory_can_be_what_is_balanced() -> None:
    found = decide(
        [[0.1] * 4, [0.4]], nbytes=[[3e6] * 4, [1e6]], by="memory", least_bytes=1e5, margin=0.1
    )
    assert went(found) and set(went(found).values()) == {(1,)}
    moved = 3e6 * len(went(found))
    assert abs((12e6 - moved) - (1e6 + moved)) < 12e6 - 1e6


def test_who_takes_part_is_settled_before_anything_moves() -> None:
    found = decide([[0.2] * 4, []], active={0}, grow=0.5, confirm=1)
    assert found.kind == "join" and not found.moves


LOADS = st.lists(st.lists(st.floats(0.0, 1.0), max_size=6), min_size=2, max_size=6)
SIZES = st.sampled_from([1e3, 1e4, 1e5])


@pytest.mark.slow
@given(LOADS, st.data())
def test_whatever_is_asked_for_can_be_carried_out_and_helps(
    loads: list[list[float | None]], data: st.DataObject
) -> None:
    nbytes = [[data.draw(SIZES) for _ in mine] for mine in loads]
    limit = data.draw(st.sampled_from([None, 1.5e5]))
    moves = data.draw(st.integers(1, 16))
    found = decide(loads, nbytes=nbytes, memory=limit, moves=moves)
    homes = [p for p, mine in enumerate(loads) for _ in mine]
    sizes = [size for mine in nbytes for size in mine]
    groups = [g for move in found.moves for g in move.groups]
    assert len(set(groups)) == len(groups) and len(found.moves) <= moves
    held = [sum(mine) for mine in nbytes]
    for move in found.moves:
        assert all(homes[g] in move.senders for g in move.groups)
        assert set(move.receivers) != set(move.senders)
        for receiver in move.receivers:
            held[receiver] += sum(sizes[g] for g in move.groups if homes[g] != receiver)
    if limit is not None:
        got = {r for move in found.moves for r in move.receivers}
        before = [sum(mine) for mine in nbytes]
        assert all(held[p] <= limit or held[p] == before[p] for p in got), "it has the memory"
    if found.moves and limit is None:
        assert found.before is not None and found.after is not None
        assert found.after <= found.before + 1e-9
    assert found.reasons
