"""The manager refuses what makes no sense, and survives being written and read."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from plait.codec import from_plain, to_plain
from plait.errors import MoveError, SourceError
from plait.groups.moves.places import Place
from plait_lab.protocol.actions import MoveFinished
from plait_lab.protocol.messages import (
    AllOldPurged,
    Deactivated,
    PartitionsToMove,
    Received,
    ReceivePartitions,
    SendPartitions,
    Settled,
)
from plait_lab.protocol.move_manager import MoveManager
from plait_lab.protocol.wire import message_from_plain, message_to_plain

MANAGER = MoveManager.of(3, 2, [Place((0,)), Place((1,)), Place((0, 1), spread=1, since=0)])
PTLB = MANAGER.begin("PTLB", [0], [1]).party


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (
            lambda: MANAGER.begin("PTLB", [3], [1]),
            "there is no group 3: there are 3",
        ),
        (lambda: MANAGER.begin("PTLB", [-1], [1]), "there is no group -1"),
        (lambda: MANAGER.begin("PTLB", [], [1]), "names no group"),
        (lambda: MANAGER.begin("PTLB", [0, 0], [1]), "each once"),
        (lambda: PTLB.begin("MSLB", [0], [2]), "group 0 is moving already"),
        (lambda: MANAGER.begin("PTLB", [0], [0]), "group 0 is on processor 0 already"),
        (lambda: MANAGER.begin("MSLB", [2], [1, 0], 1), "group 2 is on processor 0, 1 already"),
        (lambda: MANAGER.begin("PTLB", [0], [3]), "there is no processor 3"),
        (lambda: MANAGER.begin("PTLB", [0], []), "no receiver"),
        (lambda: MANAGER.begin("MSLB", [0], [1, 2]), "needs the stream whose rows are divided"),
        (lambda: MANAGER.begin("MSLB", [0], [1], 0), "needs the stream whose rows are divided"),
        (lambda: MANAGER.begin("MSLB", [0, 1], [2]), "group 1 is on processor 1, not on 0"),
        (
            lambda: MANAGER.begin("PTLB", [2], [2]),
            "PTLB moves groups from one processor",
        ),
        (lambda: MANAGER.begin("XYLB", [0], [1]), "there is no protocol 'XYLB'"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: MANAGER.ask("PTLB", 0, 0, 1.0), "processor 0 would send groups to itself"),
        (lambda: MANAGER.ask("PTLB", 0, 9, 1.0), "there is no processor 9"),
        (lambda: MANAGER.ask("PTLB", 0, 1, float("nan")), "nan is no amount"),
        (lambda: MANAGER.give_up(1), "move 1 is not under way; no move is under way"),
        (lambda: PTLB.give_up(2), "move 2 is not under way; moves under way: 1"),
    ],
)
def test_what_makes_no_sense_is_refused(act: Callable[[], object], says: str) -> None:
    with pytest.raises(MoveError) as refused:
        act()
    assert says in str(refused.value)


def test_the_last_step_cannot_be_given_up() -> None:
    deleting = PTLB.on(AllOldPurged(1, "processor-0")).party
    with pytest.raises(MoveError, match="at DeletePartitions"):
        deleting.give_up(1)


def test_answers_that_nobody_waits_for_change_nothing() -> None:
    for answer in (
        AllOldPurged(2, "processor-0"),
        AllOldPurged(1, "split-0"),
        Settled(1, "split-0"),
    ):
        assert PTLB.on(answer).party == PTLB


def test_groups_that_cannot_move_are_left_out_of_the_choice() -> None:
    asked = MANAGER.ask("MSLB", 0, 2, 10.0).party
    choice = asked.on(PartitionsToMove(1, "processor-0", (0, 0, 1, 2, 7)))
    assert choice.party.moving[0].move.groups == (0,)
    nothing = asked.on(PartitionsToMove(1, "processor-0", (1,)))
    assert nothing.party.idle
    assert [type(a) for a in nothing.actions] == [MoveFinished]
    assert asked.give_up(1).party.idle


def test_a_receiver_that_also_sends_is_asked_again_after_its_answer() -> None:
    manager = MoveManager.of(2, 1, [Place((0,))]).begin("MSLB", [0], [0, 1], 0).party
    for by in ("split-0", "processor-0"):
        manager = manager.on(Deactivated(1, by)).party
    manager = manager.on(Received(1, "processor-0")).party
    (repeated,) = manager.tick().messages
    assert repeated[0] == "processor-0"
    assert isinstance(repeated[1], SendPartitions)


def test_parties_and_messages_are_plain_data() -> None:
    assert from_plain(MoveManager, json.loads(json.dumps(to_plain(PTLB)))) == PTLB
    message = ReceivePartitions(PTLB.moving[0].move, 0, "a file")
    assert message_from_plain(json.loads(json.dumps(message_to_plain(message)))) == message


@pytest.mark.parametrize(
    "damage", [{"last": "1"}, {"last": True}, {"last": None}, {"places": 3}, {"more": 1}]
)
def test_damaged_data_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(SourceError):
        from_plain(MoveManager, {**to_plain(PTLB), **damage})
