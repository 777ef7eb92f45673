"""Messages and flags reach the protocol of their move, and strange ones change nothing."""

from __future__ import annotations

from typing import get_args

import pytest

from plait.groups.moves.move import Move, Protocol
from plait.groups.moves.places import Place
from plait_lab.protocol import mslb, ptlb
from plait_lab.protocol.actions import Choose
from plait_lab.protocol.deliver import chosen, to_processor, to_split
from plait_lab.protocol.messages import (
    Answer,
    ComputePartitionsToMove,
    DeactivatePartitions,
    DuplicatePartitions,
    EndOfPartitionInputFlag,
    Flag,
    Message,
    Order,
    PartitionsToMove,
    ReceivePartitions,
    Settled,
    StartOfPartitions,
)
from plait_lab.protocol.parties import ProcessorParty, Split

PLACES = (Place((0,)),)
SPLIT, SENDER = Split(0, PLACES), ProcessorParty.of(0, 1, PLACES)


def move(protocol: Protocol) -> Move:
    return Move(1, protocol, (0,), (0,), (1,))


def test_a_split_follows_the_protocol_of_the_move() -> None:
    for order in (DuplicatePartitions(move("PTLB")), DeactivatePartitions(move("MSLB"))):
        found = to_split(SPLIT, order)
        assert found.party.open == (order.move,)
    assert to_split(SPLIT, DuplicatePartitions(move("PTLB"))).party.route(0, 0, 0) is not None
    assert to_split(SPLIT, DeactivatePartitions(move("MSLB"))).party.route(0, 0, 0) is None


@pytest.mark.parametrize("protocol", get_args(Protocol))
@pytest.mark.parametrize("kind", get_args(Order))
def test_orders_are_those_of_one_protocol(kind: type[Order], protocol: Protocol) -> None:
    """An order of the other protocol, which a manager never sends, changes nothing."""
    order, one = kind(move(protocol)), ptlb if protocol == "PTLB" else mslb
    assert to_split(SPLIT, order) == one.to_split(SPLIT, order)
    assert to_processor(SENDER, order) == one.to_processor(SENDER, order)


@pytest.mark.parametrize("kind", get_args(Flag))
def test_flags_are_for_processors(kind: type[Flag]) -> None:
    flag = kind(move("PTLB" if kind is not EndOfPartitionInputFlag else "MSLB"), 0)
    assert to_split(SPLIT, flag).party == SPLIT
    assert to_processor(SENDER, flag).party != SENDER


def test_a_processor_is_asked_to_choose() -> None:
    found = to_processor(SENDER, ComputePartitionsToMove(7, 1e6))
    assert found.actions == (Choose(7, 1e6),) and found.party == SENDER
    said = chosen(SENDER, 7, iter([3, 1]))
    assert said.messages == (("manager", PartitionsToMove(7, "processor-0", (3, 1))),)


@pytest.mark.parametrize("message", [Settled(1, "split-0"), PartitionsToMove(1, "x", ())])
def test_answers_are_for_the_manager(message: Answer) -> None:
    for found in (to_split(SPLIT, message), to_processor(SENDER, message)):
        assert not found.actions and not found.messages and not found.flags


def test_ptlb_moves_no_partitions() -> None:
    receiver = ProcessorParty.of(1, 1, PLACES)
    strange: list[Message] = [ReceivePartitions(move("PTLB"), 0, "rows")]
    for message in strange:
        assert to_processor(receiver, message).party == receiver
    assert to_processor(receiver, StartOfPartitions(move("PTLB"), 0)).party.held == ((0, 1),)
