"""PTLB, message by message. All interleavings: plait_lab/laws/test_exploring."""

from __future__ import annotations

from plait.groups.moves.move import Move
from plait.groups.moves.places import Place
from plait_lab.protocol.actions import Drop, WatchOldRows
from plait_lab.protocol.messages import (
    MANAGER,
    AllOldPurged,
    DeletePartitions,
    DuplicatePartitions,
    EndOfPartitions,
    GiveUpPartitions,
    Settled,
    StartOfPartitions,
)
from plait_lab.protocol.parties import ProcessorParty, Split
from plait_lab.protocol.ptlb import all_old_purged, to_processor, to_split
from plait_lab.protocol.tags import Tag

MOVE = Move(3, "PTLB", (0,), (0,), (1,))
PLACES = (Place((0,)), Place((1,)))
SPLIT = Split(1, PLACES)
SENDER, RECEIVER = (ProcessorParty.of(p, 2, PLACES) for p in (0, 1))
START = [StartOfPartitions(MOVE, split) for split in (0, 1)]
END = [EndOfPartitions(MOVE, split) for split in (0, 1)]


def begun(processor: ProcessorParty) -> ProcessorParty:
    for flag in START:
        processor = to_processor(processor, flag).party
    return processor


def test_a_split_sends_new_rows_to_both_and_says_from_where_on() -> None:
    found = to_split(SPLIT, DuplicatePartitions(MOVE))
    start = StartOfPartitions(MOVE, 1)
    assert found.flags == ((0, start), (1, start)) and not found.messages
    assert found.party.route(0, 0, 0) == ((0, Tag(0, 3)), (1, Tag(3)))
    assert found.party.route(1, 0, 0) == SPLIT.route(1, 0, 0), "of other groups to one"
    again = to_split(found.party, DuplicatePartitions(MOVE))
    assert again.party == found.party and not again.flags, "once"


def test_a_split_ends_a_move_once_and_confirms_it_always() -> None:
    both = to_split(SPLIT, DuplicatePartitions(MOVE)).party
    for order, receiver, to in ((DeletePartitions(MOVE), 0, 1), (GiveUpPartitions(MOVE), 1, 0)):
        found = to_split(both, order)
        assert found.flags == ((receiver, EndOfPartitions(MOVE, 1)),)
        assert found.messages == ((MANAGER, Settled(3, "split-1")),)
        assert [p for p, _ in found.party.route(0, 0, 0) or ()] == [to]
        again = to_split(found.party, order)
        assert again.messages == found.messages and not again.flags
        late = to_split(found.party, DuplicatePartitions(MOVE))
        assert late.party == found.party and not late.flags, "what has ended does not begin again"


def test_a_split_that_never_began_ends_a_move_that_is_given_up_only() -> None:
    assert to_split(SPLIT, GiveUpPartitions(MOVE)).flags == ((1, EndOfPartitions(MOVE, 1)),)
    assert to_split(SPLIT, DeletePartitions(MOVE)).party == SPLIT


def test_a_sender_watches_its_old_rows_when_every_split_has_begun() -> None:
    one = to_processor(SENDER, START[0])
    assert not one.actions
    both = to_processor(one.party, START[1])
    assert both.actions == (WatchOldRows(MOVE),) and both.party.watching == (MOVE,)
    assert not all_old_purged(one.party, 3).messages, "rows without the flag may still come"
    purged = all_old_purged(both.party, 3)
    said = ((MANAGER, AllOldPurged(3, "processor-0")),)
    assert purged.messages == said and not purged.party.watching
    assert to_processor(purged.party, DuplicatePartitions(MOVE)).messages == said, "said again"
    assert not to_processor(both.party, DuplicatePartitions(MOVE)).messages


def test_a_sender_drops_its_rows_behind_the_last_row_of_every_split() -> None:
    sender = all_old_purged(begun(SENDER), 3).party
    assert not to_processor(sender, DeletePartitions(MOVE)).messages
    one = to_processor(sender, END[0])
    assert one.party.held == SENDER.held and not one.actions
    both = to_processor(one.party, END[1])
    assert both.actions == (Drop(((0, 0),)),) and both.party.held == ()
    assert both.messages == ((MANAGER, Settled(3, "processor-0")),)
    assert to_processor(both.party, DeletePartitions(MOVE)).messages == both.messages


def test_a_receiver_has_the_groups_from_the_first_row_on() -> None:
    assert to_processor(RECEIVER, START[0]).party.held == ((0, 3), (1, 0))
    for receiver in (begun(RECEIVER), RECEIVER):
        found = to_processor(receiver, DeletePartitions(MOVE))
        assert found.party.held == ((0, 3), (1, 0)), "also if the flags are still on their way"
        assert found.messages == ((MANAGER, Settled(3, "processor-1")),)
        assert to_processor(found.party, START[1]).party == found.party


def test_a_receiver_of_a_move_that_is_given_up_goes_on_until_no_row_comes() -> None:
    receiver = begun(RECEIVER)
    told = to_processor(receiver, GiveUpPartitions(MOVE))
    assert told.party == receiver and not told.messages
    one = to_processor(receiver, END[0])
    assert (0, 3) in one.party.held
    both = to_processor(one.party, END[1])
    assert both.actions == (Drop(((0, 3),)),) and both.party.held == ((1, 0),)
    assert both.messages == ((MANAGER, Settled(3, "processor-1")),)


def test_a_sender_of_a_move_that_is_given_up_keeps_its_rows() -> None:
    found = to_processor(begun(SENDER), GiveUpPartitions(MOVE))
    assert found.party.held == SENDER.held and not found.party.watching
    assert found.messages == ((MANAGER, Settled(3, "processor-0")),)
