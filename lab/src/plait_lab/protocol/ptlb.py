"""PTLB, the parallel track: both processors get new rows until the sender has no other ones.

1. ComputePartitionsToMove, 2. PartitionsToMove: the sender chooses groups.
3. DuplicatePartitions: every split sends new rows of the groups to both processors, those for the
   sender flagged. A StartOfPartitions flag goes before them.
4. AllOldPurged: the sender has the StartOfPartitions of every split, so no row without the flag is
   still to come, and the last one it had is purged.
5. DeletePartitions: every split sends rows to the receiver only, and EndOfPartitions to the sender,
   which deletes the groups when it has that flag from every split.

*Giving up*, before step 5: every split sends rows to the sender only, without flag, and
EndOfPartitions to the receiver. The receiver goes on joining until it has that flag from every
split, for the sender relies on it for combinations of flagged rows; then its rows are dead.

*Correct output.* `places.finds` says who reports a result. A purged old row can meet no row that is
still to come, so after step 4 no result needs a row that only the sender has.

*Invariants.* A sender deletes, and a receiver of a move that was given up forgets, only behind the
last row of every split. What has ended here (`is_over`) never begins again.
"""

from __future__ import annotations

from dataclasses import replace

from plait_lab.protocol.actions import Drop, Reaction, WatchOldRows
from plait_lab.protocol.messages import (
    MANAGER,
    AllOldPurged,
    DeletePartitions,
    DuplicatePartitions,
    EndOfPartitions,
    Flag,
    GiveUpPartitions,
    Order,
    Settled,
    StartOfPartitions,
)
from plait_lab.protocol.move_steps import ProtocolStep
from plait_lab.protocol.parties import ProcessorParty, Split, also
from plait_lab.protocol.tags import placed

STEPS = (
    ProtocolStep(DuplicatePartitions, ("splits", "senders"), AllOldPurged, ("senders",)),
    ProtocolStep(
        DeletePartitions,
        ("splits", "senders", "receivers"),
        Settled,
        ("splits", "senders", "receivers"),
        revocable=False,
    ),
)


def to_split(split: Split, order: Order) -> Reaction[Split]:
    """A split gets a message of the manager."""
    move = order.move
    (sender,), (receiver,) = move.senders, move.receivers
    settled = ((MANAGER, split.settled(move)),)
    match order:
        case DuplicatePartitions() if not split.is_over(move) and not split.is_open(move):
            start = StartOfPartitions(move, split.number)
            return Reaction(split.begun(move), flags=((sender, start), (receiver, start)))
        case DeletePartitions() | GiveUpPartitions() if split.is_over(move):
            return Reaction(split, messages=settled)
        case DeletePartitions() if split.is_open(move):
            end = EndOfPartitions(move, split.number)
            after = split.over(move, placed(move))
            return Reaction(after, flags=((sender, end),), messages=settled)
        case GiveUpPartitions():
            # The receiver waits for this flag of every split, also of one that never duplicated.
            end = EndOfPartitions(move, split.number)
            return Reaction(split.over(move), flags=((receiver, end),), messages=settled)
        case _:
            return Reaction(split)


def to_processor(processor: ProcessorParty, message: Order | Flag) -> Reaction[ProcessorParty]:
    """A processor gets a message of the manager, or a flag of a split."""
    move = message.move
    settled = ((MANAGER, processor.settled(move)),)
    sends = processor.number in move.senders
    if processor.is_over(move):
        ends = isinstance(message, DeletePartitions | GiveUpPartitions)
        return Reaction(processor, messages=settled if ends else ())
    part = processor.part(move)
    match message:
        case StartOfPartitions():
            part = replace(part, started=also(part.started, message.split))
            after = processor.within(part)
            if sends:
                return Reaction(after, (WatchOldRows(move),) if after.watches(part) else ())
            return Reaction(after.with_groups(move))
        case DuplicatePartitions() if part.purged:
            purged = AllOldPurged(move.number, processor.name)
            return Reaction(processor, messages=((MANAGER, purged),))
        case EndOfPartitions():
            part = replace(part, finished=also(part.finished, message.split))
            if len(part.finished) < processor.splits:
                return Reaction(processor.within(part))
            dropped = processor.of_move(move, brought=not sends)
            return Reaction(processor.over(move, dropped), (Drop(dropped),), messages=settled)
        case DeletePartitions() if not sends:
            # The flags may still be on their way: from here on the groups are its own.
            return Reaction(processor.with_groups(move).over(move), messages=settled)
        case GiveUpPartitions() if sends:
            return Reaction(processor.over(move), messages=settled)
        case _:
            return Reaction(processor)


def all_old_purged(processor: ProcessorParty, number: int) -> Reaction[ProcessorParty]:
    """The host of a sender says that it has no old row left (see `actions.Watch`)."""
    watched = [p for p in processor.open if p.move.number == number and processor.watches(p)]
    if not watched:
        return Reaction(processor)
    after = processor.within(replace(watched[0], purged=True))
    return Reaction(after, messages=((MANAGER, AllOldPurged(number, processor.name)),))
