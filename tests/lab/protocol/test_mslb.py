"""MSLB, message by message. All interleavings: plait_lab/laws/test_exploring."""

from __future__ import annotations

from plait.groups.moves.move import Move
from plait.groups.moves.places import Place
from plait_lab.protocol.actions import Buffer, Drop, Export, Import, Release
from plait_lab.protocol.messages import (
    MANAGER,
    Deactivated,
    DeactivatePartitions,
    EndOfPartitionInputFlag,
    GiveUpPartitions,
    ReactivatePartitions,
    Received,
    ReceivePartitions,
    SendPartitions,
    Settled,
)
from plait_lab.protocol.mslb import to_processor, to_split
from plait_lab.protocol.parties import ProcessorParty, Split
from plait_lab.protocol.tags import Tag

MOVE = Move(4, "MSLB", (0,), (0, 1), (1, 2), 1, 0)
"""A group that is spread over 0 and 1 by stream 0 is spread over 1 and 2 by stream 1."""
PLACES = (Place((0, 1), spread=0, since=2), Place((2,)))
SPLIT = Split(1, PLACES)
FIRST, BOTH, LAST = (ProcessorParty.of(p, 2, PLACES) for p in range(3))
FLAGS = [EndOfPartitionInputFlag(MOVE, split) for split in (0, 1)]


def stopped(processor: ProcessorParty) -> ProcessorParty:
    for flag in FLAGS:
        processor = to_processor(processor, flag).party
    return processor


def parts(sender: int) -> ReceivePartitions:
    return ReceivePartitions(MOVE, sender, f"rows of {sender}")


def imported(processor: ProcessorParty) -> ProcessorParty:
    for sender in MOVE.senders:
        processor = to_processor(processor, parts(sender)).party
    return processor


def test_a_split_buffers_and_flags_every_sender() -> None:
    found = to_split(SPLIT, DeactivatePartitions(MOVE))
    flag = EndOfPartitionInputFlag(MOVE, 1)
    assert found.actions == (Buffer((0,)),) and found.flags == ((0, flag), (1, flag))
    assert found.messages == ((MANAGER, Deactivated(4, "split-1")),)
    assert found.party.route(0, 0, 0) is None and found.party.route(1, 0, 0) is not None
    again = to_split(found.party, DeactivatePartitions(MOVE))
    assert again.messages == found.messages and not again.actions and not again.flags


def test_a_split_goes_on_with_the_receivers() -> None:
    buffering = to_split(SPLIT, DeactivatePartitions(MOVE)).party
    found = to_split(buffering, ReactivatePartitions(MOVE))
    assert found.actions == (Release((0,)),)
    assert found.messages == ((MANAGER, Settled(4, "split-1")),)
    assert found.party.route(0, 0, 0) == ((1, Tag(4)), (2, Tag(4)))
    assert found.party.route(0, 1, 1) == ((2, Tag(4)),), "of stream 1 to one of both"
    again = to_split(found.party, ReactivatePartitions(MOVE))
    assert again.messages == found.messages and not again.actions
    assert to_split(found.party, DeactivatePartitions(MOVE)).party == found.party


def test_a_split_goes_back_to_the_senders() -> None:
    buffering = to_split(SPLIT, DeactivatePartitions(MOVE)).party
    found = to_split(buffering, GiveUpPartitions(MOVE))
    assert found.actions == (Release((0,)),) and found.party.route(0, 1, 0) == SPLIT.route(0, 1, 0)
    unaware = to_split(SPLIT, GiveUpPartitions(MOVE))
    assert unaware.actions == () and unaware.messages == found.messages, "nothing was buffered"
    assert to_split(unaware.party, DeactivatePartitions(MOVE)).actions == (), "it is over"


def test_a_sender_has_stopped_when_it_has_the_flag_of_every_split() -> None:
    one = to_processor(FIRST, FLAGS[0])
    assert not one.messages and not to_processor(one.party, DeactivatePartitions(MOVE)).messages
    assert not to_processor(one.party, SendPartitions(MOVE)).actions, "rows are still to come"
    both = to_processor(one.party, FLAGS[1])
    assert both.messages == ((MANAGER, Deactivated(4, "processor-0")),)
    assert to_processor(both.party, DeactivatePartitions(MOVE)).messages == both.messages
    assert to_processor(both.party, SendPartitions(MOVE)).actions == (Export(MOVE),)


def test_a_receiver_imports_each_part_once_and_says_when_it_has_all() -> None:
    one = to_processor(LAST, parts(0))
    assert one.actions == (Import(MOVE, 0, "rows of 0"),) and not one.messages
    again = to_processor(one.party, parts(0))
    assert again.actions == () and again.party == one.party
    both = to_processor(one.party, parts(1))
    assert both.actions == (Import(MOVE, 1, "rows of 1"),)
    received = ((MANAGER, Received(4, "processor-2")),)
    assert both.messages == received and both.party.held == ((0, 4), (1, 0))
    assert to_processor(both.party, parts(1)).messages == received, "the answer may be lost"


def test_parts_for_others_or_of_others_are_not_imported() -> None:
    assert to_processor(FIRST, parts(1)).party == FIRST, "it receives nothing"
    assert to_processor(LAST, parts(2)).party == LAST, "it sends nothing"


def test_who_sends_and_receives_keeps_what_it_received() -> None:
    full = imported(stopped(BOTH))
    assert full.held == ((0, 2), (0, 4))
    found = to_processor(full, ReactivatePartitions(MOVE))
    assert found.party.held == ((0, 4),) and found.actions == (Drop(((0, 2),)),)
    assert found.messages == ((MANAGER, Settled(4, "processor-1")),)
    back = to_processor(full, GiveUpPartitions(MOVE))
    assert back.party.held == ((0, 2),) and back.actions == (Drop(((0, 4),)),)


def test_a_part_that_came_alone_is_dropped_when_the_move_is_given_up() -> None:
    one = to_processor(LAST, parts(0)).party
    found = to_processor(one, GiveUpPartitions(MOVE))
    assert found.actions == (Drop(((0, 4),)),) and found.party.held == LAST.held
    assert to_processor(found.party, parts(1)).actions == (), "what comes late is not imported"
    assert to_processor(LAST, GiveUpPartitions(MOVE)).actions == ()


def test_a_sender_keeps_its_rows_until_the_end() -> None:
    assert stopped(FIRST).held == FIRST.held
    found = to_processor(stopped(FIRST), ReactivatePartitions(MOVE))
    assert found.party.held == () and found.actions == (Drop(((0, 2),)),)
    assert to_processor(found.party, GiveUpPartitions(MOVE)).party == found.party
